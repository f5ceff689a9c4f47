import { describe, expect, test } from 'vitest';
import { tombstoneMs } from '../../src/storage/port/task-store.js';
import { noon, settlementOf, someAttempt, type Fixture } from './fixture.js';

export function upkeepTests(fixture: Fixture): void {
  const expire = (now: number, limit = 10) => fixture.store.expireTasks({ now, limit });
  const deleteFinished = (status: 'SUCCEEDED' | 'DEAD', endedBefore: number, limit = 10) =>
    fixture.store.deleteFinished({
      queue: 'mail',
      status,
      endedBefore,
      now: noon + 60_000,
      limit,
    });

  describe('expiry', () => {
    test('a task that still waits at its expiry is dead, also in a paused queue', async () => {
      await fixture.queue();
      const id = await fixture.submit({ expiresAt: noon + 100 });
      await fixture.submit({ expiresAt: noon + 200 });
      await fixture.submit();
      await fixture.store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' });
      expect(await expire(noon + 99)).toEqual([]);
      const [dead, ...others] = await expire(noon + 100);
      expect(others).toEqual([]);
      expect(dead).toMatchObject({
        id,
        status: 'DEAD',
        deadReason: 'EXPIRED',
        deadAt: noon + 100,
        updatedAt: noon + 100,
        dueAt: null,
        attempt: 0,
        lastError: { errorType: 'EXPIRED', httpStatus: null, at: noon + 100 },
      });
      expect(await fixture.task(id)).toMatchObject(dead!);
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 2, dead: 1 });
    });

    test('delayed tasks expire too, and those that wait for a retry', async () => {
      await fixture.queue();
      const retried = await fixture.submit({ expiresAt: noon + 1_000 });
      await fixture.settle(await fixture.claimOne(), { kind: 'retry', dueAt: noon + 90_000 });
      const delayed = await fixture.submit({ dueAt: noon + 90_000, expiresAt: noon + 1_001 });
      const dead = await expire(noon + 5_000);
      expect(dead.map((task) => task.id)).toEqual([retried, delayed]);
      expect(await fixture.claim({ now: noon + 99_000 })).toEqual([]);
      expect(await expire(noon + 9_000)).toEqual([]);
    });

    test('a running task does not expire', async () => {
      await fixture.queue();
      await fixture.submit({ expiresAt: noon + 100 });
      const task = await fixture.claimOne();
      expect(await expire(noon + 5_000)).toEqual([]);
      expect(await fixture.settle(task, { kind: 'succeeded' })).toMatchObject({ kind: 'settled' });
      expect(await expire(noon + 5_000)).toEqual([]);
    });

    test('no more expire than asked for, the earliest first', async () => {
      await fixture.queue();
      const ids: string[] = [];
      for (const at of [30, 10, 20]) ids.push(await fixture.submit({ expiresAt: noon + at }));
      expect((await expire(noon + 90, 2)).map((task) => task.id)).toEqual([ids[1], ids[2]]);
      expect((await expire(noon + 90, 2)).map((task) => task.id)).toEqual([ids[0]]);
    });

    test('an expired task can be redriven and then has no expiry', async () => {
      await fixture.queue();
      const id = await fixture.submit({ expiresAt: noon + 100 });
      await expire(noon + 100);
      await fixture.redrive([id]);
      expect(await expire(noon + 99_000)).toEqual([]);
      expect(await fixture.claimIds({ now: noon + 99_000 })).toEqual([id]);
    });
  });

  describe('retention', () => {
    test('finished tasks are deleted by age and leave tombstones', async () => {
      await fixture.queue();
      const ids: string[] = [];
      for (const at of [100, 200, 300]) {
        ids.push(await fixture.submit());
        await fixture.settle(await fixture.claimOne(), { kind: 'succeeded' }, { now: noon + at });
      }
      const dead = await fixture.die({}, noon + 50);
      expect(await deleteFinished('SUCCEEDED', noon + 100)).toBe(0);
      expect(await deleteFinished('SUCCEEDED', noon + 201)).toBe(2);
      expect(await fixture.tombstone(ids[0]!)).toMatchObject({
        status: 'SUCCEEDED',
        purgedAt: noon + 60_000,
      });
      expect(await fixture.task(ids[2]!)).toMatchObject({ status: 'SUCCEEDED' });
      expect(await fixture.task(dead)).toMatchObject({ status: 'DEAD' });
      expect(await deleteFinished('DEAD', noon + 51)).toBe(1);
      expect(await fixture.tombstone(dead)).toMatchObject({ status: 'DEAD' });
      expect(await fixture.store.counts('mail')).toMatchObject({ dead: 0 });
    });

    test('tasks that ended together are deleted some at a time', async () => {
      await fixture.queue();
      for (let i = 0; i < 7; i++) await fixture.submit();
      const tasks = await fixture.claim();
      const succeeded = { kind: 'succeeded' } as const;
      await fixture.store.settle(tasks.map((task) => settlementOf(task, succeeded)));
      const counts: number[] = [];
      for (let i = 0; i < 4; i++) counts.push(await deleteFinished('SUCCEEDED', noon + 101, 3));
      expect(counts).toEqual([3, 3, 1, 0]);
      for (const { id } of tasks) await fixture.tombstone(id);
    });

    test('a task with a long history is deleted with all of it', async () => {
      await fixture.queue();
      const id = await fixture.submit({ payload: Buffer.alloc(9_000) });
      for (let i = 1; i <= 4; i++) {
        const task = await fixture.claimOne({ now: noon + i });
        const attempt = someAttempt({ attempt: i, responseSnippet: 'x'.repeat(i * 500) });
        const retry = { kind: 'retry', dueAt: noon + i + 1 } as const;
        const dead = { kind: 'dead', reason: 'PERMANENT' } as const;
        await fixture.settle(task, i < 4 ? retry : dead, { attempt, now: noon + i });
      }
      expect((await fixture.task(id)).attempts.map((each) => each.attempt)).toEqual([1, 2, 3, 4]);
      expect(await deleteFinished('DEAD', noon + 9_000)).toBe(1);
      await fixture.tombstone(id);
    });

    test('a redriven task that succeeds is deleted as succeeded', async () => {
      await fixture.queue();
      const id = await fixture.die();
      await fixture.redrive([id]);
      const task = await fixture.claimOne({ now: noon + 1_000 });
      await fixture.settle(task, { kind: 'succeeded' }, { now: noon + 1_100 });
      expect(await deleteFinished('DEAD', noon + 9_000)).toBe(0);
      expect(await deleteFinished('SUCCEEDED', noon + 9_000)).toBe(1);
    });

    test('tombstones are forgotten after a day', async () => {
      await fixture.queue();
      const id = await fixture.die();
      await deleteFinished('DEAD', noon + 1);
      const forget = (now: number) => fixture.store.deleteTombstones({ now, limit: 10 });
      expect(await forget(noon + 60_000 + tombstoneMs - 1)).toBe(0);
      await fixture.tombstone(id);
      expect(await forget(noon + 60_000 + tombstoneMs)).toBe(1);
      expect(await fixture.store.getTask(id)).toBeUndefined();
      expect(await fixture.submit({ id }, noon + 2 * tombstoneMs)).toBe(id);
    });

    test('the store answers a probe', async () => {
      await expect(fixture.store.probe()).resolves.toBeUndefined();
    });
  });
}
