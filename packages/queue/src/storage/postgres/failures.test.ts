import { expect, test } from 'vitest';
import { StorageUnavailable } from '../port/task-store.js';
import { isAway, isConflict, unavailable } from './connections.js';

const withCode = (code: string) => Object.assign(new Error('no'), { code });

test.each(['08006', '57P01', '57P03', '57014', '53300', '25006', '28P01', 'ECONNREFUSED', 'EPIPE'])(
  '%s means that the database is away',
  (code) => expect(isAway(withCode(code))).toBe(true),
);

test.each(['22021', '23505', '42P01', '40001', '40P01'])('%s does not', (code) => {
  expect(isAway(withCode(code))).toBe(false);
});

test.each(['Connection terminated unexpectedly', 'Query read timeout'])(
  'nor has the driver a code for "%s"',
  (message) => expect(isAway(new Error(message))).toBe(true),
);

test('conflicts are those that the database undid', () => {
  expect([withCode('40001'), withCode('40P01'), withCode('23505')].map(isConflict)).toEqual([
    true,
    true,
    false,
  ]);
});

test('what is unavailable already stays what it is', () => {
  const error = new StorageUnavailable('away');
  expect(unavailable(error)).toBe(error);
  expect(unavailable(new Error('gone')).message).toBe('PostgreSQL does not respond: gone');
});
