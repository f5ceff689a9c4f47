import { expect, test } from 'vitest';
import { failureAbove, holdsInput, readPane } from './pane-markers.js';

const side = (text: string) => ' '.repeat(40) + text;

/** A recorded screen: a message, an answer, the input box and what is below it. */
const screen = (typed: string, status: string, answer: string[]) =>
  [
    `  ┃${side('hello there')}`,
    '  ┃  say hello',
    `  ┃${side('Context')}`,
    side('110 tokens'),
    ...answer,
    '',
    '  ┃',
    `  ┃  ${typed}`,
    `  ┃${side('/src/mill')}`,
    `  ┃  Build · fake-1 fake${side('repository:main')}`,
    `  ╹${'▀'.repeat(60)}`,
    `   ${status}${side('ctrl+p commands    • OpenCode 1.18.18')}`,
  ].join('\n');

const answered = ['     hello', '', '     ▣  Build · fake-1 · 6.8s'];

test('opencode screens: busy, idle and typed text are distinguished', () => {
  const busy = readPane('opencode', screen('', '■■■⬝⬝  esc interrupt', ['     ▣  Build · fake-1']));
  expect(busy).toMatchObject({ kind: 'busy', input: '' });
  const idle = readPane('opencode', screen('', '/src/mill', answered));
  expect(idle).toMatchObject({ kind: 'prompt', input: '' });
  expect(failureAbove('opencode', idle)).toBeUndefined();
  const fresh = readPane('opencode', screen('Ask anything... "Fix it"', '/src/mill', []));
  expect(fresh).toMatchObject({ kind: 'prompt', input: '' });
  const typed = readPane('opencode', screen('make it so', '/src/mill', answered));
  expect(holdsInput(typed, 'make it so')).toBe(true);
  expect(holdsInput(typed, 'make it')).toBe(false);
});

test('opencode screens: a command is typed only when the list has selected it', () => {
  const list = (...names: string[]) =>
    names.map((name) => `  ┃ ${name}      What it does${' '.repeat(30)}┃`);
  const withList = (typed: string, ...names: string[]) => {
    const lines = screen(typed, '/src/mill', answered).split('\n');
    lines.splice(-6, 0, ...list(...names));
    return readPane('opencode', lines.join('\n'));
  };
  const reading = withList('/compact', '/compact', '/review');
  expect(reading.input).toBe('/compact');
  expect(holdsInput(reading, '/compact')).toBe(true);
  // In a new conversation there is nothing to compact, and Enter would run the review.
  expect(holdsInput(withList('/compact', '/review'), '/compact')).toBe(false);
});

test('opencode screens: the error of a turn, and a retry', () => {
  const error = ['  ┃', '  ┃  fake model error 400', '  ┃', '', '     ▣  Build · fake-1'];
  const failed = readPane('opencode', screen('', '/src/mill', error));
  expect(failed.kind).toBe('prompt');
  expect(failureAbove('opencode', failed)).toBe('fake model error 400');
  const status = '⬝⬝ fake model error 500 [retrying attempt #2]      esc interrupt';
  const retry = readPane('opencode', screen('', status, ['     ▣  Build · fake-1']));
  expect(retry).toMatchObject({
    kind: 'busy',
    reason: expect.stringContaining('retrying attempt'),
  });
});

test('opencode screens: a permission dialog is a question that names the command', () => {
  const dialog = [
    '  ┃  run it',
    '  ┃',
    '  ┃  △ Permission required',
    '  ┃    # Shell command',
    '  ┃',
    '  ┃  $ make test',
    `  ┃${side('/src/mill')}`,
    '  ┃   Allow once   Allow always   Reject        ⇆ select  enter confirm',
  ].join('\n');
  expect(readPane('opencode', dialog)).toMatchObject({
    kind: 'question',
    reason: 'it asks: Permission required? (make test)',
  });
});
