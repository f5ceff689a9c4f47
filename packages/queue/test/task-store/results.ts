import { describe, expect, test } from 'vitest';
import { noon, settlementOf, type Fixture } from './fixture.js';

/** Results and progress of tasks. */
export function resultTests(fixture: Fixture): void {
  const progress = { percent: 40, message: 'page 4', at: noon + 50 };
  const extend = (id: string, token: string, over = {}) =>
    fixture.store.extendLease({
      id,
      token,
      expiresAt: noon + 90_000,
      isAsync: true,
      now: noon + 50,
      ...over,
    });

  describe('results and progress', () => {
    test('result: is kept with a task that succeeded, and deleted with it', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      expect(await fixture.fullTask(id)).toMatchObject({
        result: null,
        resultDropped: false,
        progress: null,
        uniqueKey: null,
      });
      const large = JSON.stringify({ text: 'ü'.repeat(20_000), zero: 'a\0b' });
      await fixture.settle(await fixture.claimOne(), { kind: 'succeeded' }, { result: large });
      await fixture.reopen();
      expect(await fixture.fullTask(id)).toMatchObject({ result: large, resultDropped: false });
      const request = { queue: 'mail', status: 'SUCCEEDED' as const, limit: 9 };
      await fixture.store.deleteFinished({
        ...request,
        endedBefore: noon + 9_000,
        now: noon + 9_000,
      });
      expect(await fixture.tombstone(id)).toMatchObject({ status: 'SUCCEEDED' });
    });

    test('result: one that was too large is noted', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const task = await fixture.claimOne();
      await fixture.settle(task, { kind: 'succeeded' }, { resultDropped: true });
      expect(await fixture.fullTask(id)).toMatchObject({ result: null, resultDropped: true });
    });

    test('progress: is kept through retries, the end and a redrive', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const first = await fixture.claimOne();
      await extend(id, first.lease!.token, { progress });
      expect(await fixture.fullTask(id)).toMatchObject({ progress });
      await extend(id, first.lease!.token);
      expect(await extend(id, 'other', { progress: { ...progress, percent: 99 } })).toBe(
        'lease_lost',
      );
      expect(await fixture.fullTask(id)).toMatchObject({ progress });
      await fixture.settle(first, { kind: 'retry', dueAt: noon + 200 });
      const second = await fixture.claimOne({ now: noon + 200 });
      const unknown = { percent: null, message: null, at: noon + 300 };
      await extend(id, second.lease!.token, { progress: unknown });
      await fixture.settle(second, { kind: 'dead', reason: 'PERMANENT' });
      expect(await fixture.fullTask(id)).toMatchObject({ progress: unknown });
      await fixture.redrive([id]);
      await fixture.reopen();
      expect(await fixture.fullTask(id)).toMatchObject({ status: 'PENDING', progress: unknown });
    });

    test('ends: listeners are notified of each task that ends', async () => {
      await fixture.queue();
      const ended: string[] = [];
      const stop = fixture.store.onEnded((id) => ended.push(id));
      const dead = await fixture.die();
      const expired = await fixture.submit({ expiresAt: noon + 1, dueAt: noon + 60_000 });
      await fixture.store.expireTasks({ now: noon + 1, limit: 9 });
      const retried = await fixture.submit();
      const task = await fixture.claimOne();
      await fixture.settle(task, { kind: 'retry', dueAt: noon + 60_000 });
      const done = await fixture.submit();
      const [claimed] = await fixture.claim();
      await fixture.store.settle([settlementOf(claimed!, { kind: 'succeeded' })]);
      const change = { now: noon + 5, by: 'ada', message: 'no', selector: {} };
      await fixture.store.cancelPending({ ...change, queue: 'mail', ids: [retried] });
      stop();
      await fixture.die();
      expect(ended).toEqual([dead, expired, done, retried]);
    });
  });
}
