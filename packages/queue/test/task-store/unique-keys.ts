import { describe, expect, test } from 'vitest';
import type { InsertResult, NewTask } from '../../src/storage/port/task-store.js';
import { noon, type Fixture } from './fixture.js';

const day = 86_400_000;

/** Unique keys of tasks. */
export function uniqueKeyTests(fixture: Fixture): void {
  const insert = async (over: Partial<NewTask> = {}, now = noon): Promise<InsertResult> => {
    const [result] = await fixture.store.insertTasks(
      [fixture.newTask({ uniqueKey: 'k', ...over })],
      now,
    );
    return result!;
  };
  const idOf = (result: InsertResult) => {
    if (result.kind === 'stored' || result.kind === 'existing') return result.task.id;
    return result.kind === 'purged' ? result.tombstone.id : result.kind;
  };
  const stored = async (over: Partial<NewTask> = {}, now = noon) => {
    const result = await insert(over, now);
    expect(result.kind).toBe('stored');
    return idOf(result);
  };
  const heldBy = async (id: string, over: Partial<NewTask> = {}, now = noon) => {
    const result = await insert(over, now);
    expect([result.kind === 'stored', idOf(result)]).toEqual([false, id]);
    return result;
  };

  describe('unique keys', () => {
    test('unique key: a second submit gets the task that holds it', async () => {
      await fixture.queue();
      await fixture.queue('post');
      const id = await stored();
      expect((await heldBy(id)).kind).toBe('existing');
      expect(await fixture.fullTask(id)).toMatchObject({ uniqueKey: 'k' });
      await stored({ queue: 'post' });
      await stored({ uniqueKey: 'other' });
      await stored({ uniqueKey: null });
      expect((await fixture.store.counts('mail')).pending).toBe(3);
      await fixture.reopen();
      await heldBy(id);
    });

    test('unique key: is free when its task succeeds, dies, expires or is cancelled', async () => {
      await fixture.queue();
      const first = await stored();
      const task = await fixture.claimOne();
      await heldBy(first);
      await fixture.settle(task, { kind: 'retry', dueAt: noon + 10 });
      await heldBy(first);
      await fixture.settle(await fixture.claimOne({ now: noon + 10 }), { kind: 'succeeded' });
      await stored();
      await fixture.settle(await fixture.claimOne(), { kind: 'dead', reason: 'PERMANENT' });
      await stored({ expiresAt: noon + 1, dueAt: noon + 60_000 });
      await fixture.store.expireTasks({ now: noon + 1, limit: 9 });
      const last = await stored();
      const change = { now: noon + 5, by: 'ada', message: 'no', selector: {} };
      await fixture.store.cancelPending({ ...change, queue: 'mail', ids: [last] });
      await stored();
    });

    test('unique key: with a time it is held so long, whatever becomes of the task', async () => {
      await fixture.queue();
      const until = noon + 3 * day;
      const id = await stored({ uniqueUntil: until });
      const task = await fixture.claimOne();
      await fixture.settle(task, { kind: 'succeeded' });
      expect((await heldBy(id, {}, noon + 1_000)).kind).toBe('existing');
      const request = { queue: 'mail', status: 'SUCCEEDED' as const, limit: 9 };
      const purgedAt = noon + 9_000;
      await fixture.store.deleteFinished({ ...request, endedBefore: purgedAt, now: purgedAt });
      expect(await heldBy(id, {}, purgedAt)).toMatchObject({
        kind: 'purged',
        tombstone: { status: 'SUCCEEDED' },
      });
      await fixture.store.deleteTombstones({ now: noon + 2 * day, limit: 9 });
      expect(await fixture.store.getTask(id)).toBeUndefined();
      expect(await heldBy(id, {}, until - 1)).toMatchObject({
        kind: 'purged',
        tombstone: { id, queue: 'mail', handlerRef: 'mail.send', status: 'SUCCEEDED' },
      });
      await stored({}, until);
    });

    test('unique key: with a time it is free afterwards though the task still waits', async () => {
      await fixture.queue();
      const id = await stored({ uniqueUntil: noon + 1_000, dueAt: noon + day });
      await heldBy(id, {}, noon + 999);
      await fixture.store.deleteTombstones({ now: noon + 999, limit: 9 });
      await heldBy(id, {}, noon + 999);
      const next = await stored({ uniqueUntil: noon + 9_000 }, noon + 1_000);
      await fixture.store.deleteTombstones({ now: noon + 1_000, limit: 9 });
      await heldBy(next, {}, noon + 1_001);
      await fixture.store.deleteTombstones({ now: noon + 9_000, limit: 9 });
      await stored({}, noon + 9_000);
    });

    test('unique key: the same id comes first, and a full queue last', async () => {
      await fixture.queue();
      const id = await stored();
      expect(await insert({ id, uniqueKey: 'new' })).toMatchObject({ kind: 'existing' });
      await stored({ uniqueKey: 'new' });
      await heldBy(id, { maxPending: 1 });
      expect(await insert({ uniqueKey: 'third', maxPending: 1 })).toEqual({ kind: 'queue_full' });
      await stored({ uniqueKey: 'third' });
      expect(await insert({ queue: 'none' })).toEqual({ kind: 'queue_not_found' });
    });

    test('unique key: of several submits at once one is stored', async () => {
      await fixture.queue();
      const batch = Array.from({ length: 4 }, () => fixture.newTask({ uniqueKey: 'b' }));
      const results = await fixture.store.insertTasks(batch, noon);
      expect(results.map(({ kind }) => kind)).toEqual(['stored', ...Array(3).fill('existing')]);
      expect(new Set(results.map(idOf)).size).toBe(1);
      const racing = await Promise.all(
        Array.from({ length: 20 }, () => insert({ uniqueKey: 'race' })),
      );
      expect(racing.filter(({ kind }) => kind === 'stored')).toHaveLength(1);
      expect(new Set(racing.map(idOf)).size).toBe(1);
      expect((await fixture.store.counts('mail')).pending).toBe(2);
    });

    test('unique key: a redriven task keeps it only if nobody else holds it', async () => {
      await fixture.queue();
      const bury = async () =>
        fixture.settle(await fixture.claimOne(), { kind: 'dead', reason: 'PERMANENT' });
      const first = await stored();
      await bury();
      await fixture.redrive([first], { dueAt: () => noon });
      await heldBy(first);
      expect(await fixture.fullTask(first)).toMatchObject({ uniqueKey: 'k' });
      await bury();
      const second = await stored();
      await bury();
      expect(await fixture.redrive([first, second], { dueAt: () => noon })).toEqual([
        first,
        second,
      ]);
      await heldBy(first);
      expect(await fixture.fullTask(second)).toMatchObject({ status: 'PENDING', uniqueKey: null });
      const [one, other] = await fixture.claim();
      const loser = one!.id === second ? one! : other!;
      await fixture.settle(loser, { kind: 'succeeded' });
      await heldBy(first);
    });

    test('unique key: a new queue of the same name has none', async () => {
      await fixture.queue();
      await stored({ uniqueUntil: noon + day });
      await fixture.settle(await fixture.claimOne(), { kind: 'succeeded' });
      await fixture.store.deleteQueue({ queue: 'mail', now: noon + 5, by: 'ada' });
      await fixture.queue();
      await stored({}, noon + 10);
    });
  });
}
