import { describe, expect, test } from 'vitest';
import type { EventPosition, TaskEvent } from '../../src/storage/port/events.js';
import { noon, type Fixture } from './fixture.js';

export function eventTests(fixture: Fixture): void {
  const read = async (after: EventPosition, limit = 1_000) => {
    const page = await fixture.store.readEvents({ after, limit });
    if (page === 'stale') throw new Error('The position is stale');
    return page;
  };
  const names = (events: readonly { event: TaskEvent }[]) =>
    events.map(({ event }) => `${event.type} ${event.attempt}`);

  describe('events', () => {
    test('events: the life of tasks in order, in pages, and after a restart', async () => {
      await fixture.queue();
      const start = await fixture.store.startEvents(noon);
      const id = await fixture.submit({ handlerRef: 'mail.send' });
      const first = await fixture.claimOne();
      const { token } = first.lease!;
      const progress = { percent: 40, message: 'half', at: noon + 1 };
      const expiresAt = noon + 60_000;
      await fixture.store.extendLease({
        id,
        token,
        expiresAt,
        isAsync: false,
        now: noon,
        progress,
      });
      const error = { errorType: 'E', message: 'no', httpStatus: null, at: noon };
      await fixture.settle(first, { kind: 'retry', dueAt: noon + 200 }, { error });
      const second = await fixture.claimOne({ now: noon + 200 });
      await fixture.reopen();
      const reason = 'ATTEMPTS_EXHAUSTED';
      await fixture.settle(second, { kind: 'dead', reason }, { error, now: noon + 300 });
      const done = await fixture.submit({}, noon + 300);
      await fixture.settle(await fixture.claimOne({ now: noon + 300 }), { kind: 'succeeded' });
      const { events, next } = await read(start);
      expect(names(events)).toEqual([
        'submitted 0',
        'started 1',
        'progress 1',
        'failed 1',
        'started 2',
        'failed 2',
        'dead 2',
        'submitted 0',
        'started 1',
        'succeeded 1',
      ]);
      expect(events[2]!.event).toMatchObject({ queue: 'mail', taskId: id, detail: { progress } });
      expect(events[3]!.event.detail).toMatchObject({ error, nextAttemptAt: noon + 200 });
      expect(events[6]!.event).toMatchObject({
        handlerRef: 'mail.send',
        at: noon + 300,
        detail: { error, deadReason: reason },
      });
      expect(events.at(-1)!.event.taskId).toBe(done);
      expect((await read(next)).events).toEqual([]);
      const one = await read(start, 1);
      const rest = await read(one.next);
      expect(names([...one.events, ...rest.events])).toEqual(names(events));
      expect(names((await read(events[4]!.position)).events)).toEqual(names(events.slice(5)));
    });

    test('events: a cancelled and an expired task', async () => {
      await fixture.queue();
      const start = await fixture.store.startEvents(noon);
      const attempt = () => {
        throw new Error('it is not in flight');
      };
      const change = { now: noon + 1, by: 'ada', selector: {}, message: 'enough' };
      await fixture.store.cancelTask({ ...change, id: await fixture.submit(), attempt });
      const ids = [await fixture.submit()];
      await fixture.store.cancelPending({ ...change, queue: 'mail', ids });
      await fixture.submit({ expiresAt: noon + 5 });
      await fixture.store.expireTasks({ now: noon + 6, limit: 10 });
      const { events } = await read(start);
      const last = events.filter(({ event }) => event.type !== 'submitted');
      expect(names(last)).toEqual(['cancelled 0', 'cancelled 0', 'dead 0']);
      expect(last[0]!.event.detail.error).toMatchObject({ message: 'enough' });
      expect(last[2]!.event.detail).toMatchObject({ deadReason: 'EXPIRED' });
    });

    test('events: nothing is recorded before the first reader, nor long after the last', async () => {
      await fixture.queue();
      await fixture.submit();
      const start = await fixture.store.startEvents(noon);
      expect((await read(start)).events).toEqual([]);
      const later = noon + 3_600_000;
      await fixture.submit({}, later);
      const again = await fixture.store.startEvents(later);
      await fixture.submit({}, later);
      expect(await fixture.store.readEvents({ after: start, limit: 1 })).toBe('stale');
      expect(names((await read(again)).events)).toEqual(['submitted 0']);
      const ahead: EventPosition = [again[0] + 1_000_000, 0];
      expect(await fixture.store.readEvents({ after: ahead, limit: 1 })).toBe('stale');
    });

    test('events: old ones are deleted, and their positions are stale', async () => {
      await fixture.queue();
      const start = await fixture.store.startEvents(noon);
      await fixture.submit();
      const { next } = await read(start);
      for (let i = 1; i <= 20; i++) {
        const now = noon + i * 60_000;
        await fixture.store.startEvents(now);
        await fixture.submit({}, now);
        await fixture.store.deleteTombstones({ now, limit: 10 });
      }
      expect(await fixture.store.readEvents({ after: start, limit: 1 })).toBe('stale');
      expect(await fixture.store.readEvents({ after: next, limit: 1 })).toBe('stale');
    });

    test('onEvents: reports new events', async () => {
      await fixture.queue();
      await fixture.store.startEvents(noon);
      let stop = () => {};
      const reported = new Promise<void>((resolve) => (stop = fixture.store.onEvents(resolve)));
      await fixture.submit();
      await reported;
      stop();
    });
  });
}
