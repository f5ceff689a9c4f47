import { expect, test } from 'vitest';
import { TerminalText } from './terminal-text.js';

function shown(...texts: string[]): string[] {
  const terminal = new TerminalText();
  for (const text of texts) terminal.write(text);
  return terminal.rows.map((row) => row.trimEnd());
}

test.each([
  ['plain\nlines\n', ['plain', 'lines', '']],
  ['windows\r\nlines\r\n', ['windows', 'lines', '']],
  ['10 %\r50 %\r100 %', ['100 %']],
  ['abc\b\bX', ['aXc']],
  ['\u001b[31mred\u001b[0m', ['red']],
  ['\u001b]0;title\u0007text', ['text']],
  ['\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\', ['link']],
  ['a\u001b[5Cb', ['a     b']],
  ['one\ntwo\n\u001b[2A\u001b[2Knew\n\u001b[2K2\n', ['new', '2', '']],
  ['one\ntwo\n\u001b[2A\u001b[Jnew\n', ['new', '']],
  ['a\tb', ['a       b']],
  ['half \u001b[', ['half']],
  ['\u001b[?2004h\u001b[?25l> ', ['>']],
  ['\u001bPq#0;2\u001b\\sixel', ['sixel']],
  ['\u001b(Btext\u001b=', ['text']],
  ['\u0000\u0007bell', ['bell']],
])('%j', (text, lines) => {
  expect(shown(text)).toEqual(lines);
});

test('frames of a spinner are one line', () => {
  const frames = ['✻', '✶', '✳'].map((sign) => `\u001b[2A\r\u001b[J${sign} Working\r\n> \r\n`);
  expect(shown('Banner\r\n', '- Working\r\n> \r\n', ...frames)).toEqual([
    'Banner',
    '✳ Working',
    '>',
    '',
  ]);
});
