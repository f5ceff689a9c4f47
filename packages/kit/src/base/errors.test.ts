import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import {
  failWith,
  ifThere,
  jsonIn,
  membersIn,
  messageOf,
  Refusal,
  systemCode,
  UsageError,
  whenThere,
} from './errors.js';

const codes = {
  QUEUE_NOT_FOUND: { status: 404, title: 'Queue not found' },
  RATE_LIMITED: { status: 429, title: 'Too many requests' },
};

test('a refusal carries its code, its sentence and what goes with it', () => {
  const fail = failWith(codes);
  const cause = new Error('disk');
  const refusal = fail('RATE_LIMITED', 'Wait a second.', { retryAfterMs: 1000, cause });
  expect(refusal).toBeInstanceOf(Refusal);
  expect(refusal).toBeInstanceOf(Error);
  expect(refusal.name).toBe('Refusal');
  expect(refusal.code).toBe('RATE_LIMITED');
  expect(refusal.detail).toBe('Wait a second.');
  expect(refusal.extra.retryAfterMs).toBe(1000);
  expect(refusal.message).toBe('RATE_LIMITED: Wait a second.');
  expect(refusal.cause).toBe(cause);
  expect('cause' in fail('QUEUE_NOT_FOUND', 'None.')).toBe(false);
  // @ts-expect-error a code that is not in the table does not compile
  fail('NO_SUCH_CODE', '');
});

test('a usage error has its own name', () => {
  expect(new UsageError('x').name).toBe('UsageError');
});

test.each([
  [new Error('plain'), 'plain'],
  ['text', 'text'],
  [undefined, 'undefined'],
  [null, 'null'],
  [{ message: 'from another realm' }, 'from another realm'],
  [Object.create(null), 'an object without a message'],
  [Object.assign(new Error(''), { code: 'ECONNRESET' }), 'ECONNRESET'],
  [new TypeError(''), 'TypeError'],
  [
    new AggregateError([new Error('connect ECONNREFUSED ::1'), new Error('connect ECONNREFUSED')]),
    'connect ECONNREFUSED ::1; connect ECONNREFUSED',
  ],
])('the text of %o', (thrown, expected) => {
  expect(messageOf(thrown)).toBe(expected);
});

test('the code of a system error, and of nothing else', () => {
  expect(systemCode(Object.assign(new Error('x'), { code: 'ENOENT' }))).toBe('ENOENT');
  expect(systemCode(Object.assign(new Error('x'), { code: 5 }))).toBe('');
  expect(systemCode(new Error('x'))).toBe('');
  expect(systemCode('ENOENT')).toBe('');
  expect(systemCode(null)).toBe('');
});

test('what is not there is undefined; other errors are thrown', async () => {
  expect(ifThere(() => readFileSync(import.meta.filename, 'utf8'))).toContain('ifThere');
  expect(ifThere(() => readFileSync('/nowhere/at-all'))).toBeUndefined();
  expect(ifThere(() => readFileSync(`${import.meta.filename}/below`))).toBeUndefined();
  expect(() => ifThere(() => readFileSync(import.meta.dirname))).toThrow('EISDIR');
  expect(await whenThere(readFile('/nowhere/at-all'))).toBeUndefined();
  await expect(whenThere(readFile(import.meta.dirname))).rejects.toThrow('EISDIR');
});

test('what is not JSON is undefined', () => {
  expect(jsonIn('[1]')).toEqual([1]);
  expect(jsonIn('{"half":')).toBeUndefined();
  expect(membersIn('{"a":1}')).toEqual({ a: 1 });
  expect([membersIn('null'), membersIn('5'), membersIn('{"half":')]).toEqual(
    Array.from({ length: 3 }, () => undefined),
  );
});
