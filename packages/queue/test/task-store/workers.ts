import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WorkerActivity, workerKey } from '../../src/delivery/worker-activity.js';
import { noon, type Fixture } from './fixture.js';

const identity = { worker: 'w1', principal: 'mailers', remoteIp: '192.0.2.7' };

export function workerTests(fixture: Fixture): void {
  /** What a server counts; its clock shows `time.now`. */
  const server = (time: { now: number }) => {
    const clock = { ...systemClock, now: () => time.now };
    const activity = new WorkerActivity({ store: fixture.store, clock, log: silentLog });
    onTestFinished(() => activity.stop());
    return activity;
  };
  const tokenOf = (worker: object) => `l1.x.${workerKey('mail', { ...identity, ...worker })}`;

  describe('workers', () => {
    test('claim: takes only tasks of the given handlers, in claim order', async () => {
      await fixture.queue();
      await fixture.submit({ handlerRef: 'a' });
      const low = await fixture.submit({ handlerRef: 'b' });
      const high = await fixture.submit({ handlerRef: 'b', priority: 9 });
      const other = await fixture.submit({ handlerRef: 'c', groupKey: 'g' });
      expect(await fixture.claimIds({ handlers: ['b'] })).toEqual([high, low]);
      expect(await fixture.claimIds({ handlers: ['b', 'x'] })).toEqual([]);
      expect(await fixture.claimIds({ handlers: ['c'] })).toEqual([other]);
      expect(await fixture.claim()).toHaveLength(1);
    });

    test('claim: a handler filter does not hide skipped tasks from later claims', async () => {
      await fixture.queue();
      const skipped = [await fixture.submit({ handlerRef: 'a', dueAt: noon - 10_000 })];
      const taken = await fixture.submit({ handlerRef: 'b' });
      skipped.push(await fixture.submit({ handlerRef: 'a' }));
      expect(await fixture.claimIds({ handlers: ['b'] })).toEqual([taken]);
      await fixture.submit({ handlerRef: 'b' });
      expect(await fixture.claimIds({ handlers: ['b'], limit: 1 })).toHaveLength(1);
      expect(await fixture.claimIds()).toEqual(skipped);
    });

    test('claim: leaves excluded handlers out, and does not hide their tasks', async () => {
      await fixture.queue();
      const left = [await fixture.submit({ handlerRef: 'a', dueAt: noon - 10_000 })];
      const taken = [await fixture.submit({ handlerRef: 'b' })];
      left.push(await fixture.submit({ handlerRef: 'a' }));
      for (const groupKey of ['g1', 'g2', 'g3']) {
        await fixture.submit({ handlerRef: 'a', groupKey, priority: 1 });
      }
      taken.push(await fixture.submit({ handlerRef: 'c', groupKey: 'g4', priority: 1 }));
      expect(await fixture.claimIds({ excludedHandlers: ['a'], limit: 1 })).toEqual([taken[0]]);
      expect(await fixture.claimIds({ excludedHandlers: ['a'], limit: 1 })).toEqual([taken[1]]);
      expect(await fixture.claimIds({ excludedHandlers: ['a'] })).toEqual([]);
      expect((await fixture.claimIds()).slice(0, 2)).toEqual(left);
    });

    test('workers: adds up what servers saw', async () => {
      await fixture.queue();
      const time = { now: noon };
      const first = server(time);
      // A store of its own has one server.
      const second = fixture.store.capabilities.isShared ? server(time) : first;
      first.seen('mail', identity);
      first.claimed('mail', workerKey('mail', identity), 5);
      await first.list('mail');
      time.now = noon + 500;
      second.settled('mail', tokenOf({}), 'succeeded');
      second.settled('mail', tokenOf({}), 'succeeded');
      second.settled('mail', tokenOf({}), 'dead');
      first.settled('mail', tokenOf({}), 'handed_back');
      await second.list('mail');
      expect(await first.list('mail')).toEqual([
        { ...identity, lastSeenAt: noon + 500, inFlight: 1, claimed: 5, completed: 2, failed: 1 },
      ]);
    });

    test('workers: ignores an unknown worker without an identity', async () => {
      await fixture.queue();
      const activity = server({ now: noon });
      activity.settled('mail', tokenOf({}), 'succeeded');
      expect(await activity.list('mail')).toEqual([]);
    });

    test('workers: shows those of the queue seen in ten minutes, newest first', async () => {
      await fixture.queue();
      await fixture.queue('other');
      const time = { now: noon };
      const activity = server(time);
      const seen = async (worker: string, at: number, queue = 'mail') => {
        time.now = noon + at;
        activity.seen(queue, { ...identity, worker });
        await activity.list(queue);
      };
      await seen('a', 0);
      await seen('d', 0, 'other');
      await seen('c', 1);
      await seen('b', 2);
      const names = async () => (await activity.list('mail')).map(({ worker }) => worker);
      expect(await names()).toEqual(['b', 'c', 'a']);
      time.now = noon + 600_001;
      expect(await names()).toEqual(['b', 'c']);
    });

    test('workers: those not seen for two hours are forgotten', async () => {
      await fixture.queue();
      const time = { now: noon };
      const activity = server(time);
      activity.seen('mail', identity);
      await activity.list('mail');
      time.now = noon + 2 * 3_600_000 + 1;
      activity.seen('mail', { ...identity, worker: 'w2' });
      await activity.list('mail');
      const stored = await fixture.store.listRows({ table: 'worker', queue: 'mail' });
      expect(stored).toHaveLength(fixture.store.capabilities.isShared ? 1 : 0);
      time.now = noon;
      expect((await activity.list('mail')).map(({ worker }) => worker)).toEqual(['w2']);
    });

    test('workers: forgets those of a deleted queue', async () => {
      await fixture.queue();
      const activity = server({ now: noon });
      activity.seen('mail', identity);
      expect(await activity.list('mail')).toHaveLength(1);
      await fixture.store.deleteQueue({ queue: 'mail', now: noon, by: 'ada' });
      activity.forget('mail');
      await fixture.queue();
      expect(await activity.list('mail')).toEqual([]);
    });
  });
}
