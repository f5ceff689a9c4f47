import { describe, expect, test } from 'vitest';

interface Operation {
  key?: string;
  kind: 'write' | 'read';
  value: number | undefined;
  start: number;
  end: number;
}

interface Checkers {
  isLinearizable(operations: Operation[]): boolean;
  violatedKeys(operations: Operation[]): string[];
  insertProblems(acked: number[], found: number[]): { lost: number[]; doubled: number[] };
  updateProblems(
    counters: { key: string; rev: number; acknowledged: number; unknown: number }[],
  ): string[];
  sharedEpochs(promotions: { node: number; epoch: number }[]): number[];
  percentile(values: number[], share: number): number | undefined;
}

const file = new URL('../../failover/checkers.mjs', import.meta.url).href;
const checkers = (await import(file)) as Checkers;
const { isLinearizable, violatedKeys, insertProblems, updateProblems } = checkers;
const { sharedEpochs, percentile } = checkers;

const write = (value: number, start: number, end: number): Operation => ({
  kind: 'write',
  value,
  start,
  end,
});
const read = (value: number | undefined, start: number, end: number): Operation => ({
  kind: 'read',
  value,
  start,
  end,
});

describe('linearizability checker', () => {
  test.each<[string, Operation[]]>([
    ['nothing', []],
    ['reads before the first write', [read(undefined, 0, 1), write(1, 2, 3), read(1, 4, 5)]],
    ['a read during a write may see it', [write(1, 0, 10), read(1, 2, 3), read(1, 4, 5)]],
    ['a read during a write may not see it', [write(1, 0, 10), read(undefined, 2, 3)]],
    [
      'an unknown write may be applied late',
      [write(1, 0, Infinity), write(2, 1, 2), read(1, 9, 10)],
    ],
    [
      'an unknown write may never be applied',
      [write(1, 0, Infinity), write(2, 1, 2), read(2, 9, 10)],
    ],
    ['concurrent writes in any order', [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)]],
    [
      'two reads between concurrent writes',
      [write(1, 0, 10), write(2, 0, 10), read(2, 3, 4), read(1, 5, 6), read(1, 11, 12)],
    ],
  ])('accepts: %s', (_, operations) => {
    expect(isLinearizable(operations)).toBe(true);
  });

  test.each<[string, Operation[]]>([
    ['a lost acknowledged write', [write(1, 0, 1), read(undefined, 2, 3)]],
    ['a stale read', [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]],
    ['a value that nobody wrote', [read(7, 0, 1)]],
    ['a read before its write began', [read(1, 0, 1), write(1, 2, 3)]],
    ['a value that goes back', [write(1, 0, 1), write(2, 2, 9), read(2, 3, 4), read(1, 5, 6)]],
    [
      'an unknown write that was seen and then lost',
      [write(1, 0, 1), write(2, 2, Infinity), read(2, 3, 4), read(1, 5, 6)],
    ],
    [
      'two clients that disagree on the order of writes',
      [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12), read(2, 13, 14)],
    ],
  ])('finds: %s', (_, operations) => {
    expect(isLinearizable(operations)).toBe(false);
  });

  test('names the keys that are violated', () => {
    const good = [write(1, 0, 1), read(1, 2, 3)].map((each) => ({ ...each, key: 'a' }));
    const bad = [write(2, 0, 1), read(undefined, 2, 3)].map((each) => ({ ...each, key: 'b' }));
    expect(violatedKeys([...good, ...bad])).toEqual(['b']);
  });
});

test('insert checker: finds lost and doubled values, and accepts unknown ones', () => {
  expect(insertProblems([1, 2, 3], [1, 3, 3, 9])).toEqual({ lost: [2], doubled: [3] });
  expect(insertProblems([1], [1, 9])).toEqual({ lost: [], doubled: [] });
});

test('update checker: finds lost and doubled updates, and accepts unknown ones', () => {
  const of = (rev: number, unknown: number) => [{ key: 'a', rev, acknowledged: 3, unknown }];
  expect(updateProblems(of(4, 0))).toEqual([]);
  expect(updateProblems(of(3, 0))).toEqual(['a']);
  expect(updateProblems(of(5, 0))).toEqual(['a']);
  expect([of(4, 1), of(5, 1)].flatMap(updateProblems)).toEqual([]);
  expect(updateProblems(of(6, 1))).toEqual(['a']);
});

test('epoch checker: finds an epoch with two leaders', () => {
  const led = [
    { node: 0, epoch: 1 },
    { node: 1, epoch: 2 },
    { node: 0, epoch: 2 },
    { node: 0, epoch: 1 },
  ];
  expect(sharedEpochs(led)).toEqual([2]);
});

test('percentile: of sorted values', () => {
  expect(percentile([5, 1, 9, 3], 0.5)).toBe(5);
  expect(percentile([5, 1, 9, 3], 0.95)).toBe(9);
  expect(percentile([], 0.5)).toBeUndefined();
});
