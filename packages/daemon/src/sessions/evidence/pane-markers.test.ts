import { describe, expect, test } from 'vitest';
import { failureAbove, hasMarkers, holdsInput, readPane } from './pane-markers.js';

const rule = '─'.repeat(40);

describe('claude', () => {
  const box = (text = '') => [rule, `> ${text}`, rule, '  ? for shortcuts'];

  test.each([
    ['busy', ['● Reading', '', '✻ Thinking… (3s · ↑ 1.2k tokens · esc to interrupt)', ...box()]],
    ['prompt', ['● All tests pass.', '', ...box()]],
    ['prompt', ['● Hi', '╭──────╮', '│ >    │', '╰──────╯']],
    ['prompt', ['● Hi', rule, '❯ Try "fix the lint errors"', rule]],
    ['unknown', ['● Hi', '', ...box('half a thought')]],
    ['unknown', ['$ make', 'compiling']],
    ['unknown', []],
    [
      'question',
      [rule, ' Bash command', ' Do you want to proceed?', ' ❯ 1. Yes', '   2. No (esc)'],
    ],
    ['question', ['│ Do you want to make this edit to a.ts? │', '│ ❯ 1. Yes │', '│   2. No │']],
    ['question', [' Do you trust the files in this folder?', ' /home/ada', '❯ 1. Yes, proceed']],
  ])('%s: %j', (kind, lines) => {
    expect(readPane('claude', lines.join('\n')).kind).toBe(kind);
  });

  test('screens: the reason quotes the question', () => {
    const screen = ['│ Do you want to proceed? │', '│ ❯ 1. Yes │', '│   2. No │'].join('\n');
    expect(readPane('claude', screen).reason).toBe('it asks: Do you want to proceed?');
    expect(readPane('claude', '❯ 1. Red\n  2. Blue').reason).toBe('it asks for a choice');
  });

  test('screens: the typed text and the lines above it are read', () => {
    const reading = readPane('claude', ['● one', '● two', ...box('hello')].join('\n'));
    expect(reading.input).toBe('hello');
    expect(reading.above).toContain('● two');
  });

  test('what scrolled away long ago counts no more', () => {
    const old = 'Working (esc to interrupt)';
    const screen = [old, ...Array.from({ length: 30 }, (_, n) => `line ${n}`), ...box()].join('\n');
    expect(readPane('claude', screen).kind).toBe('prompt');
  });
});

test('codex and gemini have their own words', () => {
  expect(readPane('codex', '• Working (12s • esc to interrupt)\n\n› \n').kind).toBe('busy');
  expect(readPane('codex', '• Done\n\n› Explain this codebase\n').kind).toBe('prompt');
  expect(readPane('codex', 'Would you like to run the following command?\n› 1. Yes').kind).toBe(
    'question',
  );
  expect(readPane('gemini', '⠋ Pondering (esc to cancel, 3s)\n│ > │').kind).toBe('busy');
  expect(readPane('gemini', '✦ Hi\n│ >   Type your message or @path/to/file │').kind).toBe(
    'prompt',
  );
  expect(readPane('agy', 'Apply this change?\n│ ● 1. Yes │').kind).toBe('question');
});

test('qwen shows the time before the key that cancels', () => {
  const screen = '⠴ Counting electrons... (2s · ↓ 12 tokens · esc to cancel)\n│ > │';
  expect(readPane('qwen', screen).kind).toBe('busy');
});

test('an attempt to reach the provider again is the reason of a busy agent', () => {
  const screen =
    '✻ Thinking… (3s · esc to interrupt)\n  ⎿ Retrying in 5 seconds… (attempt 3/10)\n> ';
  expect(readPane('claude', screen).reason).toContain('Retrying in 5 seconds');
});

test('an error below what was last typed ended the turn', () => {
  const error = '■ {"error":{"message":"fake model error 400"}}';
  const ended = readPane('codex', `› please\n${error}\n› Ask Codex to do anything`);
  expect(failureAbove('codex', ended)).toContain('fake model error 400');
  const later = readPane('codex', `${error}\n› again\n• done\n› Ask Codex to do anything`);
  expect(failureAbove('codex', later)).toBeUndefined();
  const gemini = readPane('gemini', ' > please\n✕ [API Error: quota]\n >   Type your message');
  expect(failureAbove('gemini', gemini)).toBe('[API Error: quota]');
});

describe('the input box holds a text', () => {
  const holds = (cli: string, screen: string, text: string) =>
    holdsInput(readPane(cli, screen), text);
  const rules = '─'.repeat(20);

  test('only when it is all of it', () => {
    expect(holds('claude', `${rules}\n> /compact\n${rules}`, '/compact')).toBe(true);
    expect(holds('claude', `${rules}\n> draft /compact\n${rules}`, '/compact')).toBe(false);
    expect(holds('claude', `${rules}\n> /comp\n${rules}`, '/compact')).toBe(false);
    expect(holds('claude', `${rules}\n> \n${rules}`, '/compact')).toBe(false);
    expect(holds('claude', 'no box', 'text')).toBe(false);
    expect(holds('gemini', ' > /compress\n compress  Compresses the context', '/compress')).toBe(
      true,
    );
  });

  test('over several lines, wrapped or as a note', () => {
    const box = '│ > one two │\n│   three   │\n╰───────────╯';
    expect(holds('gemini', box, 'one two\nthree')).toBe(true);
    expect(holds('gemini', box, 'one two\nfour')).toBe(false);
    expect(holds('claude', '> [Pasted text #1 +12 lines]', 'a\n'.repeat(12))).toBe(true);
  });

  test('with the cursor of qwen behind it', () => {
    expect(
      holds('qwen', `${rules}\n> [[fail 400]] please \u200b\n${rules}`, '[[fail 400]] please'),
    ).toBe(true);
  });

  test('that is cut at its edge', () => {
    const long = 'word '.repeat(60);
    expect(holds('claude', `> ${long.slice(0, 120)}\n${rules}`, long)).toBe(true);
  });
});

test('of others nothing is known, whatever they show', () => {
  expect(hasMarkers('goose')).toBe(false);
  expect(hasMarkers('constructor')).toBe(false);
  expect(readPane('goose', '> \nesc to interrupt').kind).toBe('unknown');
});

test('screens: a question for a permission names the command', () => {
  const claude = ' Bash command\n   make test\n   Runs it\n Do you want to proceed?\n ❯ 1. Yes';
  const codex = '  Would you like to run the following command?\n  $ make test\n› 1. Yes, proceed';
  expect(readPane('claude', claude).reason).toBe('it asks: Do you want to proceed? (make test)');
  expect(readPane('codex', codex).reason).toBe(
    'it asks: Would you like to run the following command? (make test)',
  );
  const gemini = '│ ? Shell  make test   │\n│ Allow execution of [Shell]? │\n│ ● 1. Allow once │';
  expect(readPane('gemini', gemini).reason).toBe(
    'it asks: Allow execution of [Shell]? (make test)',
  );
});

test('screens: a question may have an explanation behind it', () => {
  const dialog =
    ' Quick safety check: Is this a project you created or one you trust? (Like your own code,\n' +
    ' or work from your team).\n ❯ 1. Yes, I trust this folder\n   2. No, exit';
  expect(readPane('claude', dialog).reason).toBe(
    'it asks: Quick safety check: Is this a project you created or one you trust?',
  );
});

test('screens: an answered dialog above the input box is no question any more', () => {
  const dialog = [' Do you trust the files in this folder?', ' ● 1. Trust folder (mill)'];
  expect(readPane('gemini', dialog.join('\n')).kind).toBe('question');
  const after = [...dialog, ' restarting to apply the trust changes...', ' >   Type your message'];
  expect(readPane('gemini', after.join('\n'))).toMatchObject({ kind: 'prompt', input: '' });
});
