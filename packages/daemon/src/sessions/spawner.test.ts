import { expect, test } from 'vitest';
import { backendFor, type Backends } from '../registry/backends.js';
import { checkRun, hashOf, nameFrom } from './spawner.js';

test.each([
  ['Fix the test', 'Fix the test'],
  ['\n\n  Fix   the test\nand more', 'Fix the test'],
  ['tab\there', 'tab'],
  [' \n ', 'agent'],
  [
    'Retry the upload once when the connection drops, and write a test for it',
    'Retry the upload once when the connection drops, and write…',
  ],
])('the name of %j', (prompt, name) => {
  expect(nameFrom(prompt)).toBe(name);
});

test('a name is good for the contract, whatever the prompt', () => {
  for (const prompt of ['\u0000', '\u007f\u0001', 'a\u0007b', 'x'.repeat(500)]) {
    const name = nameFrom(prompt);
    // eslint-disable-next-line no-control-regex
    expect(name).toMatch(/^[^\x00-\x1f\x7f]{1,128}$/);
  }
});

test('a prompt that is typed holds no keys', () => {
  const check = (driver: 'tmux' | 'headless', prompt: string) => () =>
    checkRun('goose', driver, { prompt }, []);
  for (const key of ['\u001B[201~', '\u0004', '\u007F', '\u009B']) {
    expect(check('tmux', `a${key}`)).toThrow('`prompt` holds control characters');
    expect(check('headless', `a${key}`)).not.toThrow();
  }
  expect(check('tmux', 'a\tb\r\nc')).not.toThrow();
});

test('two requests are the same whatever the order of their members', () => {
  const request = { prompt: 'x', backend: 'claude', tags: ['a', 'b'] };
  const turned = { tags: ['a', 'b'], backend: 'claude', prompt: 'x' };
  expect(hashOf(turned)).toBe(hashOf(request));
  expect(hashOf({ ...request, tags: ['b', 'a'] })).not.toBe(hashOf(request));
  expect(hashOf({ ...request, force: true })).not.toBe(hashOf(request));
});

test.each([
  [[], 'install one, such as claude or codex'],
  [[{ id: 'claude', enabled: false }], 'enable one, such as with `ctl backend enable claude`'],
  [
    [
      { id: 'claude', enabled: true },
      { id: 'codex', enabled: true },
    ],
    '`ctl backend default <id>`',
  ],
])('spawn: without a usable default backend, says what to do: %j', async (rows, next) => {
  const backends = rows.map((row) => ({ ...row, installed: true, default: false }));
  const registry = { read: () => Promise.resolve({ backends }) } as unknown as Backends;
  await expect(backendFor(registry, undefined)).rejects.toMatchObject({
    code: 'BACKEND_NOT_ELIGIBLE',
    detail: expect.stringContaining(next) as string,
  });
});
