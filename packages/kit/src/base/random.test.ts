import { describe, expect, test } from 'vitest';
import { seededRandom, systemRandom, type Random } from './clock-and-random.js';

const draw = (seed: number) => {
  const random = seededRandom(seed);
  return [random.next(), random.integer(0, 2 ** 32), ...random.bytes(9), random.ulid(1)].join();
};

describe('a seed', () => {
  test('gives this sequence, on every machine and in every version', () => {
    const random = seededRandom(42);
    expect(Array.from({ length: 4 }, () => random.next())).toEqual([
      0.6723040737935778, 0.9785094327806924, 0.5791664170491363, 0.6982557780873161,
    ]);
    expect(Array.from({ length: 12 }, () => random.integer(1, 6))).toEqual([
      3, 4, 5, 6, 3, 4, 4, 4, 4, 4, 1, 2,
    ]);
    expect(Buffer.from(random.bytes(7)).toString('hex')).toBe('d639cf4451b18a');
    expect(random.ulid(1_700_000_000_000)).toBe('01HF7YAT00RBMADSV1H6E88YGD');
  });

  test('gives the same again, and another seed another one', () => {
    expect(draw(7)).toBe(draw(7));
    expect(new Set(Array.from({ length: 1000 }, (_, seed) => draw(seed))).size).toBe(1000);
  });
});

describe.each([
  ['the system', systemRandom],
  ['a seed', seededRandom(1)],
])('chance from %s', (_name, random: Random) => {
  test('next() fills the range from 0 to 1 evenly and never reaches 1', () => {
    const buckets = Array.from({ length: 10 }, () => 0);
    for (let i = 0; i < 20_000; i++) {
      const value = random.next();
      expect(value >= 0 && value < 1).toBe(true);
      buckets[Math.floor(value * 10)]!++;
    }
    // Ten standard deviations: a fair source does not fail this in the life of the sun.
    for (const count of buckets) expect(Math.abs(count - 2000)).toBeLessThan(430);
  });

  test('integer() gives both ends and nothing beyond', () => {
    const seen = new Set(Array.from({ length: 2000 }, () => random.integer(-2, 3)));
    expect([...seen].toSorted((a, b) => a - b)).toEqual([-2, -1, 0, 1, 2, 3]);
    expect(random.integer(5, 5)).toBe(5);
  });

  test('bytes() gives fresh bytes of any length', () => {
    for (const length of [0, 1, 7, 16, 4096, 4097, 100_000]) {
      expect(random.bytes(length)).toHaveLength(length);
    }
    const drawn = Array.from({ length: 5000 }, () => Buffer.from(random.bytes(16)).toString('hex'));
    expect(new Set(drawn).size).toBe(5000);
    expect(new Set(random.bytes(20_000)).size).toBe(256);
  });

  test('what was drawn does not change afterwards', () => {
    const bytes = random.bytes(16);
    const copy = [...bytes];
    for (let i = 0; i < 5000; i++) random.bytes(16);
    expect([...bytes]).toEqual(copy);
  });
});
