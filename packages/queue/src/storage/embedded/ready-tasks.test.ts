import type { RowReader } from '@millrace/engine';
import { describe, expect, test } from 'vitest';
import { groupBytes, idOf, readyKey } from './keys.js';
import { lowerMark, pickReady, type ReadyKeys, type ReadyOrder } from './queue-state.js';

const queue = 7;

/** Ready tasks named `group:number`; counts the rows that are read. */
class CountedRows implements RowReader {
  steps = 0;
  #keys: Buffer[];

  constructor(tasks: readonly { name: string; priority?: number; due?: number }[]) {
    this.#keys = tasks
      .map(({ name, priority = 4, due = 0 }) => {
        const group = name.split(':')[0]!;
        const bytes = groupBytes(group === '' ? null : group);
        return readyKey(queue, priority, bytes, due, name.padEnd(26, '.'));
      })
      .toSorted((a, b) => Buffer.compare(a, b));
  }

  get(): undefined {
    return undefined;
  }

  *range({ start, end, limit = Infinity }: Parameters<RowReader['range']>[0]) {
    // An opened range costs as much as some rows.
    this.steps += 5;
    let left = limit;
    let at = this.#keys.findIndex((key) => Buffer.compare(key, start!) >= 0);
    if (at === -1) return;
    for (; at < this.#keys.length && left-- > 0; at++) {
      if (Buffer.compare(this.#keys[at]!, end!) >= 0) return;
      this.steps++;
      yield { key: this.#keys[at]!, value: Buffer.alloc(0) };
    }
  }

  get known(): ReadyKeys {
    return new Map(this.#keys.map((key) => [key.toString('latin1'), key]));
  }

  remove(keys: readonly Buffer[]): void {
    this.#keys = this.#keys.filter((key) => !keys.some((gone) => gone.equals(key)));
  }
}

const anyOrder = (): ReadyOrder => ({ turns: {}, floors: {}, lanes: 0b11_1111_1111 });
const nameOf = (key: Buffer) => idOf(key).replaceAll('.', '');
const pick = (
  rows: CountedRows,
  limit: number,
  order = anyOrder(),
  accept = (_name: string) => true,
) => {
  const pickFrom = (of: ReadyOrder, few?: ReadyKeys) =>
    pickReady(rows, queue, of, { limit, few }, (key) => accept(nameOf(key))).map(nameOf);
  const again = structuredClone(order);
  const picked = pickFrom(order);
  const { steps } = rows;
  // From memory they are picked in the same order.
  expect(pickFrom(again, rows.known)).toEqual(picked);
  expect({ ...again, lanes: order.lanes }).toEqual(order);
  expect(rows.steps).toBe(steps);
  return picked;
};

const many = (group: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({ name: `${group}:${i + 1000}` }));

describe('picking ready tasks', () => {
  test('costs the same with ten groups and with ten thousand', () => {
    const costs = [10, 10_000].map((count) => {
      const groups = Array.from({ length: count }, (_, i) => many(`g${i + 10_000}`, 2));
      const rows = new CountedRows(groups.flat());
      expect(pick(rows, 10)).toHaveLength(10);
      return rows.steps;
    });
    expect(costs[1]).toBeLessThan(costs[0]! * 1.5);
  });

  test('seeks past large groups', () => {
    const rows = new CountedRows([...many('a', 5_000), ...many('b', 5_000), ...many('c', 1)]);
    expect(pick(rows, 4)).toEqual(['a:1000', 'b:1000', 'c:1000', 'a:1001']);
    expect(rows.steps).toBeLessThan(100);
  });

  test('goes on from the last turn, round and round', () => {
    const rows = new CountedRows([...many('a', 20), ...many('b', 3), ...many('c', 20)]);
    const order = { ...anyOrder(), turns: { 4: 'b' } };
    expect(pick(rows, 5, order)).toEqual(['c:1000', 'a:1000', 'b:1000', 'c:1001', 'a:1001']);
    expect(order.turns).toEqual({ 4: 'a' });
  });

  test('skips rejected tasks, even many', () => {
    const rows = new CountedRows([...many('a', 300), ...many('b', 2)]);
    const accept = (name: string) => !/^a:1[01]/.test(name);
    expect(pick(rows, 3, anyOrder(), accept)).toEqual(['a:1200', 'b:1000', 'a:1201']);
  });

  test('stops at the skip limit', () => {
    const rows = new CountedRows(many('', 15_000));
    expect(pick(rows, 3, anyOrder(), () => false)).toEqual([]);
    expect(rows.steps).toBeLessThan(12_000);
  });

  test('skips priorities without ready tasks', () => {
    const rows = new CountedRows([{ name: ':1', priority: 2 }]);
    const order = { ...anyOrder(), lanes: 0b1000000100 };
    expect(pick(rows, 3, order)).toEqual([':1']);
    // Priority 9 was found empty; the state of priority 2 is unknown until it is read.
    expect(order.lanes).toBe(0b100);
    rows.remove([readyKey(queue, 2, groupBytes(null), 0, ':1'.padEnd(26, '.'))]);
    expect(pick(rows, 3, order)).toEqual([]);
    expect(order.lanes).toBe(0);
  });

  test('a priority is empty when its few tasks were all picked', () => {
    const rows = new CountedRows([...many('a', 2), ...many('', 2)]);
    const order = { ...anyOrder(), lanes: 0b10000 };
    const few = (limit: number, isWanted: boolean) =>
      pickReady(rows, queue, order, { limit, few: rows.known }, () => isWanted).length;
    expect([few(4, false), order.lanes]).toEqual([0, 0b10000]);
    expect([few(3, true), order.lanes]).toEqual([3, 0b10000]);
    order.floors = {};
    expect([few(4, true), order.lanes]).toEqual([4, 0]);
  });

  test('sets the low-water mark at the last task claimed without a group', () => {
    const rows = new CountedRows(many('', 50));
    const order = anyOrder();
    pick(rows, 3, order);
    expect(order.floors[4]).toEqual([0, ':1002'.padEnd(26, '.')]);
    // Rows below the mark are claimed and are not read again.
    expect(pick(rows, 2, order)).toEqual([':1003', ':1004']);
  });

  test('sets no low-water mark when a task was skipped', () => {
    const order = anyOrder();
    expect(pick(new CountedRows(many('', 9)), 2, order, (name) => name !== ':1000')).toEqual([
      ':1001',
      ':1002',
    ]);
    expect(order.floors).toEqual({});
  });

  test('a low-water mark is dropped when a task becomes ready below it', () => {
    const floors = { 4: [100, 'M'] as const };
    lowerMark(floors, 4, 100, 'N');
    lowerMark(floors, 3, 0, 'A');
    expect(floors[4]).toEqual([100, 'M']);
    lowerMark(floors, 4, 100, 'M');
    expect(floors[4]).toBeUndefined();
    const other = { 4: [100, 'M'] as const };
    lowerMark(other, 4, 99.5, 'Z');
    expect(other).toEqual({});
  });
});
