import { silentLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import type { Transaction } from './connections.js';
import { Counters } from './counters.js';

/** Entries with numbers, some of which are not committed yet. */
class Scene {
  now = 0;
  next = 1;
  entries = new Map<number, { value: number; isCommitted: boolean; transaction: number }>();
  transactions = 0;
  walked: number[] = [];
  readonly counters = new Counters(
    { transact: (work) => work(this.#transaction) },
    () => this.now,
    silentLog,
  );
  readonly #transaction: Transaction = {
    query: () => Promise.resolve([]),
    queryLater: () => undefined,
    queryLast: <Row>(_: unknown, values: readonly unknown[] = []) =>
      Promise.resolve([this.#fold(values[1] as number)] as Row[]),
  };

  add(value: number, isCommitted = true): number {
    const entry = this.next++;
    this.entries.set(entry, { value, isCommitted, transaction: ++this.transactions });
    return entry;
  }

  /** Adds entries to the counters over this many milliseconds. */
  async work(count: number, ms: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      this.add(1);
      this.now += ms / count;
      this.counters.added(['mail']);
      await this.counters.close();
    }
  }

  count(): number {
    const first = this.counters.firstEntry('mail');
    let sum = 0;
    for (const [entry, { value, isCommitted }] of this.entries) {
      if (entry >= first && isCommitted) sum += value;
    }
    return sum;
  }

  #fold(from: number) {
    this.walked.push(from);
    const [own, open] = [++this.transactions, [] as number[]];
    let sum = 0;
    for (const [entry, { value, isCommitted, transaction }] of this.entries) {
      if (!isCommitted) open.push(transaction);
      if (entry < from || !isCommitted) continue;
      sum += value;
      this.entries.delete(entry);
    }
    return { entry: this.add(sum), xmin: Math.min(own, ...open), xmax: own + 1 };
  }
}

test('counting begins near the last entries, and what it counts is right', async () => {
  const scene = new Scene();
  await scene.work(1_000, 10_000);
  expect(scene.count()).toBe(1_000);
  expect(scene.counters.firstEntry('mail')).toBeGreaterThan(500);
  expect(scene.walked.at(-1)).toBeGreaterThan(400);
});

test('what was being committed during a fold is counted as soon as it is', async () => {
  const scene = new Scene();
  await scene.work(500, 5_000);
  const late = scene.add(100, false);
  await scene.work(100, 1_000);
  scene.entries.get(late)!.isCommitted = true;
  expect(scene.count()).toBe(700);
  await scene.work(500, 10_000);
  expect(scene.count()).toBe(1_200);
});

test('what takes 20 s to be committed is counted at once, whatever was folded meanwhile', async () => {
  const scene = new Scene();
  await scene.work(500, 5_000);
  const late = scene.add(100, false);
  await scene.work(2_000, 20_000);
  expect(scene.count()).toBe(2_500);
  scene.entries.get(late)!.isCommitted = true;
  expect(scene.count()).toBe(2_600);
  await scene.work(500, 1_000);
  expect(scene.count()).toBe(3_100);
  expect(scene.counters.firstEntry('mail')).toBeGreaterThan(late);
});

test('a transaction of minutes does not hold back where counting begins', async () => {
  const scene = new Scene();
  const other = scene.add(0, false);
  await scene.work(2_000, 120_000);
  expect(scene.counters.firstEntry('mail')).toBeGreaterThan(1_000);
  scene.entries.get(other)!.value = 5;
  scene.entries.get(other)!.isCommitted = true;
  scene.now += 40_000;
  scene.counters.firstEntry('mail');
  await scene.counters.close();
  expect(scene.count()).toBe(2_005);
});
