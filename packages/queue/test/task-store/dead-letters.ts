import { describe, expect, test } from 'vitest';
import type { DeadTaskQuery, DeadFilter } from '../../src/storage/port/task-store.js';
import { noon, type Fixture } from './fixture.js';

export function deadLetterTests(fixture: Fixture): void {
  const page = (over: Partial<DeadTaskQuery> = {}) =>
    fixture.store.deadTasks({
      queue: 'mail',
      filter: {},
      order: 'newest_first',
      limit: 100,
      maxBytes: 1e9,
      ...over,
    });
  const ids = async (over: Partial<DeadTaskQuery> = {}) =>
    (await page(over)).tasks.map((task) => task.id);
  const purge = async (of: readonly string[], over: object = {}) => {
    const { ids: purged } = await fixture.store.actOnDead({
      action: 'purge',
      queue: 'mail',
      ids: of,
      diedBy: noon + 3_600_000,
      now: noon + 1_000,
      by: 'ada',
      selector: { ids: of },
      ...over,
    });
    return purged;
  };

  describe('dead letters', () => {
    test('dead tasks are shown whole, in either order', async () => {
      await fixture.queue();
      await fixture.queue('post');
      await fixture.die({ queue: 'post' });
      const b = await fixture.die({}, noon + 20);
      const a = await fixture.die({}, noon + 10);
      const c = await fixture.die({}, noon + 20);
      await fixture.submit();
      expect(await ids()).toEqual([c, b, a]);
      expect(await ids({ order: 'oldest_first' })).toEqual([a, b, c]);
      const { tasks, next } = await page({ limit: 1 });
      expect(tasks).toEqual([await fixture.task(c)]);
      expect(next).toEqual({ deadAt: noon + 20, id: c });
      expect(await ids({ queue: 'none' })).toEqual([]);
    });

    test.each(['newest_first', 'oldest_first'] as const)(
      'pages in order %s have every task once, also while some go',
      async (order) => {
        await fixture.queue();
        const dead: string[] = [];
        for (let i = 0; i < 7; i++) dead.push(await fixture.die({}, noon + Math.floor(i / 3)));
        const seen: string[] = [];
        let after: DeadTaskQuery['after'];
        for (let pages = 0; pages < 10; pages++) {
          const { tasks, next } = await page({ order, limit: 2, after });
          seen.push(...tasks.map((task) => task.id));
          if (!next) break;
          after = next;
          await purge([next.id]);
        }
        const expected = order === 'oldest_first' ? dead : dead.toReversed();
        expect(seen).toEqual(expected);
      },
    );

    test('the last page says so, even when it is full', async () => {
      await fixture.queue();
      await fixture.die();
      await fixture.die();
      expect((await page({ limit: 2 })).next).toBeUndefined();
      expect((await page({ limit: 1 })).next).toBeDefined();
    });

    test('a page ends before it grows too large, and has one task at least', async () => {
      await fixture.queue();
      for (let i = 0; i < 5; i++) await fixture.die({ payload: Buffer.alloc(30_000) }, noon + i);
      const first = await page({ maxBytes: 100_000 });
      expect(first.tasks).toHaveLength(2);
      const second = await page({ maxBytes: 1, after: first.next });
      expect(second.tasks).toHaveLength(1);
      expect(second.tasks[0]!.deadAt).toBe(noon + 2);
    });

    test('filters narrow what is shown', async () => {
      await fixture.queue();
      const a = await fixture.die({ handlerRef: 'one' }, noon + 1, { errorType: 'TIMEOUT' });
      const b = await fixture.die({ handlerRef: 'two' }, noon + 2, { httpStatus: 410 });
      const c = await fixture.die({ handlerRef: 'one' }, noon + 3, {
        errorType: 'TIMEOUT',
        httpStatus: null,
      });
      const filtered = (filter: DeadFilter) => ids({ filter, order: 'oldest_first' });
      expect(await filtered({ errorType: 'TIMEOUT' })).toEqual([a, c]);
      expect(await filtered({ handlerRef: 'two' })).toEqual([b]);
      expect(await filtered({ httpStatus: 410 })).toEqual([b]);
      expect(await filtered({ diedFrom: noon + 2 })).toEqual([b, c]);
      expect(await filtered({ diedBefore: noon + 2 })).toEqual([a]);
      expect(await filtered({ diedFrom: noon + 2, diedBefore: noon + 3 })).toEqual([b]);
      expect(await filtered({ errorType: 'TIMEOUT', httpStatus: 404 })).toEqual([a]);
      expect(await filtered({ errorType: 'TIMEOUT', handlerRef: 'two' })).toEqual([]);
      const newest = await page({ filter: { diedFrom: noon + 2, diedBefore: noon + 3 } });
      expect(newest.tasks.map((task) => task.id)).toEqual([b]);
    });

    test('a filter goes on where the page before ended', async () => {
      await fixture.queue();
      const wanted: string[] = [];
      for (let i = 0; i < 6; i++) {
        const id = await fixture.die({ handlerRef: i % 2 ? 'odd' : 'even' }, noon + i);
        if (i % 2) wanted.push(id);
      }
      const filter = { handlerRef: 'odd' };
      const first = await page({ filter, limit: 2 });
      const second = await page({ filter, limit: 2, after: first.next });
      expect(second.next).toBeUndefined();
      expect([...first.tasks, ...second.tasks].map((task) => task.id)).toEqual(wanted.toReversed());
    });

    test('failures are grouped by kind, handler and status', async () => {
      await fixture.queue();
      await fixture.die({ handlerRef: 'one' }, noon + 1, { errorType: 'TIMEOUT' });
      const last = await fixture.die({ handlerRef: 'one' }, noon + 9, { errorType: 'TIMEOUT' });
      const other = await fixture.die({ handlerRef: 'two' }, noon + 5, {
        errorType: 'DNS_FAILURE',
        httpStatus: null,
      });
      const groups = await fixture.store.deadGroups({ queue: 'mail', limit: 10 });
      const timeout = {
        errorType: 'TIMEOUT',
        handlerRef: 'one',
        httpStatus: 404,
        count: 2,
        firstSeenAt: noon + 1,
        lastSeenAt: noon + 9,
        sampleId: last,
      };
      const dns = {
        errorType: 'DNS_FAILURE',
        handlerRef: 'two',
        httpStatus: null,
        count: 1,
        firstSeenAt: noon + 5,
        lastSeenAt: noon + 5,
        sampleId: other,
      };
      expect(groups).toEqual([timeout, dns]);
      expect(await fixture.store.deadGroups({ queue: 'mail', limit: 1 })).toEqual([timeout]);
      expect(await fixture.store.deadGroups({ queue: 'none', limit: 1 })).toEqual([]);
    });

    test('a redriven task runs again with its history', async () => {
      await fixture.queue();
      const id = await fixture.die({ expiresAt: noon + 50_000 });
      const before = await fixture.task(id);
      expect(await fixture.redrive([id])).toEqual([id]);
      const after = await fixture.task(id);
      expect(after).toEqual({
        ...before,
        status: 'PENDING',
        attempt: 0,
        totalAttempts: 1,
        redriveCount: 1,
        dueAt: noon + 1_000,
        expiresAt: null,
        deadAt: null,
        deadReason: null,
        updatedAt: noon + 1_000,
      });
      expect(after.lastError).not.toBeNull();
      expect(after.attempts).toHaveLength(1);
      expect(await fixture.claim({ now: noon + 999 })).toEqual([]);
      expect(await fixture.claimOne({ now: noon + 1_000 })).toMatchObject({
        id,
        attempt: 1,
        totalAttempts: 2,
      });
      expect(await ids()).toEqual([]);
    });

    test('redrives are due when the caller says, each by its place in the list', async () => {
      await fixture.queue();
      const dead = [];
      for (let i = 0; i < 3; i++) dead.push(await fixture.die());
      const list = [dead[2]!, fixture.id(), dead[0]!];
      const dueAt = (index: number) => noon + 2_000 + index * 100;
      expect(await fixture.redrive(list, { dueAt })).toEqual([dead[2], dead[0]]);
      expect((await fixture.task(dead[2]!)).dueAt).toBe(noon + 2_000);
      expect((await fixture.task(dead[0]!)).dueAt).toBe(noon + 2_200);
    });

    test('only what is dead in this queue and died in time is touched', async () => {
      await fixture.queue();
      await fixture.queue('post');
      const pending = await fixture.submit({ dueAt: noon + 90_000 });
      const other = await fixture.die({ queue: 'post' });
      const late = await fixture.die({}, noon + 20);
      const dead = await fixture.die({}, noon + 10);
      const list = [pending, other, late, dead, dead];
      expect(await fixture.redrive(list, { diedBy: noon + 10 })).toEqual([dead]);
      expect(await purge(list, { diedBy: noon + 19 })).toEqual([]);
      expect(await purge(list, { diedBy: noon + 20 })).toEqual([late]);
      expect(await fixture.task(other)).toMatchObject({ status: 'DEAD' });
      expect(await fixture.redrive([dead], { queue: 'none' })).toEqual([]);
    });

    test('a task that died again after the call began is left alone', async () => {
      await fixture.queue();
      const id = await fixture.die({}, noon);
      await fixture.redrive([id]);
      const task = await fixture.claimOne({ now: noon + 1_000 });
      const dead = { kind: 'dead', reason: 'PERMANENT' } as const;
      await fixture.settle(task, dead, { now: noon + 2_000 });
      expect(await fixture.redrive([id], { diedBy: noon + 1_999 })).toEqual([]);
      expect(await fixture.redrive([id], { diedBy: noon + 2_000 })).toEqual([id]);
    });

    test('a purged task leaves a tombstone and nothing else', async () => {
      await fixture.queue();
      const id = await fixture.die({ payload: Buffer.alloc(5_000) });
      expect(await purge([id])).toEqual([id]);
      expect(await fixture.tombstone(id)).toEqual({
        id,
        queue: 'mail',
        handlerRef: 'mail.send',
        status: 'DEAD',
        purgedAt: noon + 1_000,
      });
      expect(await purge([id])).toEqual([]);
      expect(await ids()).toEqual([]);
      expect(await fixture.store.counts('mail')).toMatchObject({ dead: 0 });
    });
  });
}
