import { describe, expect, test } from 'vitest';
import type { ClaimedTask } from '../../src/core/outcome.js';
import type { CancelTaskChange, UpdateTaskChange } from '../../src/storage/port/task-changes.js';
import { noon, someAttempt, type Fixture } from './fixture.js';

/** Cancelled and changed tasks. */
export function changeTests(fixture: Fixture): void {
  const cancel = (id: string, over: Partial<CancelTaskChange> = {}) =>
    fixture.store.cancelTask({
      id,
      now: noon + 500,
      by: 'ada',
      message: 'withdrawn',
      selector: { ids: [id] },
      attempt: (task: ClaimedTask, now) =>
        someAttempt({ attempt: task.attempt, endedAt: now, errorType: 'CANCELLED' }),
      ...over,
    });
  const cancelPending = (ids: readonly string[], queue = 'mail') =>
    fixture.store.cancelPending({
      queue,
      ids,
      now: noon + 500,
      by: 'ada',
      message: 'all of them',
      selector: { ids },
    });
  const update = (id: string, over: Partial<UpdateTaskChange>) =>
    fixture.store.updateTask({
      id,
      action: 'update',
      now: noon + 500,
      by: 'ada',
      selector: { ids: [id] },
      ...over,
    });
  const counts = async () => {
    const { pending, inFlight, dead } = await fixture.store.counts('mail');
    return { pending, inFlight, dead };
  };
  const lastAct = async () => (await fixture.store.auditPage({ limit: 1 }))[0];

  describe('changes of tasks', () => {
    test('cancel: a pending task is dead at once and can be redriven', async () => {
      await fixture.queue();
      for (const over of [{}, { dueAt: noon + 60_000 }, { groupKey: 'a', expiresAt: noon + 9e4 }]) {
        const id = await fixture.submit(over);
        const result = await cancel(id);
        expect(result).toMatchObject({ kind: 'changed', task: { status: 'DEAD' } });
        expect(await fixture.task(id)).toMatchObject({
          status: 'DEAD',
          deadReason: 'CANCELLED',
          deadAt: noon + 500,
          dueAt: null,
          lastError: {
            errorType: 'CANCELLED',
            message: 'withdrawn',
            httpStatus: null,
            at: noon + 500,
          },
          attempts: [],
        });
        expect(await fixture.claimIds({ now: noon + 70_000 })).toEqual([]);
        expect(await counts()).toEqual({ pending: 0, inFlight: 0, dead: 1 });
        expect(await lastAct()).toMatchObject({ action: 'cancel', count: 1, queue: 'mail' });
        expect(await fixture.redrive([id])).toEqual([id]);
        expect(await fixture.claimIds({ now: noon + 2_000 })).toEqual([id]);
        await cancel(id);
        const change = { queue: 'mail', diedBy: noon + 9e9, now: noon, by: 'ada', selector: {} };
        await fixture.store.actOnDead({ ...change, action: 'purge', ids: [id] });
      }
    });

    test('cancel: a task in flight loses its lease', async () => {
      await fixture.queue();
      const cancelled: string[] = [];
      const stop = fixture.store.onCancelled((id) => cancelled.push(id));
      for (const groupKey of [null, 'a']) {
        const id = await fixture.submit({ groupKey });
        const task = await fixture.claimOne();
        expect(await cancel(id)).toMatchObject({ kind: 'changed', task: { lease: null } });
        expect(await fixture.task(id)).toMatchObject({
          status: 'DEAD',
          deadReason: 'CANCELLED',
          attempt: 1,
          attempts: [{ errorType: 'CANCELLED', endedAt: noon + 500 }],
        });
        expect(await fixture.settle(task, { kind: 'succeeded' })).toMatchObject({
          kind: 'repeated',
          verdict: 'dead',
          task: { status: 'DEAD' },
        });
        const extended = await fixture.store.extendLease({
          id,
          token: task.lease!.token,
          expiresAt: noon + 90_000,
          isAsync: true,
          now: noon + 600,
        });
        expect(extended).toBe('lease_lost');
        expect((await counts()).inFlight).toBe(0);
        expect(await fixture.store.endedLeases({ now: noon + 9e6, limit: 9 })).toEqual([]);
      }
      stop();
      expect(cancelled).toHaveLength(2);
    });

    test('cancel: a task that ended is refused, one that was cancelled is not', async () => {
      await fixture.queue();
      const dead = await fixture.die();
      const done = await fixture.submit();
      await fixture.settle(await fixture.claimOne(), { kind: 'succeeded' });
      expect(await cancel(dead)).toMatchObject({ kind: 'refused', task: { status: 'DEAD' } });
      expect(await cancel(done)).toMatchObject({ kind: 'refused', task: { status: 'SUCCEEDED' } });
      expect(await cancel(fixture.id())).toEqual({ kind: 'not_found' });
      const before = await fixture.store.auditPage({ limit: 99 });
      const id = await fixture.submit();
      await cancel(id);
      expect(await cancel(id, { message: 'again', now: noon + 900 })).toMatchObject({
        kind: 'repeated',
        task: { deadAt: noon + 500, lastError: { message: 'withdrawn' } },
      });
      const acts = await fixture.store.auditPage({ limit: 99 });
      expect(acts.length - before.length).toBe(2);
      expect(acts[0]).toMatchObject({ action: 'cancel', count: 0 });
    });

    test('cancel: the next task of a FIFO group may run', async () => {
      await fixture.queue();
      const fifo = { fifoGroups: true };
      const first = await fixture.submit({ groupKey: 'a' });
      const second = await fixture.submit({ groupKey: 'a', dueAt: noon + 1 });
      const third = await fixture.submit({ groupKey: 'a', dueAt: noon + 2 });
      expect(await fixture.claimIds({ ...fifo, now: noon + 5 })).toEqual([first]);
      await cancel(second);
      expect(await fixture.claimIds({ ...fifo, now: noon + 5 })).toEqual([]);
      await cancel(first);
      expect(await fixture.claimIds({ ...fifo, now: noon + 5 })).toEqual([third]);
    });

    test('cancel: many at once, but only pending ones of the queue', async () => {
      await fixture.queue();
      await fixture.queue('post');
      const other = await fixture.submit({ queue: 'post' });
      const running = await fixture.submit({ priority: 9 });
      await fixture.claimOne();
      const waiting = [await fixture.submit(), await fixture.submit({ dueAt: noon + 9_000 })];
      const ids = [other, running, ...waiting, waiting[0]!, fixture.id()];
      expect(await cancelPending(ids)).toEqual(waiting);
      expect(await counts()).toEqual({ pending: 0, inFlight: 1, dead: 2 });
      expect(await lastAct()).toMatchObject({ action: 'cancel', count: 2, selector: { ids } });
      expect(await cancelPending(waiting)).toEqual([]);
      expect(await lastAct()).toMatchObject({ action: 'cancel', count: 0 });
      expect(await cancelPending(waiting, 'none')).toEqual([]);
    });

    test('update: a delayed task can be made due, and a due one delayed', async () => {
      await fixture.queue();
      const id = await fixture.submit({ dueAt: noon + 60_000 });
      const result = await update(id, { dueAt: noon + 500, action: 'run_now' });
      expect(result).toMatchObject({ kind: 'changed', task: { dueAt: noon + 500 } });
      expect(await lastAct()).toMatchObject({
        action: 'run_now',
        count: 1,
        selector: { ids: [id] },
      });
      const { dueByQueue } = await fixture.store.nextEventAt();
      expect(dueByQueue.get('mail')).toBeLessThanOrEqual(noon + 500);
      await update(id, { dueAt: noon + 30_000 });
      expect(await lastAct()).toMatchObject({ action: 'update' });
      expect(await fixture.claimIds({ now: noon + 20_000 })).toEqual([]);
      expect(await fixture.claimIds({ now: noon + 30_000 })).toEqual([id]);
    });

    test('update: a task with a new priority is claimed by it', async () => {
      await fixture.queue();
      const large = Buffer.alloc(3_000, 7);
      const first = await fixture.submit({ headers: { 'x-a': '1' } });
      const second = await fixture.submit({ payload: large, groupKey: 'a' });
      const third = await fixture.submit();
      for (const [id, priority] of [
        [second, 9],
        [third, 8],
      ] as const) {
        expect(await update(id, { priority })).toMatchObject({ task: { priority } });
      }
      const claimed = await fixture.claim({ now: noon + 500 });
      expect(claimed.map(({ id, priority }) => [id, priority])).toEqual([
        [second, 9],
        [third, 8],
        [first, 4],
      ]);
      expect(Buffer.from(claimed[0]!.payload)).toEqual(large);
      await fixture.settle(claimed[0]!, { kind: 'dead', reason: 'PERMANENT' });
      await fixture.redrive([second]);
      expect(await fixture.task(second)).toMatchObject({ priority: 9, groupKey: 'a' });
      await fixture.reopen();
      expect(await fixture.task(first)).toMatchObject({ headers: { 'x-a': '1' } });
    });

    test('update: only a pending task can be changed', async () => {
      await fixture.queue();
      const dead = await fixture.die();
      const running = await fixture.submit();
      await fixture.claimOne();
      expect(await update(dead, { priority: 1 })).toMatchObject({ kind: 'refused' });
      expect(await update(running, { dueAt: noon })).toMatchObject({
        kind: 'refused',
        task: { status: 'IN_FLIGHT', priority: 4 },
      });
      expect(await update(fixture.id(), { priority: 1 })).toEqual({ kind: 'not_found' });
    });

    test('update: a retry can be made due, and leads its FIFO group', async () => {
      await fixture.queue();
      const fifo = { fifoGroups: true };
      const first = await fixture.submit({ groupKey: 'a' });
      await fixture.submit({ groupKey: 'a', dueAt: noon + 1 });
      const [task] = await fixture.claim(fifo);
      await fixture.settle(task!, { kind: 'retry', dueAt: noon + 60_000 });
      expect(await fixture.claimIds({ ...fifo, now: noon + 600 })).toEqual([]);
      await update(first, { dueAt: noon + 500, action: 'run_now' });
      expect(await fixture.claimIds({ ...fifo, now: noon + 600 })).toEqual([first]);
    });
  });
}
