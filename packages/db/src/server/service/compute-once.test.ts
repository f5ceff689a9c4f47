import { expect, test } from 'vitest';
import { computeOnce } from './records.js';

test('computeOnce: computes a value once per variant', () => {
  let count = 0;
  const make = ({ text }: { text: string }) => `${text} ${++count}`;
  const [a, b] = [{ text: 'a' }, { text: 'b' }];
  expect([computeOnce(a, make), computeOnce(a, make), computeOnce(b, make)]).toEqual([
    'a 1',
    'a 1',
    'b 2',
  ]);
});

test('computeOnce: caches several variants', () => {
  let count = 0;
  const join = (items: readonly string[], between: string) => `${++count}:${items.join(between)}`;
  const items = ['x', 'y'];
  expect(computeOnce(items, join, '-')).toBe('1:x-y');
  expect(computeOnce(items, join, '+')).toBe('2:x+y');
  expect(computeOnce(items, join, '-')).toBe('1:x-y');
  expect(items).toEqual(['x', 'y']);
});

test('computeOnce: a copy of the object has no cached value', () => {
  const make = ({ text }: { text: string }) => text.toUpperCase();
  const thing = { text: 'a' };
  expect(computeOnce(thing, make)).toBe('A');
  expect(computeOnce({ ...thing, text: 'b' }, make)).toBe('B');
});

test('computeOnce: a failed computation is retried', () => {
  let isBroken = true;
  const make = () => {
    if (isBroken) throw new Error('broken');
    return 'whole';
  };
  const thing = {};
  expect(() => computeOnce(thing, make)).toThrow('broken');
  isBroken = false;
  expect(computeOnce(thing, make)).toBe('whole');
});
