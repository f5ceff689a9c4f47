import { describe, expect, test } from 'vitest';
import { failureIn, failureOnScreen } from './output-reader.js';

const rule = '─'.repeat(40);

describe('on a screen of claude', () => {
  const box = [rule, '> ', rule, '  ? for shortcuts'];

  test.each([
    ['the reason above the prompt', ['● Reading', '', 'no disk left', '', ...box], 'no disk left'],
    [
      'text below the prompt',
      ['● Reading', ...box, '', 'no disk left', '', 'Pane is dead (status 1, Thu Jan 15 09:00)'],
      'no disk left',
    ],
    [
      'an error, not the answer before it, nor a spinner that stopped',
      [
        '> fix Error: 7',
        '● On it.',
        '  ⎿  API Error: 500 {"type":"error"}',
        '✻ Thinking… (3s · esc to interrupt)',
        ...box,
        '  ⏵⏵ accept edits on (shift+tab to cycle)   Context left until auto-compact: 9%',
      ],
      'API Error: 500 {"type":"error"}',
    ],
    [
      'the error of a stack trace below the prompt',
      [
        '● Error: what it talked about',
        ...box,
        'file:///usr/lib/node_modules/claude/cli.js:1027',
        '    throw new TypeError("x")',
        '          ^',
        '',
        "TypeError: Cannot read properties of undefined (reading 'id')",
        '    at Object.run (file:///usr/lib/node_modules/claude/cli.js:1027:11)',
        '    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
        '',
        'Node.js v20.20.0',
      ],
      "TypeError: Cannot read properties of undefined (reading 'id')",
    ],
    [
      'what was said last, not a line of state of one’s own',
      ['● Nothing more to do here', rule, '❯ ', rule, '  opus · ~/mill · main · $0.42 · 12%'],
      'Nothing more to do here',
    ],
    ['nothing where only the screen itself is left', box, undefined],
  ])('it is %s', (_, lines, words) => {
    expect(failureOnScreen('claude', lines)).toBe(words);
  });
});

test('on a screen of codex it is not the footer, nor how to go on', () => {
  const lines = [
    '• Ran make',
    '■ stream disconnected before completion: 503',
    '',
    '› Explain this codebase',
    '',
    '  gpt-5-codex medium · 97% left · ~/mill',
    'Token usage: total=1,234 input=1,000 output=234',
    'To continue this session, run codex resume 0199',
  ];
  expect(failureOnScreen('codex', lines)).toBe('stream disconnected before completion: 503');
  const panic = [
    ...lines,
    "thread 'main' panicked at tui/src/app.rs:12:5:",
    'index out of bounds: the len is 0 but the index is 1',
    'note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace',
  ];
  expect(failureOnScreen('codex', panic)).toBe(
    "thread 'main' panicked at tui/src/app.rs:12:5: index out of bounds: the len is 0 but the index is 1",
  );
});

test('on a screen of gemini it is not the line of state below the prompt', () => {
  const lines = [
    '✦ I will read the file.',
    '✕ [API Error: got status: UNAVAILABLE. {"error":{"code":503}}]',
    'Using: 1 GEMINI.md file                              accepting edits (shift + tab to toggle)',
    '╭──────────────────────────────────╮',
    '│ >   Type your message or @path/to/file │',
    '╰──────────────────────────────────╯',
    '~/mill (main*)    no sandbox (see /docs)    gemini-2.5-pro (99% context left)  ✖ 1 error (ctrl+o for details)',
  ];
  for (const cli of ['gemini', 'agy']) {
    expect(failureOnScreen(cli, lines)).toBe(
      '[API Error: got status: UNAVAILABLE. {"error":{"code":503}}]',
    );
  }
});

test('of a screen that nobody knows it is the error, or the last line', () => {
  expect(failureOnScreen('goose', ['> hello', 'ready | 3%'])).toBe('ready | 3%');
  expect(failureOnScreen('goose', ['Error: no key', 'ready | 3%'])).toBe('Error: no key');
});

test('in an output it is the error, without what a runtime prints around it', () => {
  const python = [
    'Traceback (most recent call last):',
    '  File "/opt/aider/main.py", line 7, in run',
    '    raise ValueError(name)',
    'ValueError: no such model',
  ];
  expect(failureIn(python)).toBe('ValueError: no such model');
  const node = ["Error: ENOSPC: no space left on device, write '/a'", '    at x (y:1:2)', '}'];
  expect(failureIn([...node, 'Node.js v20.20.0'])).toBe(node[0]);
  expect(failureIn(['Error handling is done', 'all is well', 'no disk left'])).toBe('no disk left');
  expect(failureIn(['────', '   '])).toBeUndefined();
  expect(failureIn([`Error: ${'x'.repeat(500)}`])).toHaveLength(300);
});
