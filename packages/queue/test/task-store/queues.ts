import { describe, expect, test } from 'vitest';
import { noon, someConfig, type Fixture } from './fixture.js';

export function queueTests(fixture: Fixture): void {
  const put = (over: object = {}) =>
    fixture.store.putQueue({ queue: 'mail', config: someConfig(), now: noon, by: 'ada', ...over });

  describe('queues', () => {
    test('a queue comes back as it was written', async () => {
      const result = await put({ config: someConfig('post') });
      expect(result).toMatchObject({ kind: 'written', created: true });
      const queue = await fixture.store.getQueue('mail');
      expect(queue).toEqual({
        name: 'mail',
        config: someConfig('post'),
        paused: false,
        version: 1,
        incarnation: expect.stringMatching(/./) as string,
        createdAt: noon,
        updatedAt: noon,
      });
      expect(result).toEqual({ kind: 'written', created: true, queue });
      expect(await fixture.store.getQueue('male')).toBeUndefined();
    });

    test('queues are listed by name', async () => {
      for (const queue of ['b', 'a.z', 'a']) await put({ queue });
      const names = (await fixture.store.listQueues()).map((queue) => queue.name);
      expect(names).toEqual(['a', 'a.z', 'b']);
    });

    test('a new config raises the version and leaves the pause', async () => {
      const first = await put();
      await fixture.store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' });
      const second = await put({ config: someConfig('new'), now: noon + 5 });
      expect(second).toMatchObject({
        created: false,
        queue: { version: 2, paused: true, createdAt: noon, updatedAt: noon + 5 },
      });
      expect(second.queue?.incarnation).toBe(first.queue?.incarnation);
    });

    test('a pause changes neither version nor time of the config', async () => {
      await put();
      await fixture.store.setPaused({ queue: 'mail', paused: true, now: noon + 9, by: 'ada' });
      const paused = await fixture.store.getQueue('mail');
      expect(paused).toMatchObject({ paused: true, version: 1, updatedAt: noon });
      expect(
        await fixture.store.setPaused({ queue: 'none', paused: true, now: noon, by: 'ada' }),
      ).toBe(false);
    });

    test('a write for another version is refused and shows what is there', async () => {
      expect(await put({ ifVersion: 1 })).toEqual({ kind: 'version_mismatch', queue: undefined });
      expect(await put({ ifVersion: 0 })).toMatchObject({ kind: 'written' });
      expect(await put({ ifVersion: 0 })).toMatchObject({
        kind: 'version_mismatch',
        queue: { version: 1 },
      });
      expect(await put({ ifVersion: 1 })).toMatchObject({ queue: { version: 2 } });
      expect(await fixture.store.getQueue('mail')).toMatchObject({ version: 2 });
    });

    test('only a queue without pending, running and dead tasks can be deleted', async () => {
      const remove = () => fixture.store.deleteQueue({ queue: 'mail', now: noon + 1, by: 'ada' });
      expect(await remove()).toBe('not_found');
      await put();
      await fixture.submit();
      expect(await remove()).toBe('not_empty');
      const task = await fixture.claimOne();
      expect(await remove()).toBe('not_empty');
      await fixture.settle(task, { kind: 'dead', reason: 'PERMANENT' });
      expect(await remove()).toBe('not_empty');
      await fixture.store.actOnDead({
        action: 'purge',
        queue: 'mail',
        ids: [task.id],
        diedBy: noon + 1_000,
        now: noon + 1_000,
        by: 'ada',
        selector: {},
      });
      expect(await remove()).toBe('deleted');
      expect(await fixture.store.getQueue('mail')).toBeUndefined();
      expect(await fixture.store.listQueues()).toEqual([]);
    });

    test('succeeded tasks go with their queue and leave tombstones', async () => {
      await put();
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push(await fixture.submit());
      for (const task of await fixture.claim()) await fixture.settle(task, { kind: 'succeeded' });
      expect(await fixture.store.deleteQueue({ queue: 'mail', now: noon + 500, by: 'ada' })).toBe(
        'deleted',
      );
      for (const id of ids) {
        expect(await fixture.tombstone(id)).toEqual({
          id,
          queue: 'mail',
          handlerRef: 'mail.send',
          status: 'SUCCEEDED',
          purgedAt: noon + 500,
        });
      }
    });

    test('a queue created again is a different one and starts empty', async () => {
      const first = await put();
      const id = await fixture.submit();
      await fixture.settle(await fixture.claimOne(), { kind: 'succeeded' });
      await fixture.store.deleteQueue({ queue: 'mail', now: noon + 1, by: 'ada' });
      const second = await put({ now: noon + 2 });
      expect(second).toMatchObject({ created: true, queue: { version: 1, createdAt: noon + 2 } });
      expect(second.queue?.incarnation).not.toBe(first.queue?.incarnation);
      expect(await fixture.store.counts('mail')).toEqual({
        pending: 0,
        inFlight: 0,
        dead: 0,
        delayed: 0,
        oldestDueAt: null,
        waits: {},
      });
      const [again] = await fixture.store.insertTasks([fixture.newTask({ id })], noon + 3);
      expect(again).toMatchObject({ kind: 'purged' });
      expect(await fixture.claim({ now: noon + 4 })).toEqual([]);
    });

    test('counts follow a task through its life', async () => {
      await put();
      const counts = async (now = noon + 2_000) => {
        const found = await fixture.store.counts('mail', now);
        return [found.pending, found.delayed, found.inFlight, found.dead, found.oldestDueAt];
      };
      expect(await counts()).toEqual([0, 0, 0, 0, null]);
      await fixture.submit({}, noon);
      await fixture.submit({ dueAt: noon + 60_000 }, noon + 7);
      expect(await counts()).toEqual([2, 1, 0, 0, noon]);
      const task = await fixture.claimOne();
      expect(await counts()).toEqual([1, 1, 1, 0, noon + 60_000]);
      await fixture.settle(task, { kind: 'retry', dueAt: noon + 200 });
      expect(await counts(noon + 199)).toEqual([2, 2, 0, 0, noon + 200]);
      expect(await counts(noon + 200)).toEqual([2, 1, 0, 0, noon + 200]);
      const again = await fixture.claimOne({ now: noon + 200 });
      await fixture.settle(again, { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED' });
      expect(await counts()).toEqual([1, 1, 0, 1, noon + 60_000]);
      await fixture.redrive([task.id]);
      expect(await counts()).toEqual([2, 1, 0, 0, noon + 1_000]);
      await fixture.settle(await fixture.claimOne({ now: noon + 2_000 }), { kind: 'succeeded' });
      expect(await counts()).toEqual([1, 1, 0, 0, noon + 60_000]);
      expect(await counts(noon + 60_000)).toEqual([1, 0, 0, 0, noon + 60_000]);
    });

    test('counts: the oldest due time is that of any priority and group', async () => {
      await put();
      await fixture.submit({ dueAt: noon + 5, priority: 9 }, noon + 9);
      await fixture.submit({ dueAt: noon + 3, groupKey: 'b' }, noon + 9);
      await fixture.submit({ dueAt: noon + 4, groupKey: 'a', priority: 2 }, noon + 9);
      expect(await fixture.store.counts('mail')).toMatchObject({ oldestDueAt: noon + 3 });
      const [, , first] = await fixture.claim({ now: noon + 9, limit: 3 });
      expect(first).toBeDefined();
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 0, oldestDueAt: null });
    });

    test('counts: a claim may hide only an expired task from the oldest due time', async () => {
      await put();
      const oldest = async () => (await fixture.store.counts('mail')).oldestDueAt;
      await fixture.submit({ expiresAt: noon + 10 });
      await fixture.submit({ dueAt: noon + 5_000 }, noon + 5_000);
      const left = noon + 6_000;
      await fixture.submit({ dueAt: left }, noon + 5_000);
      expect(await oldest()).toBe(noon);
      await fixture.claimOne({ now: noon + 5_000 });
      expect([noon, left]).toContain(await oldest());
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 2, inFlight: 1 });
      await fixture.store.expireTasks({ now: noon + 5_000, limit: 9 });
      expect(await oldest()).toBe(left);
    });

    test('everything is there after the store is reopened', async () => {
      await put();
      const id = await fixture.submit({ payload: Buffer.alloc(100_000, 7), headers: { a: 'b' } });
      const task = await fixture.claimOne();
      const [before, queue] = [await fixture.task(id), await fixture.store.getQueue('mail')];
      await fixture.reopen();
      expect(await fixture.store.getQueue('mail')).toEqual(queue);
      expect(await fixture.task(id)).toEqual(before);
      expect(await fixture.settle(task, { kind: 'succeeded' })).toMatchObject({ kind: 'settled' });
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 0, inFlight: 0 });
    });
  });
}
