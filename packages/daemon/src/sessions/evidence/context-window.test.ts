import { expect, test } from 'vitest';
import { windowByName } from './observation.js';
import { windowOnScreen } from './pane-watch.js';

test('context window: a marked model has the large one, other names say nothing', () => {
  expect(windowByName([null, 'claude-opus-4-8', 'claude-opus-4-8[1m]'])).toBe(1_000_000);
  expect(windowByName([undefined, 'claude-opus-4-8'])).toBeUndefined();
});

test('context window: the first screen of claude names it', () => {
  const screen = (model: string) =>
    `╭─── Claude Code v2.1.197 ──╮\n│  ${model} · API Usage Billing │`;
  expect(windowOnScreen('claude', screen('Opus 4.8 (1M context)'))).toBe(1_000_000);
  expect(windowOnScreen('claude', screen('Haiku 4.5'))).toBe(200_000);
  expect(windowOnScreen('codex', screen('Haiku 4.5'))).toBeUndefined();
  expect(windowOnScreen('claude', 'Fable 5 · a story')).toBeUndefined();
});
