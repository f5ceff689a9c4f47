import { expect, test } from 'vitest';
import { openTerminal } from '../base/terminal.js';
import { logWriter } from './log-lines.js';
import { parts } from './parts.js';

const [db, queue] = parts as [(typeof parts)[0], (typeof parts)[0]];

/** What is written to stderr for lines that parts log. */
function written(args: readonly string[], isTTY: boolean, lines: [typeof db, string][]): string {
  let err = '';
  const stderr = { isTTY, columns: 80, write: (text: string) => (err += text) };
  const terminal = openTerminal(args, { stdout: stderr, stderr, env: { NO_COLOR: '1' } });
  const write = logWriter(terminal);
  for (const [part, line] of lines) write(part, line);
  return err;
}

const line =
  '{"level":"warn","time":"2026-01-15T09:30:01.000Z","component":"queue","pid":7,"file":"a b","msg":"made it"}';

test('every line bears the name of its part', () => {
  expect(
    written([], false, [
      [db, 'plain words'],
      [queue, line],
    ]),
  ).toBe(`db     plain words\nqueue  ${line}\n`);
});

test('a person gets it readable, without what would move the cursor', () => {
  const shown = written([], true, [
    [queue, line],
    [db, 'odd\u001B[2J'],
    [db, '{"no":"log"}'],
    [db, '{"component":"db","msg":"ctl: no disk"}'],
  ]);
  expect(shown.replace(/\d\d:\d\d:\d\d/, 'TIME')).toBe(
    'queue  TIME warn  made it  file="a b"\ndb     odd␛[2J\ndb     {"no":"log"}\ndb     ctl: no disk\n',
  );
});

test('a program that asked for JSON gets the lines as they are', () => {
  expect(written(['--json'], false, [[queue, line]])).toBe(`${line}\n`);
});
