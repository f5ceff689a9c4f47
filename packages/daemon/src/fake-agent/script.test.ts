import { expect, test } from 'vitest';
import { Keys } from './screen.js';
import { answerTo, optionsOf, stepsOf } from './script.js';

test('a prompt is a list of things to do', () => {
  expect(stepsOf('sleep 0.5, ask, context 450k and write a/b.txt, then commit')).toEqual([
    { do: 'sleep', ms: 500 },
    { do: 'ask', question: 'Do you want to proceed?' },
    { do: 'context', tokens: 450_000 },
    { do: 'write', file: 'a/b.txt' },
    { do: 'commit', message: 'Work of the fake agent' },
  ]);
  expect(stepsOf('crash 3 unless done.txt limit 90 wait go.txt')).toEqual([
    { do: 'crash', code: 3, unless: 'done.txt' },
    { do: 'limit', minutes: 90 },
    { do: 'wait', file: 'go.txt' },
  ]);
  expect(stepsOf('say hello, ask nobody')).toEqual([{ do: 'say', text: 'hello, ask nobody' }]);
  expect(stepsOf('Fix the failing test')).toEqual([]);
  expect(answerTo('Fix it\nnow')).toBe('Done: Fix it');
});

test('it takes the arguments of claude', () => {
  const print = ['--print', '--output-format', 'stream-json', '--verbose'];
  const more = ['--permission-mode', 'acceptEdits', '--model', 'opus', '--session-id', 's1'];
  expect(optionsOf([...print, ...more])).toEqual({
    isPrint: true,
    isJson: true,
    sessionId: 's1',
    resume: undefined,
    model: 'opus',
    prompt: undefined,
  });
  expect(optionsOf(['--resume', 's2', '--', '-v']).prompt).toBe('-v');
  expect(optionsOf(['do it'])).toMatchObject({ isPrint: false, prompt: 'do it' });
});

test('what is typed is taken apart, also when a paste comes in pieces', () => {
  const keys = new Keys();
  expect(keys.take('ab\r')).toEqual([
    { key: 'text', text: 'ab', isPaste: false },
    { key: 'enter' },
  ]);
  expect(keys.take('\u001b')).toEqual([{ key: 'escape' }]);
  expect(keys.take('\u001b[A\u001bOP')).toEqual([]);
  expect(keys.take('\u001b[200~one\n')).toEqual([]);
  expect(keys.take('two\u001b[201~\r')).toEqual([
    { key: 'text', text: 'one\ntwo', isPaste: true },
    { key: 'enter' },
  ]);
});
