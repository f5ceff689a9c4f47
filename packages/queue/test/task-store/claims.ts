import { QueueChanged } from '../../src/storage/port/task-store.js';
import { describe, expect, test } from 'vitest';
import { noon, type Fixture } from './fixture.js';

export function claimTests(fixture: Fixture): void {
  describe('claims', () => {
    test('a claim takes the task under a lease and raises its attempt', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const task = await fixture.claimOne({ now: noon + 10, leaseExpiresAt: noon + 500 });
      expect(task).toMatchObject({
        id,
        status: 'IN_FLIGHT',
        attempt: 1,
        totalAttempts: 1,
        dueAt: null,
        updatedAt: noon + 10,
        lease: { expiresAt: noon + 500, nodeId: 'node-1', startedAt: noon + 10, isAsync: false },
      });
      expect(await fixture.task(id)).toEqual(task);
      expect(await fixture.claim({ now: noon + 20 })).toEqual([]);
    });

    test('every claim has a token of its own', async () => {
      await fixture.queue();
      for (let i = 0; i < 4; i++) await fixture.submit();
      const tokens = (await fixture.claim()).map((task) => task.lease!.token);
      expect(new Set(tokens).size).toBe(4);
    });

    test('higher priority goes first, then due time, then id', async () => {
      await fixture.queue();
      const low = await fixture.submit({ priority: 0 });
      const late = await fixture.submit({ dueAt: noon });
      const early = await fixture.submit({ dueAt: noon - 5 });
      const laterId = await fixture.submit({ dueAt: noon });
      const high = await fixture.submit({ priority: 9, dueAt: noon });
      expect(await fixture.claimIds({ now: noon })).toEqual([high, early, late, laterId, low]);
    });

    test('no more than the limit is claimed', async () => {
      await fixture.queue();
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) ids.push(await fixture.submit());
      expect(await fixture.claimIds({ limit: 2 })).toEqual(ids.slice(0, 2));
      expect(await fixture.claimIds({ limit: 2 })).toEqual(ids.slice(2, 4));
      expect(await fixture.claimIds({ limit: 0 })).toEqual([]);
      expect(await fixture.claimIds({ limit: 2 })).toEqual(ids.slice(4));
    });

    test('a task is not claimed before it is due', async () => {
      await fixture.queue();
      const later = await fixture.submit({ dueAt: noon + 1_000, priority: 9 });
      const now = await fixture.submit();
      expect(await fixture.claimIds()).toEqual([now]);
      expect(await fixture.claimIds({ now: noon + 999 })).toEqual([]);
      expect(await fixture.claimIds({ now: noon + 1_000 })).toEqual([later]);
    });

    test('what falls due while others wait takes its place by priority', async () => {
      await fixture.queue();
      const waiting = await fixture.submit({ priority: 4 });
      const urgent = await fixture.submit({ priority: 8, dueAt: noon + 50 });
      expect(await fixture.claimIds({ now: noon + 50, limit: 1 })).toEqual([urgent]);
      expect(await fixture.claimIds({ now: noon + 50, limit: 1 })).toEqual([waiting]);
    });

    test('a paused queue and an unknown one give nothing', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      await fixture.store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' });
      expect(await fixture.claim()).toEqual([]);
      await fixture.store.setPaused({ queue: 'mail', paused: false, now: noon, by: 'ada' });
      expect(await fixture.claimIds()).toEqual([id]);
      expect(await fixture.claim({ queue: 'none' })).toEqual([]);
    });

    test('a claim takes nothing if the queue changed since it was read', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const { store } = fixture;
      const read = async () => (await store.getQueue('mail'))!;
      const refusal = (error: unknown) => {
        expect(error).toBeInstanceOf(QueueChanged);
        return [];
      };
      const first = await read();
      await fixture.queue();
      await expect(fixture.claim({ expected: first })).rejects.toThrow(QueueChanged);
      const second = await read();
      await store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' });
      const none = fixture.claimIds({ expected: second }).catch(refusal);
      expect(await none).toEqual([]);
      await store.setPaused({ queue: 'mail', paused: false, now: noon, by: 'ada' });
      const [task] = await fixture.claim({ expected: second });
      expect(task?.id).toBe(id);
      await fixture.settle(task!, { kind: 'succeeded' });
      await store.deleteQueue({ queue: 'mail', now: noon, by: 'ada' });
      for (let version = 1; version <= second.version; version++) await fixture.queue();
      expect((await read()).version).toBe(second.version);
      const again = await fixture.submit();
      await expect(fixture.claim({ expected: second })).rejects.toThrow(QueueChanged);
      expect(await fixture.claimIds({ expected: await read() })).toEqual([again]);
    });

    test('queues are claimed from apart', async () => {
      await fixture.queue('mail');
      await fixture.queue('post');
      const id = await fixture.submit({ queue: 'post' });
      expect(await fixture.claim()).toEqual([]);
      expect(await fixture.claimIds({ queue: 'post' })).toEqual([id]);
    });

    test('no more are in flight than may be', async () => {
      await fixture.queue();
      for (let i = 0; i < 5; i++) await fixture.submit();
      const first = await fixture.claim({ maxInFlight: 3 });
      expect(first).toHaveLength(3);
      expect(await fixture.claim({ maxInFlight: 3 })).toEqual([]);
      expect(await fixture.claim({ maxInFlight: 1 })).toEqual([]);
      await fixture.settle(first[1]!, { kind: 'succeeded' });
      expect(await fixture.claim({ maxInFlight: 3 })).toHaveLength(1);
    });

    test('no more start in any second than may', async () => {
      await fixture.queue();
      for (let i = 0; i < 9; i++) await fixture.submit();
      const at = async (now: number) => (await fixture.claim({ now, dispatchPerSecond: 3 })).length;
      expect(await at(noon)).toBe(3);
      expect(await at(noon + 500)).toBe(0);
      expect(await at(noon + 999)).toBe(0);
      expect(await at(noon + 1_020)).toBe(3);
      expect(await at(noon + 1_900)).toBe(0);
    });

    test('starts are counted over any second, not from second to second', async () => {
      await fixture.queue();
      for (let i = 0; i < 9; i++) await fixture.submit();
      const at = async (now: number, limit: number) =>
        (await fixture.claim({ now, limit, dispatchPerSecond: 3 })).length;
      expect(await at(noon, 1)).toBe(1);
      expect(await at(noon + 900, 9)).toBe(2);
      expect(await at(noon + 1_020, 9)).toBe(1);
      expect(await at(noon + 1_100, 9)).toBe(0);
      expect(await at(noon + 1_920, 9)).toBe(2);
    });

    test('a clock set back does not stop the starts for long', async () => {
      await fixture.queue();
      for (let i = 0; i < 6; i++) await fixture.submit({ dueAt: noon - 100_000 });
      const at = async (now: number) => (await fixture.claim({ now, dispatchPerSecond: 2 })).length;
      expect(await at(noon)).toBe(2);
      expect(await at(noon - 400)).toBe(0);
      expect(await at(noon - 90_000)).toBe(2);
      expect(await at(noon - 89_500)).toBe(0);
    });

    test('a task past its expiry is not claimed', async () => {
      await fixture.queue();
      await fixture.submit({ expiresAt: noon + 10 });
      const other = await fixture.submit({ expiresAt: noon + 11 });
      expect(await fixture.claimIds({ now: noon + 10 })).toEqual([other]);
    });

    test('the next event is the earliest of what falls due by itself', async () => {
      await fixture.queue('mail');
      await fixture.queue('post');
      const next = async () => {
        const { dueByQueue, upkeepAt } = await fixture.store.nextEventAt();
        return [Object.fromEntries(dueByQueue), upkeepAt];
      };
      expect(await next()).toEqual([{}, undefined]);
      await fixture.submit({ dueAt: noon + 900 });
      await fixture.submit({ dueAt: noon + 500, expiresAt: noon + 5_000 });
      await fixture.submit({ queue: 'post', dueAt: noon + 700 });
      expect(await next()).toEqual([{ mail: noon + 500, post: noon + 700 }, noon + 5_000]);
      const task = await fixture.claimOne({ now: noon + 500, leaseExpiresAt: noon + 4_000 });
      expect(await next()).toEqual([{ mail: noon + 900, post: noon + 700 }, noon + 4_000]);
      await fixture.store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' });
      expect(await next()).toEqual([{ post: noon + 700 }, noon + 4_000]);
      await fixture.settle(task, { kind: 'succeeded' });
      expect(await next()).toEqual([{ post: noon + 700 }, undefined]);
    });

    test('what is due already is an event in the past', async () => {
      await fixture.queue();
      await fixture.submit({ dueAt: noon - 5_000 });
      await fixture.submit({ dueAt: noon + 5_000 });
      const { dueByQueue } = await fixture.store.nextEventAt();
      expect(dueByQueue.get('mail')).toBeLessThanOrEqual(noon);
    });
  });
}
