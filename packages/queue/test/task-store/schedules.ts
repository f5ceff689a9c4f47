import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { describe, expect, test } from 'vitest';
import { newObserver } from '../../src/delivery/delivery.test-support.js';
import { Scheduler } from '../../src/background/scheduler.js';
import {
  newScheduleState,
  type ScheduleDefinition,
  type ScheduleState,
} from '../../src/core/schedule.js';
import { noon, type Fixture } from './fixture.js';

const minute = 60_000;
const definition: ScheduleDefinition = {
  every_ms: minute,
  timezone: 'UTC',
  task: { handler_ref: 'report.build' },
  overlap: 'skip',
  catch_up: 'last',
  jitter_ms: 0,
  description: '',
};

export function scheduleTests(fixture: Fixture): void {
  /** A queue with a schedule that runs every minute. */
  const setUp = async () => {
    await fixture.queue();
    const value = newScheduleState(definition, undefined, { now: noon, by: 'ada' });
    const key = { table: 'schedule', queue: 'mail', key: 'report' } as const;
    const puts = [{ ...key, ifRevision: 0, body: definition, value }];
    await fixture.store.writeRows({ puts, now: noon });
  };
  /** Runs the scheduler a number of minutes after noon; returns the state of the schedule. */
  const runAt = async (minutes: number): Promise<ScheduleState> => {
    const { store } = fixture;
    const clock = { ...systemClock, now: () => noon + minutes * minute };
    await new Scheduler({
      store,
      clock,
      log: silentLog,
      observer: newObserver(store, clock),
    }).run();
    return (await store.listRows({ table: 'schedule' }))[0]!.value as ScheduleState;
  };
  const end = async (minutes: number, kind: 'succeeded' | 'dead') => {
    const now = noon + minutes * minute;
    const task = await fixture.claimOne({ now });
    const verdict = kind === 'dead' ? ({ kind, reason: 'PERMANENT' } as const) : { kind };
    await fixture.settle(task, verdict, { now });
    return task.id;
  };

  describe('schedules with overlap skip', () => {
    test('schedule: a redriven task counts as unfinished until it succeeds', async () => {
      await setUp();
      await runAt(1);
      const first = await end(1, 'dead');
      await runAt(2);
      const second = await end(2, 'succeeded');
      const now = noon + 2 * minute;
      expect(await fixture.redrive([first], { now, dueAt: () => now })).toEqual([first]);
      expect(await runAt(3)).toMatchObject({ lastTaskId: second, openIds: [first] });
      await fixture.claimOne({ now, leaseExpiresAt: noon + 60 * minute });
      expect(await runAt(4)).toMatchObject({ lastTaskId: second, openIds: [first] });
    });

    test('schedule: dead, succeeded and purged tasks do not hold back a run', async () => {
      await setUp();
      await runAt(1);
      const dead = await end(1, 'dead');
      const { lastTaskId: second, openIds } = await runAt(2);
      expect(openIds).toEqual([dead, second]);
      expect(await end(2, 'succeeded')).toBe(second);
      const { lastTaskId: third } = await runAt(3);
      expect((await runAt(4)).openIds).toEqual([dead, third]);
      await end(4, 'dead');
      const now = noon + 5 * minute;
      const change = { queue: 'mail', ids: [dead], by: 'ada', selector: {}, diedBy: now, now };
      await fixture.store.actOnDead({ action: 'purge', ...change });
      const { lastTaskId: fourth, openIds: last } = await runAt(5);
      expect(last).toEqual([third, fourth]);
    });
  });
}
