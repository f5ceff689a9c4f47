import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OutputFormat } from '../../core/session.js';
import { OutputLog } from '../drivers/session-files.js';
import { readOutput } from './output.js';

let directory: string;
let log: OutputLog;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'mr-output-'));
  log = new OutputLog(directory, 1_000);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const write = (text: string) => appendFileSync(log.path, text);

function read(
  from: { after?: number; limit?: number } = {},
  { format = 'text' as OutputFormat, isOver = false } = {},
) {
  const { after, limit = 100 } = from;
  return readOutput({ log, format, isOver }, after === undefined ? { limit } : { after, limit });
}

describe('text', () => {
  test('an agent that has said nothing has no lines', () => {
    expect(read()).toEqual({ lines: [], next: 0 });
    expect(read({ after: 0 })).toEqual({ lines: [], next: 0 });
  });

  test('is followed line by line, and a line that is not whole waits', () => {
    write('one\ntwo\nthr');
    expect(read({ after: 0 })).toEqual({ lines: ['one', 'two'], next: 8 });
    expect(read({ after: 8 })).toEqual({ lines: [], next: 8 });
    write('ee\n');
    expect(read({ after: 8 })).toEqual({ lines: ['three'], next: 14 });
    expect(read({ after: 0, limit: 2 })).toEqual({ lines: ['one', 'two'], next: 8 });
    expect(read({ limit: 2 })).toEqual({ lines: ['two', 'three'], next: 14 });
  });

  test('that is over ends with its last line, whole or not', () => {
    write('one\nlast');
    expect(read({ after: 0 }, { isOver: true })).toEqual({ lines: ['one', 'last'], next: 8 });
    expect(read({}, { isOver: true })).toEqual({ lines: ['one', 'last'], next: 8 });
    expect(read({ after: 8 }, { isOver: true })).toEqual({ lines: [], next: 8 });
  });

  test('keeps empty lines and letters of many bytes', () => {
    write('ä\n\n😀\n');
    expect(read({ after: 0 }).lines).toEqual(['ä', '', '😀']);
  });
});

describe('reports', () => {
  test('codex: the error of a turn is shown once', () => {
    write('{"type":"error","message":"fake model error 400"}\n');
    write('{"type":"turn.failed","error":{"message":"fake model error 400"}}\n');
    write('{"type":"turn.failed","error":{"message":"another"}}\n');
    const { lines } = read({}, { format: 'codex-json' });
    expect(lines).toEqual(['fake model error 400', 'another']);
  });

  const said = (text: string) =>
    `${JSON.stringify({ type: 'assistant', message: { content: [{ type: 'text', text }] } })}\n`;

  test('become what a person reads, and a report of many lines can be read in pieces', () => {
    write(said('one\ntwo\nthree'));
    write('plain warning\n');
    write(said('four'));
    write(`${JSON.stringify({ type: 'result', is_error: false, result: 'four' })}\n`);
    const format = 'claude-json' as const;
    const whole = ['one', 'two', 'three', 'plain warning', 'four'];
    expect(read({ after: 0 }, { format }).lines).toEqual(whole);
    for (const limit of [1, 2, 3, 4]) {
      const seen: string[] = [];
      let after = 0;
      for (let step = 0; step < 20; step++) {
        const page = read({ after, limit }, { format });
        expect(page.lines.length).toBeLessThanOrEqual(limit);
        seen.push(...page.lines);
        after = page.next;
      }
      expect(seen).toEqual(whole);
      expect(after).toBe(log.end());
    }
  });

  test('of codex become text, too', () => {
    const item = { type: 'agent_message', text: 'hello' };
    write(`${JSON.stringify({ type: 'item.completed', item })}\n`);
    write(`${JSON.stringify({ type: 'turn.failed', error: { message: 'no luck' } })}\n`);
    expect(read({}, { format: 'codex-json' }).lines).toEqual(['hello', 'no luck']);
  });
});

test('a long output is cut at its start, and positions stay what they were', () => {
  const line = (n: number) => `line ${String(n).padStart(4, '0')}\n`;
  for (let n = 0; n < 500; n++) {
    write(line(n));
    log.trim();
  }
  const size = line(0).length;
  expect(log.end()).toBe(500 * size);
  expect(log.start()).toBeGreaterThan(0);
  expect(log.end() - log.start()).toBeLessThanOrEqual(2_000 + size);
  expect(read({ after: 480 * size, limit: 2 })).toEqual({
    lines: ['line 0480', 'line 0481'],
    next: 482 * size,
  });
  const oldest = read({ after: 0, limit: 1 });
  expect(oldest.lines).toEqual([line(log.start() / size).trimEnd()]);
  expect(read({ limit: 1 })).toEqual({ lines: ['line 0499'], next: 500 * size });
});

test('over ACP a line that was written in parts is one line at the end of an output', () => {
  const event = (value: object) => write(`${JSON.stringify(value)}\n`);
  event({ type: 'thought', text: 'Let me ' });
  event({ type: 'thought', text: 'see.\nYes.', isRest: true });
  event({ type: 'message', text: 'All is ' });
  event({ type: 'message', text: 'well', isRest: true });
  event({ type: 'message', text: '.\n', isRest: true });
  const format = 'acp-json';
  const lines = ['[thought] Let me see.', '[thought] Yes.', 'All is well.'];
  expect(read({}, { format }).lines).toEqual(lines);
  expect(read({ after: 0 }, { format }).lines).toContain('All is');
});
