import { systemClock } from '@millrace/kit/clock';
import { describe, expect, test } from 'vitest';
import { History } from '../../src/background/task-observer.js';
import {
  addTotals,
  emptyPoint,
  historyRowKey,
  noTotals,
  type HistoryRow,
  type HistoryTotals,
} from '../../src/core/history.js';
import { noon, type Fixture } from './fixture.js';

const row = (at: number, over: Partial<HistoryRow> = {}): HistoryRow => ({
  queue: 'mail',
  stepS: 10,
  at: noon + at * 1000,
  instance: 'A',
  point: { ...emptyPoint(), submitted: at, wait: { 3: 1 } },
  ...over,
});

/** The history is kept in rows, by keys that sort by step and time. */
export function historyTests(fixture: Fixture): void {
  const table = 'history';
  const totals = (before: object | undefined) =>
    addTotals((before as HistoryTotals) ?? noTotals, { succeeded: 3, failed: 2, dead: 1 });
  const write = (rows: readonly HistoryRow[], before = 0) =>
    fixture.store.writeRows({
      puts: [
        ...rows.map(({ queue, stepS, at, instance, point }) => {
          const key = historyRowKey(stepS, at, instance);
          return { table, queue, key, value: point } as const;
        }),
        ...[...new Set(rows.map(({ queue }) => queue))].map((queue) => {
          return { table: 'totals', queue, key: '', value: totals } as const;
        }),
      ],
      removals: [
        { table, queue: 'mail', from: historyRowKey(10, 0), before: historyRowKey(10, before) },
      ],
      now: noon,
    });
  const reader = () => new History({ store: fixture.store, clock: systemClock, instance: 'R' });
  const read = (from: number, { queue = 'mail', stepS = 10 } = {}) =>
    reader().read(queue, stepS, noon + from * 1000);

  describe('the history of queues', () => {
    test('rows are read from a time on, with the last one before it', async () => {
      await fixture.queue();
      const rows = [row(0), row(10), row(20), row(20, { instance: 'B' }), row(30)];
      await write([...rows.toReversed(), row(0, { stepS: 60 })]);
      await fixture.reopen();
      expect(await read(0)).toEqual(rows);
      expect(await read(20)).toEqual(rows.slice(1));
      expect(await read(25)).toEqual(rows.slice(3));
      expect(await read(99)).toEqual(rows.slice(4));
      expect(await read(0, { stepS: 60 })).toEqual([row(0, { stepS: 60 })]);
      expect(await read(0, { stepS: 900 })).toEqual([]);
      expect(await read(0, { queue: 'none' })).toEqual([]);
    });

    test('a row that is written again replaces the one before, and totals add up', async () => {
      await fixture.queue();
      await write([row(10)]);
      const again = row(10, { point: { ...emptyPoint(), pending: 7 } });
      await write([again]);
      expect(await read(0)).toEqual([again]);
      expect(await reader().totals('mail')).toEqual({
        succeeded: 6,
        failed: 4,
        dead: 2,
      });
      expect(await reader().totals('none')).toMatchObject({ succeeded: 0 });
    });

    test('old rows are deleted, of the step alone', async () => {
      await fixture.queue();
      await write([row(0), row(10), row(0, { stepS: 60 })]);
      await write([row(20)], noon + 10_000);
      expect(await read(0)).toEqual([row(10), row(20)]);
      expect(await read(0, { stepS: 60 })).toHaveLength(1);
    });

    test('history goes with its queue', async () => {
      await write([row(0)]);
      await fixture.queue();
      expect(await read(0)).toEqual([]);
      await write([row(0)]);
      await fixture.store.deleteQueue({ queue: 'mail', now: noon, by: 'ada' });
      await fixture.queue();
      expect(await read(0)).toEqual([]);
      expect(await reader().totals('mail')).toMatchObject({ succeeded: 0 });
    });
  });
}
