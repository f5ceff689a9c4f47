import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isFullScreen, saveScreen, screenOutput } from './session-files.js';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'mr-screen-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('screen output: shows the terminal, and after the end what it showed last', () => {
  const live = { directory, screen: '\n› hello  \n\n• hi\n\n', end: 90 };
  expect(screenOutput(live, { limit: 10 })).toEqual({ lines: ['› hello', '', '• hi'], next: 90 });
  expect(screenOutput(live, { limit: 1 }).lines).toEqual(['• hi']);
  const ended = { directory, screen: undefined, end: 90 };
  expect(screenOutput(ended, { limit: 10 }).lines).toEqual([]);
  saveScreen(directory, 'the last screen\n');
  expect(screenOutput(ended, { limit: 10 }).lines).toEqual(['the last screen']);
});

test('screen output: a reader at the end gets nothing again', () => {
  const view = { directory, screen: 'drawn', end: 90 };
  expect(screenOutput(view, { after: 90, limit: 10 })).toEqual({ lines: [], next: 90 });
  expect(screenOutput(view, { after: 40, limit: 10 })).toEqual({ lines: ['drawn'], next: 90 });
  expect([isFullScreen('codex'), isFullScreen('claude')]).toEqual([true, false]);
});
