import { describe, expect, test } from 'vitest';
import type { TaskFilter, TaskListQuery } from '../../src/storage/port/task-list.js';
import { noon, type Fixture } from './fixture.js';

/** Lists and counts of tasks. */
export function listTests(fixture: Fixture): void {
  const list = (over: Partial<TaskListQuery> = {}) =>
    fixture.store.listTasks({ queue: 'mail', filter: {}, order: 'newest', limit: 10, ...over });
  const ids = async (over: Partial<TaskListQuery> = {}) =>
    (await list(over)).tasks.map(({ id }) => id);
  const count = (filter: TaskFilter, queue = 'mail') => fixture.store.countTasks({ queue, filter });
  /** Follows the positions to the end. */
  const all = async (over: Partial<TaskListQuery> = {}): Promise<string[]> => {
    const found: string[] = [];
    let { after } = over;
    do {
      const page = await list({ ...over, after });
      found.push(...page.tasks.map(({ id }) => id));
      after = page.next;
    } while (after);
    return found;
  };

  describe('lists of tasks', () => {
    test('list: a queue without tasks and one that does not exist have no tasks', async () => {
      await fixture.queue();
      expect(await list()).toEqual({ tasks: [], next: undefined });
      expect(await list({ queue: 'none' })).toEqual({ tasks: [], next: undefined });
      expect(await count({}, 'none')).toEqual({ count: 0, isEstimate: false });
    });

    test('list: has tasks by creation time and id, of one queue', async () => {
      await fixture.queue();
      await fixture.queue('post');
      await fixture.submit({ queue: 'post' });
      const old = await fixture.submit({}, noon + 1);
      const same = [fixture.newTask(), fixture.newTask(), fixture.newTask()];
      await fixture.store.insertTasks(same.toReversed(), noon + 5);
      const young = await fixture.submit({}, noon + 9);
      const inOrder = [old, ...same.map(({ id }) => id), young];
      expect(await ids({ order: 'oldest' })).toEqual(inOrder);
      expect(await ids()).toEqual(inOrder.toReversed());
      for (const limit of [1, 2, 3, 5]) {
        expect(await all({ limit, order: 'oldest' })).toEqual(inOrder);
        expect(await all({ limit })).toEqual(inOrder.toReversed());
      }
      const page = await list({ limit: 5 });
      expect([page.tasks.length, page.next]).toEqual([5, undefined]);
    });

    test('list: shows tasks as they are, without payload and attempts', async () => {
      await fixture.queue();
      const id = await fixture.submit({ headers: { 'x-a': '1' }, groupKey: 'a' });
      const { tasks } = await list();
      const { payload: _payload, attempts: _attempts, ...task } = await fixture.task(id);
      expect(tasks).toEqual([task]);
    });

    test('list: filters by status, handler, group and creation time', async () => {
      await fixture.queue();
      const dead = await fixture.die({ handlerRef: 'a' }, noon);
      const done = await fixture.submit({ groupKey: 'g' }, noon + 1);
      await fixture.settle(await fixture.claimOne({ now: noon + 1 }), { kind: 'succeeded' });
      const running = await fixture.submit({ handlerRef: 'a' }, noon + 2);
      const grouped = await fixture.submit({ groupKey: 'g' }, noon + 2);
      expect((await fixture.claimIds({ now: noon + 2 })).toSorted()).toEqual(
        [running, grouped].toSorted(),
      );
      const pending = await fixture.submit({ dueAt: noon + 60_000, groupKey: 'g' }, noon + 3);
      const cases: [TaskFilter, string[]][] = [
        [{ statuses: ['DEAD'] }, [dead]],
        [{ statuses: ['SUCCEEDED'] }, [done]],
        [{ statuses: ['IN_FLIGHT'] }, [grouped, running]],
        [{ statuses: ['PENDING'] }, [pending]],
        [{ statuses: ['PENDING', 'DEAD'] }, [pending, dead]],
        [{ statuses: ['IN_FLIGHT'], handlerRef: 'a' }, [running]],
        [{ statuses: ['PENDING'], handlerRef: 'a' }, []],
        [{ handlerRef: 'a' }, [running, dead]],
        [{ groupKey: 'g' }, [pending, grouped, done]],
        [{ statuses: ['PENDING'], groupKey: 'g' }, [pending]],
        [{ createdFrom: noon + 1, createdBefore: noon + 3 }, [grouped, running, done]],
        [{ createdFrom: noon + 3, createdBefore: noon + 1 }, []],
        [{ statuses: ['PENDING'], createdBefore: noon + 3 }, []],
      ];
      for (const [filter, expected] of cases) {
        expect(await ids({ filter }), JSON.stringify(filter)).toEqual(expected);
        expect(await all({ filter, limit: 1 })).toEqual(expected);
        expect(await all({ filter, limit: 1, order: 'oldest' })).toEqual(expected.toReversed());
        expect(await count(filter)).toEqual({ count: expected.length, isEstimate: false });
      }
      expect(await count({})).toEqual({ count: 5, isEstimate: false });
    });

    test('list: the order next has pending tasks by due time and id', async () => {
      await fixture.queue();
      const later = await fixture.submit({ dueAt: noon + 60_000 });
      const urgent = await fixture.submit({ dueAt: noon - 5, priority: 9 });
      const first = await fixture.submit({ dueAt: noon - 9, priority: 1 });
      const grouped = await fixture.submit({ dueAt: noon - 7, groupKey: 'g' });
      const soon = await fixture.submit({ dueAt: noon + 1, groupKey: 'h' });
      const filter = { statuses: ['PENDING' as const] };
      const expected = [first, grouped, urgent, soon, later];
      expect(await ids({ order: 'next', filter })).toEqual(expected);
      expect(await all({ order: 'next', filter, limit: 2 })).toEqual(expected);
      // In a FIFO queue, tasks that are due wait in line.
      await fixture.claim({ limit: 1, now: noon + 1, fifoGroups: true });
      expect(await all({ order: 'next', filter, limit: 1 })).toEqual(
        expected.filter((id) => id !== urgent),
      );
    });

    test('list: deleted tasks are gone, redriven ones keep their place', async () => {
      await fixture.queue();
      const purged = await fixture.die({}, noon);
      const redriven = await fixture.die({}, noon + 1);
      const pending = await fixture.submit({}, noon + 2);
      const change = { queue: 'mail', diedBy: noon + 9, now: noon + 9, by: 'ada', selector: {} };
      await fixture.store.actOnDead({ ...change, action: 'purge', ids: [purged] });
      await fixture.redrive([redriven]);
      expect(await ids({ order: 'oldest' })).toEqual([redriven, pending]);
      expect(await count({})).toEqual({ count: 2, isEstimate: false });
      await fixture.reopen();
      expect(await ids({ filter: { statuses: ['PENDING'] } })).toEqual([pending, redriven]);
    });

    test('list: a queue that was deleted and created again starts empty', async () => {
      await fixture.queue();
      await fixture.submit();
      await fixture.settle(await fixture.claimOne(), { kind: 'succeeded' });
      expect(await count({ statuses: ['SUCCEEDED'] })).toEqual({ count: 1, isEstimate: false });
      await fixture.store.deleteQueue({ queue: 'mail', now: noon + 5, by: 'ada' });
      await fixture.queue();
      expect(await ids()).toEqual([]);
      expect(await count({})).toEqual({ count: 0, isEstimate: false });
    });

    test('list: many tasks with a filter that matches few', async () => {
      await fixture.queue();
      const wanted: string[] = [];
      const grouped = new Set<string>();
      for (let part = 0; part < 6; part++) {
        const tasks = Array.from({ length: 500 }, (_, i) =>
          fixture.newTask({
            payload: Buffer.alloc(0),
            handlerRef: i === 250 ? 'rare' : 'common',
            dueAt: noon + (i % 2) * 60_000,
            priority: i % 10,
            groupKey: i % 45 === 0 ? 'g' : null,
          }),
        );
        await fixture.store.insertTasks(tasks, noon + part);
        wanted.push(tasks[250]!.id);
        for (const { id, groupKey } of tasks) if (groupKey === 'g') grouped.add(id);
      }
      const pending: TaskFilter = { statuses: ['PENDING'] };
      const rare = { ...pending, handlerRef: 'rare' };
      expect(await all({ filter: rare, limit: 4, order: 'oldest' })).toEqual(wanted);
      expect(await all({ filter: rare, limit: 4 })).toEqual(wanted.toReversed());
      expect(await all({ filter: { handlerRef: 'rare' }, limit: 1 })).toEqual(wanted.toReversed());
      expect((await all({ filter: rare, limit: 4, order: 'next' })).toSorted()).toEqual(
        wanted.toSorted(),
      );
      const next = await all({ filter: pending, limit: 500, order: 'next' });
      expect([next.length, new Set(next).size]).toEqual([3_000, 3_000]);
      expect(await all({ filter: { ...pending, groupKey: 'g' }, limit: 7, order: 'next' })).toEqual(
        next.filter((id) => grouped.has(id)),
      );
      expect(await count(rare)).toEqual({ count: 6, isEstimate: false });
      expect(await count({ handlerRef: 'common' })).toEqual({ count: 2_994, isEstimate: false });
      expect(await count(pending)).toEqual({ count: 3_000, isEstimate: false });
    });
  });
}
