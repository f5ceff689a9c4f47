import type { Refusal } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { readPrecondition, requirePrecondition } from './bodies.js';

const holds = (ifMatch: string | undefined, version: number | undefined) => {
  const current = version === undefined ? undefined : { version };
  try {
    requirePrecondition(readPrecondition(ifMatch), current);
    return true;
  } catch (error) {
    expect((error as Refusal).code).toBe('PRECONDITION_FAILED');
    return false;
  }
};

test('without If-Match anything goes', () => {
  expect(holds(undefined, undefined)).toBe(true);
  expect(holds(undefined, 7)).toBe(true);
});

test.each([
  ['"3"', true],
  [' "3" ', true],
  ['"1", "3"', true],
  ['"1","3"', true],
  ['W/"1", "3"', true],
  ['*', true],
  [' * ', true],
  ['"4"', false],
  ['W/"3"', false],
  ['3', true],
  ['4', false],
  ['03', false],
  ['3, 4', false],
  ['"3', false],
  ['"3", 4', false],
  ['"3" "3"', false],
  ['"03"', false],
  ['"3.0"', false],
  ['"*"', false],
  ['', false],
  [',', false],
  ['"1e999"', false],
])('If-Match: %s of version 3 is %s', (ifMatch, expected) => {
  expect(holds(ifMatch, 3)).toBe(expected);
});

test('of a queue that is not there nothing holds', () => {
  for (const ifMatch of ['*', '"0"', '"1"', '"NaN"']) expect(holds(ifMatch, undefined)).toBe(false);
});
