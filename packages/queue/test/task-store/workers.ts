import { describe, expect, test } from 'vitest';
import type { WorkerNote } from '../../src/storage/port/task-store.js';
import { noon, type Fixture } from './fixture.js';

const identity = { worker: 'w1', principal: 'mailers', remoteIp: '192.0.2.7' };

function note(over: Partial<WorkerNote> = {}): WorkerNote {
  const counts = { claimed: 0, completed: 0, failed: 0, returned: 0 };
  return { queue: 'mail', key: 'key-of-w1', identity, seenAt: noon, ...counts, ...over };
}

export function workerTests(fixture: Fixture): void {
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

    test('noteWorkers: adds up what servers saw', async () => {
      await fixture.queue();
      const { store } = fixture;
      await store.noteWorkers([note({ claimed: 5 })], noon);
      await store.noteWorkers([note({ seenAt: noon + 500, completed: 2, failed: 1 })], noon);
      const known = note({ identity: undefined, seenAt: noon + 200, returned: 1 });
      await store.noteWorkers([known], noon);
      const list = await store.listWorkers({ queue: 'mail', seenSince: noon });
      expect(list).toEqual([
        { ...identity, lastSeenAt: noon + 500, inFlight: 1, claimed: 5, completed: 2, failed: 1 },
      ]);
    });

    test('noteWorkers: ignores an unknown worker without an identity', async () => {
      await fixture.queue();
      await fixture.store.noteWorkers([note({ identity: undefined, completed: 1 })], noon);
      expect(await fixture.store.listWorkers({ queue: 'mail', seenSince: 0 })).toEqual([]);
    });

    test('listWorkers: shows workers of the queue seen since, newest first', async () => {
      await fixture.queue();
      await fixture.queue('other');
      const named = (key: string, seenAt: number, queue = 'mail') =>
        note({ key, queue, seenAt, identity: { ...identity, worker: key, remoteIp: null } });
      await fixture.store.noteWorkers(
        [named('a', noon), named('b', noon + 2), named('c', noon + 1), named('d', noon, 'other')],
        noon,
      );
      const names = async (seenSince: number) =>
        (await fixture.store.listWorkers({ queue: 'mail', seenSince })).map((each) => each.worker);
      expect(await names(noon)).toEqual(['b', 'c', 'a']);
      expect(await names(noon + 1)).toEqual(['b', 'c']);
    });

    test('listWorkers: forgets the workers of a deleted queue', async () => {
      await fixture.queue();
      await fixture.store.noteWorkers([note()], noon);
      await fixture.store.deleteQueue({ queue: 'mail', now: noon, by: 'ada' });
      await fixture.queue();
      expect(await fixture.store.listWorkers({ queue: 'mail', seenSince: 0 })).toEqual([]);
    });
  });
}
