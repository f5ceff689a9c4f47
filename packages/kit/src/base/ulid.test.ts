import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  seededRandom,
  systemRandom,
  isUlid,
  monotonicUlids,
  normalizeUlid,
  ulidTime,
} from './clock-and-random.js';

const latest = 2 ** 48 - 1;
const zeros = (bytes: Uint8Array) => void bytes.fill(0);
const ones = (bytes: Uint8Array) => void bytes.fill(255);

const counting = (bytes: Uint8Array) => bytes.forEach((_, i) => (bytes[i] = i + 8));

test('a ULID spells its time and its chance in Crockford characters', () => {
  expect(monotonicUlids(zeros)(0)).toBe('00000000000000000000000000');
  expect(monotonicUlids(ones)(latest)).toBe('7ZZZZZZZZZZZZZZZZZZZZZZZZZ');
  // The example of the ULID specification.
  expect(monotonicUlids(zeros)(1_469_918_176_385)).toMatch(/^01ARYZ6S41/);
  expect(monotonicUlids(counting)(32)).toBe('000000001089ABCDEFGHJKMNPQ');
});

test('ids made within a millisecond count up', () => {
  const next = monotonicUlids(zeros);
  const ids = Array.from({ length: 1026 }, () => next(5));
  expect(ids[1]).toBe('00000000050000000000000001');
  expect(ids[1023]).toBe('000000000500000000000000ZZ');
  expect(ids[1024]).toBe('00000000050000000000000100');
});

test('when the random part is used up, it carries into the time', () => {
  const next = monotonicUlids(ones);
  expect(next(5)).toBe('0000000005ZZZZZZZZZZZZZZZZ');
  expect(next(5)).toBe('0000000006ZZZZZZZZZZZZZZZZ');
  expect(next(3)).toBe('0000000007ZZZZZZZZZZZZZZZZ');
  expect(next(8)).toBe('0000000008ZZZZZZZZZZZZZZZZ');
});

describe('ids strictly grow', () => {
  test('whatever the clock does', () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.constant(0) },
      fc.integer({ min: -10_000, max: 10_000 }),
      fc.integer({ min: -(10 ** 12), max: 10 ** 12 }),
    );
    fc.assert(
      fc.property(fc.integer(), fc.array(step, { maxLength: 300 }), (seed, steps) => {
        const random = seededRandom(seed);
        let now = 1.7e12;
        let newest = now;
        let previous = '';
        for (const change of steps) {
          now = Math.max(0, now + change);
          newest = Math.max(newest, now);
          const id = random.ulid(now);
          expect(id > previous).toBe(true);
          expect(isUlid(id)).toBe(true);
          expect(ulidTime(id)).toBeGreaterThanOrEqual(now);
          expect(ulidTime(id)).toBeLessThanOrEqual(newest);
          previous = id;
        }
      }),
    );
  });

  test('also when many are made per millisecond, from any start', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (start) => {
        const next = monotonicUlids((bytes) => bytes.set(start));
        let previous = next(1000);
        for (let i = 0; i < 3000; i++) {
          const id = next(1000);
          if (id <= previous) throw new Error(`${id} after ${previous}`);
          previous = id;
        }
      }),
      { numRuns: 50 },
    );
  });

  test('and a hundred thousand of them are all different', () => {
    const ids = new Set(Array.from({ length: 100_000 }, () => systemRandom.ulid(1.7e12)));
    expect(ids.size).toBe(100_000);
  });
});

describe('a time that does not fit', () => {
  test.each([-1, 0.5, Number.NaN, Infinity, -Infinity, 2 ** 48])('%d is refused', (bad) => {
    expect(() => monotonicUlids(zeros)(bad)).toThrow(RangeError);
  });

  test('leaves the next ids as they would have been', () => {
    const next = monotonicUlids(zeros);
    next(5);
    for (const bad of [Infinity, 7.5, Number.NaN, -3]) expect(() => next(bad)).toThrow(RangeError);
    expect(next(5)).toBe('00000000050000000000000001');
    expect(next(6)).toBe('00000000060000000000000000');
  });

  test('is also what follows the very last id', () => {
    const next = monotonicUlids(ones);
    next(latest);
    expect(() => next(latest)).toThrow(RangeError);
  });
});

test.each([
  ['01ARZ3NDEKTSV4RRFFQ69G5FAV', true],
  ['01arz3ndektsv4rrffq69g5fav', true],
  ['7ZZZZZZZZZZZZZZZZZZZZZZZZZ', true],
  ['8ZZZZZZZZZZZZZZZZZZZZZZZZZ', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FA', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FAVV', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FAI', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FAL', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FAO', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FAU', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FAſ', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FA\n', false],
  ['01ARZ3NDEKTSV4RRFFQ69G5FAV\n', false],
  ['', false],
])('%j is a ULID: %s', (text, expected) => {
  expect(isUlid(text)).toBe(expected);
});

test('the time of an id is read back, in either case', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: latest }), (time) => {
      const id = monotonicUlids(zeros)(time);
      expect(ulidTime(id)).toBe(time);
      expect(ulidTime(normalizeUlid(id.toLowerCase()))).toBe(time);
    }),
  );
});
