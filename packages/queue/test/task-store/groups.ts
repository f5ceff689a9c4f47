import { beforeEach, describe, expect, test } from 'vitest';
import { noon, type Fixture } from './fixture.js';

export function groupTests(fixture: Fixture): void {
  /** Submits tasks named by group and number, `a1` or `-1` for none, and claims by such names. */
  const names = new Map<string, string>();
  beforeEach(() => names.clear());
  const submit = async (name: string, over: object = {}, now = noon) => {
    const groupKey = name.startsWith('-') ? null : name.slice(0, -1);
    names.set(await fixture.submit({ groupKey, ...over }, now), name);
  };
  const claim = async (over: object = {}) => {
    const tasks = await fixture.claim({ fifoGroups: true, ...over });
    return tasks.map((task) => names.get(task.id));
  };
  const named = async (over: object = {}) =>
    (await fixture.claimIds(over)).map((id) => names.get(id));

  describe('groups that take turns', () => {
    test('groups of one priority take turns, tasks without a key among them', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', '-1', '-2']) await submit(name);
      expect(await named()).toEqual(['-1', 'a1', 'b1', 'c1', '-2', 'a2', 'b2', 'a3']);
    });

    test('a turn goes on where the claim before it ended', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2', 'b1', 'b2', 'c1', 'c2']) await submit(name);
      expect(await named({ limit: 2 })).toEqual(['a1', 'b1']);
      await submit('a3', { dueAt: noon - 10 });
      expect(await named({ limit: 2 })).toEqual(['c1', 'a3']);
      await fixture.reopen();
      expect(await named({ limit: 9 })).toEqual(['b2', 'c2', 'a2']);
    });

    test('each priority has turns of its own', async () => {
      await fixture.queue();
      for (const name of ['a1', 'b1']) await submit(name, { priority: 2 });
      for (const name of ['a2', 'b2']) await submit(name, { priority: 7 });
      expect(await named({ limit: 3 })).toEqual(['a2', 'b2', 'a1']);
      await submit('b3', { priority: 7 });
      await submit('a3', { priority: 7 });
      expect(await named({ limit: 3 })).toEqual(['a3', 'b3', 'b1']);
    });

    test('within a group the order is due time, then id', async () => {
      await fixture.queue();
      await submit('a1');
      await submit('a2', { dueAt: noon - 1 });
      await submit('a3');
      expect(await named()).toEqual(['a2', 'a1', 'a3']);
    });

    test('a large group does not keep a small one waiting', async () => {
      await fixture.queue();
      const many = Array.from({ length: 300 }, () => fixture.newTask({ groupKey: 'big' }));
      await fixture.store.insertTasks(many, noon);
      await submit('small1');
      await submit('z1');
      const first = await fixture.claim({ limit: 3 });
      expect(first.map((task) => task.groupKey)).toEqual(['big', 'small', 'z']);
      const rest = await fixture.claim({ limit: 1_000 });
      expect(rest.map((task) => task.id)).toEqual(many.slice(1).map((task) => task.id));
    });

    test('keys that begin alike are different groups', async () => {
      await fixture.queue();
      for (const groupKey of ['a', 'aa', 'a b', 'ä']) {
        const tasks = [1, 2].map(() => fixture.newTask({ groupKey }));
        await fixture.store.insertTasks(tasks, noon);
      }
      const claimed = await fixture.claim({ limit: 8 });
      const keys = claimed.map((task) => task.groupKey);
      expect(keys.slice(0, 4)).toEqual(['a', 'a b', 'aa', 'ä']);
      expect(keys.slice(4)).toEqual(keys.slice(0, 4));
    });
  });

  describe('FIFO groups', () => {
    const claimOne = () => fixture.claimOne({ fifoGroups: true });

    test('a group has one task in flight at a time, in order', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2', 'a3', 'b1', '-1', '-2']) await submit(name);
      const first = await fixture.claim({ fifoGroups: true });
      expect(first.map((task) => names.get(task.id))).toEqual(['-1', 'a1', 'b1', '-2']);
      expect(await claim()).toEqual([]);
      await fixture.settle(first[1]!, { kind: 'succeeded' });
      expect(await claim()).toEqual(['a2']);
    });

    test('order in a group is by due time and id, whatever the priority', async () => {
      await fixture.queue();
      await submit('a1', { priority: 1 });
      await submit('a2', { priority: 9 });
      await submit('b1', { priority: 5 });
      expect(await claim()).toEqual(['b1', 'a1']);
    });

    test('one that waits for its retry keeps the younger ones of its group waiting', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2', 'b1']) await submit(name);
      const task = await claimOne();
      await fixture.settle(task, { kind: 'retry', dueAt: noon + 5_000 });
      expect(await claim({ now: noon + 4_999 })).toEqual(['b1']);
      expect(await claim({ now: noon + 5_000 })).toEqual(['a1']);
      expect(await claim({ now: noon + 5_000 })).toEqual([]);
    });

    test('one that was handed back stays first', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2']) await submit(name);
      const task = await claimOne();
      await fixture.settle(task, { kind: 'handed_back', dueAt: noon + 100 });
      expect(await claim({ now: noon + 99 })).toEqual([]);
      expect(await claim({ now: noon + 100 })).toEqual(['a1']);
    });

    test('a dead one makes room', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2']) await submit(name);
      await fixture.settle(await claimOne(), { kind: 'dead', reason: 'PERMANENT' });
      expect(await claim()).toEqual(['a2']);
    });

    test('one that expires while it waits for its retry makes room', async () => {
      await fixture.queue();
      await submit('a1', { expiresAt: noon + 1_000 });
      await submit('a2');
      await fixture.settle(await claimOne(), { kind: 'retry', dueAt: noon + 5_000 });
      expect(await claim({ now: noon + 1_000 })).toEqual([]);
      await fixture.store.expireTasks({ now: noon + 1_000, limit: 10 });
      expect(await claim({ now: noon + 1_000 })).toEqual(['a2']);
    });

    test('a delayed one that was never tried blocks nobody', async () => {
      await fixture.queue();
      await submit('a1', { dueAt: noon + 5_000 });
      await submit('a2');
      const [first] = await fixture.claim({ fifoGroups: true });
      expect(names.get(first!.id)).toBe('a2');
      expect(await claim({ now: noon + 5_000 })).toEqual([]);
      await fixture.settle(first!, { kind: 'succeeded' });
      expect(await claim({ now: noon + 5_000 })).toEqual(['a1']);
    });

    test('one with an earlier due time that comes later goes first', async () => {
      await fixture.queue();
      await submit('a1', { priority: 3 });
      await submit('a2', { dueAt: noon - 10, priority: 6 });
      expect(await claim()).toEqual(['a2']);
    });

    test('a redriven one stands in line by its new due time', async () => {
      await fixture.queue();
      await submit('a1');
      const task = await claimOne();
      await fixture.settle(task, { kind: 'dead', reason: 'PERMANENT' });
      await submit('a2', { dueAt: noon + 500 });
      await fixture.redrive([task.id], { dueAt: () => noon + 1_000 });
      expect(await claim({ now: noon + 2_000 })).toEqual(['a2']);
    });

    test('a group is busy while another of it runs or waits to be retried', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2', 'b1']) await submit(name);
      const [a1, a2] = [...names].slice(-3).map(([id]) => id);
      const busy = (id: string, groupKey = 'a') =>
        fixture.store.groupIsBusy({ queue: 'mail', groupKey, id });
      expect(await busy(a2!)).toBe(false);
      const task = await claimOne();
      expect(task.id).toBe(a1);
      expect(await busy(a2!)).toBe(true);
      expect(await busy(a1!)).toBe(false);
      await fixture.settle(task, { kind: 'retry', dueAt: noon + 5_000 });
      expect(await busy(a2!)).toBe(true);
      expect(await busy(a1!)).toBe(false);
      expect(await busy(a2!, 'b')).toBe(false);
      const both = await fixture.claim({ now: noon + 5_000, fifoGroups: true });
      expect(both.map((each) => names.get(each.id))).toEqual(['b1', 'a1']);
      await fixture.settle(both[1]!, { kind: 'succeeded' });
      expect(await busy(a2!)).toBe(false);
    });

    test('a queue may become FIFO while its tasks run, and stop being so', async () => {
      await fixture.queue();
      for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', '-1']) await submit(name);
      const running = await fixture.claim({ limit: 4 });
      expect(running.map((task) => names.get(task.id))).toEqual(['-1', 'a1', 'b1', 'a2']);
      expect(await claim()).toEqual([]);
      const [, a1, b1, a2] = running;
      await fixture.settle(a1!, { kind: 'retry', dueAt: noon + 300 });
      await fixture.settle(a2!, { kind: 'retry', dueAt: noon + 200 });
      await fixture.settle(b1!, { kind: 'succeeded' });
      expect(await claim({ now: noon + 150 })).toEqual(['b2']);
      const [again] = await fixture.claim({ fifoGroups: true, now: noon + 300 });
      expect(names.get(again!.id)).toBe('a2');
      expect(await claim({ now: noon + 300 })).toEqual([]);
      await fixture.settle(again!, { kind: 'succeeded' });
      expect(await claim({ now: noon + 300 })).toEqual(['a1']);
      expect(await named({ now: noon + 300 })).toEqual(['a3', 'a4']);
    });
  });
}
