import { describe, expect, test } from 'vitest';
import { tombstoneMs } from '../../src/storage/port/task-store.js';
import { noon, storedTask, type Fixture } from './fixture.js';

export function submitTests(fixture: Fixture): void {
  describe('submits', () => {
    test('a task comes back whole', async () => {
      await fixture.queue();
      const task = fixture.newTask({
        payload: Buffer.from([0, 255, 10, 13, 128]),
        headers: { 'x-one': '1', 'X-Two': '' },
        priority: 9,
        groupKey: 'ä/🙂',
        dueAt: noon + 5_000,
        expiresAt: noon + 9_000,
      });
      const [result] = await fixture.store.insertTasks([task], noon);
      const shown = {
        id: task.id,
        queue: 'mail',
        handlerRef: 'mail.send',
        status: 'PENDING',
        payloadContentType: 'text/plain',
        headers: { 'x-one': '1', 'X-Two': '' },
        priority: 9,
        groupKey: 'ä/🙂',
        attempt: 0,
        totalAttempts: 0,
        redriveCount: 0,
        createdAt: noon,
        updatedAt: noon,
        dueAt: noon + 5_000,
        expiresAt: noon + 9_000,
        lease: null,
        completedAt: null,
        deadAt: null,
        deadReason: null,
        lastError: null,
        submittedBy: 'shop',
        flow: null,
      };
      expect(result).toEqual({ kind: 'stored', task: shown });
      const whole = await fixture.task(task.id);
      expect(Buffer.from(whole.payload)).toEqual(task.payload);
      expect(whole).toEqual({ ...shown, payload: whole.payload, attempts: [] });
    });

    test.each([0, 1, 1_024, 1_025, 300_000])('a payload of %i bytes is kept', async (length) => {
      await fixture.queue();
      const payload = Buffer.from(fixture.random.bytes(length));
      const id = await fixture.submit({ payload });
      expect(Buffer.compare((await fixture.task(id)).payload, payload)).toBe(0);
      const claimed = await fixture.claimOne();
      expect(Buffer.compare(claimed.payload, payload)).toBe(0);
      await fixture.settle(claimed, { kind: 'succeeded' });
      expect(Buffer.compare((await fixture.task(id)).payload, payload)).toBe(0);
    });

    test('the same id again gives the task that is there, whatever became of it', async () => {
      await fixture.queue();
      const task = fixture.newTask();
      const again = async () => {
        const other = { ...task, handlerRef: 'other', payload: Buffer.from('other') };
        const [result] = await fixture.store.insertTasks([other], noon + 1);
        return result;
      };
      await fixture.store.insertTasks([task], noon);
      expect(await again()).toMatchObject({ kind: 'existing', task: { status: 'PENDING' } });
      const claimed = await fixture.claimOne();
      expect(await again()).toMatchObject({ kind: 'existing', task: { status: 'IN_FLIGHT' } });
      await fixture.settle(claimed, { kind: 'succeeded' });
      expect(await again()).toMatchObject({
        kind: 'existing',
        task: { status: 'SUCCEEDED', handlerRef: 'mail.send' },
      });
      expect(await fixture.claim({ now: noon + 5 })).toEqual([]);
    });

    test('the same id in another queue gives the task of the first', async () => {
      await fixture.queue('mail');
      await fixture.queue('post');
      const id = await fixture.submit();
      const [result] = await fixture.store.insertTasks(
        [fixture.newTask({ id, queue: 'post' })],
        noon,
      );
      expect(result).toMatchObject({ kind: 'existing', task: { queue: 'mail' } });
      expect(await fixture.store.counts('post')).toMatchObject({ pending: 0 });
    });

    test('the same id twice in one batch is one task', async () => {
      await fixture.queue();
      const task = fixture.newTask();
      const results = await fixture.store.insertTasks([task, fixture.newTask(), task], noon);
      expect(results.map((result) => result.kind)).toEqual(['stored', 'stored', 'existing']);
      expect(storedTask(results[2]!)).toEqual(storedTask(results[0]!));
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 2 });
    });

    test('a batch has a result for each task, in order, over several queues', async () => {
      await fixture.queue('mail');
      await fixture.queue('post');
      const results = await fixture.store.insertTasks(
        ['mail', 'none', 'post'].map((queue) => fixture.newTask({ queue })),
        noon,
      );
      expect(results.map((result) => result.kind)).toEqual(['stored', 'queue_not_found', 'stored']);
      expect(await fixture.store.insertTasks([], noon)).toEqual([]);
    });

    test('a full queue takes no more, but still knows what it has', async () => {
      await fixture.queue();
      const first = fixture.newTask({ maxPending: 2 });
      const rest = [1, 2].map(() => fixture.newTask({ maxPending: 2 }));
      const results = await fixture.store.insertTasks([first, ...rest], noon);
      expect(results.map((result) => result.kind)).toEqual(['stored', 'stored', 'queue_full']);
      expect((await fixture.store.insertTasks([first], noon))[0]?.kind).toBe('existing');
      await fixture.claimOne();
      expect((await fixture.store.insertTasks([rest[1]!], noon))[0]?.kind).toBe('stored');
    });

    test('the id of a purged task is remembered for a day', async () => {
      await fixture.queue();
      const id = await fixture.die();
      const purgedAt = noon + 1_000;
      await fixture.store.actOnDead({
        action: 'purge',
        queue: 'mail',
        ids: [id],
        diedBy: purgedAt,
        now: purgedAt,
        by: 'ada',
        selector: {},
      });
      const again = async (now: number) =>
        (await fixture.store.insertTasks([fixture.newTask({ id })], now))[0];
      const tombstone = { id, queue: 'mail', handlerRef: 'mail.send', status: 'DEAD', purgedAt };
      expect(await again(purgedAt + tombstoneMs - 1)).toEqual({ kind: 'purged', tombstone });
      expect(await fixture.tombstone(id)).toEqual(tombstone);
      expect(await again(purgedAt + tombstoneMs)).toMatchObject({ kind: 'stored' });
      // The old tombstone must not take the new task with it.
      await fixture.store.deleteTombstones({ now: purgedAt + 2 * tombstoneMs, limit: 10 });
      expect(await fixture.task(id)).toMatchObject({ status: 'PENDING' });
    });

    test('an unknown id is not found', async () => {
      expect(await fixture.store.getTask(fixture.id())).toBeUndefined();
    });

    test('many batches at once are all stored', async () => {
      await fixture.queue();
      const batches = Array.from({ length: 20 }, () =>
        Array.from({ length: 25 }, () => fixture.newTask()),
      );
      const results = await Promise.all(
        batches.map((batch) => fixture.store.insertTasks(batch, noon)),
      );
      expect(results.flat().every((result) => result.kind === 'stored')).toBe(true);
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 500 });
      const claimed = await Promise.all(
        Array.from({ length: 10 }, () => fixture.claim({ limit: 50 })),
      );
      const ids = claimed.flat().map((task) => task.id);
      expect(new Set(ids).size).toBe(500);
    });

    test('work is announced when it comes, from whichever act it comes', async () => {
      await fixture.queue();
      const hints: string[] = [];
      const stop = fixture.store.onWork((queue) => hints.push(queue));
      const expectHint = async (act: () => Promise<unknown>) => {
        hints.length = 0;
        await act();
        expect(hints).toContain('mail');
      };
      await expectHint(() => fixture.submit());
      const task = await fixture.claimOne();
      await expectHint(() => fixture.settle(task, { kind: 'retry', dueAt: noon + 1 }));
      const again = await fixture.claimOne({ now: noon + 1 });
      await expectHint(() => fixture.settle(again, { kind: 'dead', reason: 'PERMANENT' }));
      await expectHint(() => fixture.redrive([task.id]));
      await expectHint(() =>
        fixture.store.setPaused({ queue: 'mail', paused: false, now: noon, by: 'ada' }),
      );
      stop();
      hints.length = 0;
      await fixture.submit();
      expect(hints).toEqual([]);
    });
  });
}
