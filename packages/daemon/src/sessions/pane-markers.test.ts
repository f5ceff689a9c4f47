import { describe, expect, test } from 'vitest';
import { hasMarkers, readPane } from './pane-markers.js';

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

  test('a question is told in its own words', () => {
    const screen = ['│ Do you want to proceed? │', '│ ❯ 1. Yes │', '│   2. No │'].join('\n');
    expect(readPane('claude', screen).reason).toBe('it asks: Do you want to proceed?');
    expect(readPane('claude', '❯ 1. Red\n  2. Blue').reason).toBe('it asks for a choice');
  });

  test('what is typed is told, and what stands above it', () => {
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

test('of others nothing is known, whatever they show', () => {
  expect(hasMarkers('goose')).toBe(false);
  expect(hasMarkers('constructor')).toBe(false);
  expect(readPane('goose', '> \nesc to interrupt').kind).toBe('unknown');
});
