import { describe, expect, test } from 'vitest';
import {
  type DeadChange,
  keyAfter,
  removalOf,
  type RowBatch,
  type RowPut,
} from '../../src/storage/port/task-store.js';
import { noon, type Fixture } from './fixture.js';

const job = { table: 'job', queue: 'mail', key: 'J1' } as const;

export function recordTests(fixture: Fixture): void {
  /** Writes one row, and what is given with it. */
  const write = ({ tasks, audit: act, now = noon, ...over }: Partial<RowPut & RowBatch> = {}) =>
    fixture.store.writeRows({
      puts: [
        {
          table: 'schedule',
          queue: 'mail',
          key: 'nightly',
          ifRevision: 0,
          body: { cron: '0 3 * * *' },
          value: { paused: false },
          ...over,
        },
      ],
      tasks,
      audit: act,
      now,
    });
  const list = (over: object = {}) =>
    fixture.store.listRows({ table: 'schedule', hasBodies: true, ...over });
  const audit = async () => {
    const records = await fixture.store.auditPage({ limit: 100 });
    return records.map(({ action, count, at }) => [action, count, at - noon]).toReversed();
  };

  describe('the records of queues', () => {
    test('a record keeps its body, state, revision and creation time', async () => {
      await fixture.queue();
      const created = await write();
      const record = {
        table: 'schedule',
        queue: 'mail',
        key: 'nightly',
        value: { paused: false },
        revision: 1,
        createdAt: noon,
      };
      const body = { cron: '0 3 * * *' };
      const rows = [{ ...record, body }];
      expect(created).toEqual({ kind: 'written', rows, removed: 0, inserted: [] });
      const changed = { ifRevision: 1, body: undefined, value: { paused: true }, now: noon + 9 };
      expect(await write(changed)).toMatchObject({ rows: [{ revision: 2, createdAt: noon }] });
      await fixture.reopen();
      const row = { ...record, value: { paused: true }, revision: 2 };
      expect(await list()).toEqual([{ ...row, body }]);
      expect(await list({ hasBodies: false })).toEqual([row]);
      expect(await list({ table: 'job' })).toEqual([]);
      await write({ ifRevision: 2, body: { cron: '0 4 * * *' } });
      expect(await list()).toMatchObject([{ body: { cron: '0 4 * * *' }, revision: 3 }]);
    });

    test('records are listed by name, after a name and up to a limit', async () => {
      await fixture.queue();
      for (const key of ['b', 'a', 'ab', 'c']) await write({ key });
      const names = async (range: object) =>
        (await list({ queue: 'mail', ...range })).map(({ key }) => key);
      expect(await names({})).toEqual(['a', 'ab', 'b', 'c']);
      expect(await names({ from: keyAfter('a'), limit: 2 })).toEqual(['ab', 'b']);
      expect(await names({ from: keyAfter('c') })).toEqual([]);
      expect(await names({ from: 'ab', before: 'c' })).toEqual(['ab', 'b']);
      expect(await names({ isReverse: true, before: 'c', limit: 2 })).toEqual(['b', 'ab']);
      expect(await names({ isReverse: true, from: 'b' })).toEqual(['c', 'b']);
      expect(await list({ queue: 'other' })).toEqual([]);
    });

    test('a write with another revision changes nothing', async () => {
      await fixture.queue();
      expect(await write({ ifRevision: 1 })).toEqual({ kind: 'conflict' });
      await write();
      const tasks = [fixture.newTask()];
      const act = { principal: 'ada', action: 'purge', queue: 'mail', selector: {}, count: 1 };
      for (const ifRevision of [0, 2]) {
        const late = { ifRevision, value: { late: true }, tasks, audit: { ...act } as never };
        expect(await write(late)).toEqual({ kind: 'conflict' });
      }
      expect(await list()).toMatchObject([{ value: { paused: false }, revision: 1 }]);
      expect(await fixture.store.getTask(tasks[0]!.id)).toBeUndefined();
      expect(await audit()).toEqual([['config_write', null, 0]]);
    });

    test('of concurrent writes of one revision one succeeds', async () => {
      await fixture.queue();
      await write();
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, n) => write({ ifRevision: 1, value: { n } })),
      );
      expect(results.filter(({ kind }) => kind === 'written')).toHaveLength(1);
      expect(await list()).toMatchObject([{ revision: 2 }]);
    });

    test('tasks and audit records are part of the write', async () => {
      await fixture.queue();
      const tasks = [fixture.newTask(), fixture.newTask({ dueAt: noon + 60_000 })];
      const act = { principal: 'ada', queue: 'mail', selector: { a: 1 }, count: 2 } as const;
      const result = await write({ tasks, audit: { ...act, action: 'redrive' }, now: noon + 5 });
      if (result.kind !== 'written') throw new Error(result.kind);
      expect(result.inserted.map(({ kind }) => kind)).toEqual(['stored', 'stored']);
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 2 });
      expect(await fixture.claimIds({ now: noon + 5 })).toEqual([tasks[0]!.id]);
      const again = await write({ ifRevision: 1, tasks: [tasks[0]!] });
      expect(again).toMatchObject({ inserted: [{ kind: 'existing' }] });
      expect(await audit()).toEqual([
        ['config_write', null, 0],
        ['redrive', 2, 5],
      ]);
    });

    test('a value may be a function of the one before, also for concurrent writes', async () => {
      await fixture.queue();
      const sum = (before: object | undefined) => ({ n: ((before as { n: number })?.n ?? 0) + 1 });
      const key = { table: 'worker', queue: 'mail', key: 'w' } as const;
      const add = () => fixture.store.writeRows({ puts: [{ ...key, value: sum }], now: noon });
      await Promise.all(Array.from({ length: 8 }, add));
      expect(await list({ table: 'worker' })).toMatchObject([{ value: { n: 8 } }]);
      const put = { ...key, value: () => undefined };
      const none = await fixture.store.writeRows({ puts: [put], now: noon });
      expect(none).toMatchObject({ kind: 'written', rows: [] });
    });

    test('a batch is written whole or not at all', async () => {
      await fixture.queue();
      await write();
      const key = (name: string) => ({ table: 'job', queue: 'mail', key: name }) as const;
      const puts = [
        { ...key('a'), value: { a: 1 } },
        { ...key('b'), ifRevision: 7, value: {} },
      ];
      const removals = [removalOf({ table: 'schedule', queue: 'mail', key: 'nightly' })];
      const result = await fixture.store.writeRows({ puts, removals, now: noon });
      expect(result).toEqual({ kind: 'conflict' });
      expect(await list({ table: 'job' })).toEqual([]);
      expect(await list()).toHaveLength(1);
      const missing = [{ ...key('a'), queue: 'none', value: {} }, puts[0]!];
      const rest = await fixture.store.writeRows({ puts: missing, removals, now: noon });
      expect(rest).toMatchObject({ kind: 'written', rows: [{ queue: 'mail' }], removed: 1 });
    });

    test('a full queue takes no task of a record', async () => {
      await fixture.queue();
      const tasks = [fixture.newTask({ maxPending: 1 }), fixture.newTask({ maxPending: 1 })];
      const result = await write({ tasks });
      expect(result).toMatchObject({ inserted: [{ kind: 'stored' }, { kind: 'queue_full' }] });
    });

    test('records are listed by queue and name', async () => {
      for (const queue of ['mail', 'fax']) {
        await fixture.queue(queue);
        for (const key of ['b', 'a', 'aa']) await write({ queue, key });
      }
      await write({ table: 'job', key: 'a' });
      const names = async (over: object) =>
        (await list(over)).map(({ queue, key }) => `${queue}/${key}`);
      const all = ['fax/a', 'fax/aa', 'fax/b', 'mail/a', 'mail/aa', 'mail/b'];
      expect(await names({})).toEqual(all);
      expect(await names({ queue: 'mail' })).toEqual(all.slice(3));
      expect(await names({ queue: 'mail', key: 'a' })).toEqual(['mail/a']);
      expect(await names({ key: 'aa' })).toEqual(['fax/aa', 'mail/aa']);
      expect(await names({ queue: 'none' })).toEqual([]);
    });

    test('a record is deleted by name, and with its queue', async () => {
      expect(await write()).toEqual({ kind: 'queue_not_found' });
      await fixture.queue();
      await write();
      await write({ key: 'nightly2' });
      const key = { table: 'schedule', queue: 'mail', key: 'nightly' } as const;
      const removed = async (queue: string) => {
        const removals = [removalOf({ ...key, queue })];
        return fixture.store.writeRows({ removals, now: noon });
      };
      expect(await removed('mail')).toMatchObject({ removed: 1 });
      expect(await removed('mail')).toMatchObject({ removed: 0 });
      expect(await removed('none')).toMatchObject({ removed: 0 });
      expect(await list()).toHaveLength(1);
      await fixture.store.deleteQueue({ queue: 'mail', now: noon, by: 'ada' });
      await fixture.queue();
      expect(await list()).toEqual([]);
    });
  });

  describe('the steps of a job', () => {
    const step = (ids: readonly string[], over: Partial<DeadChange> = {}): DeadChange => ({
      action: 'purge',
      queue: 'mail',
      ids,
      diedBy: noon + 5,
      now: noon + 10,
      by: 'ada',
      selector: {},
      row: { ...job, ifRevision: 1, value: (count) => ({ count }) },
      ...over,
    });

    test('a step changes tasks and the state of the job, without an audit record', async () => {
      await fixture.queue();
      const ids = [await fixture.die(), await fixture.die(), await fixture.die({}, noon + 6)];
      await write({ ...job, value: {} });
      const acts = await audit();
      const result = await fixture.store.actOnDead(step(ids));
      expect(result).toMatchObject({ kind: 'done', ids: ids.slice(0, 2), row: { revision: 2 } });
      expect(await list(job)).toMatchObject([{ value: { count: 2 }, revision: 2 }]);
      expect(await fixture.store.counts('mail')).toMatchObject({ dead: 1 });
      expect(await audit()).toEqual(acts);
    });

    test('a redrive makes its tasks due at the times given', async () => {
      await fixture.queue();
      const ids = [await fixture.die(), await fixture.die()];
      await write({ ...job, value: {} });
      const dueAt = (index: number) => noon + 20 + index;
      const change = step(ids, { action: 'redrive', dueAt });
      expect(await fixture.store.actOnDead(change)).toMatchObject({ ids });
      expect(await fixture.task(ids[1]!)).toMatchObject({ status: 'PENDING', dueAt: noon + 21 });
      expect(await fixture.claimIds({ now: noon + 20 })).toEqual([ids[0]]);
    });

    test('a step with another revision changes nothing', async () => {
      await fixture.queue();
      const id = await fixture.die();
      expect(await fixture.store.actOnDead(step([id]))).toEqual({ kind: 'conflict', ids: [] });
      await write({ ...job, value: { by: 'another server' } });
      const late = { ...step([id]).row!, ifRevision: 2 };
      const result = await fixture.store.actOnDead(step([id], { row: late }));
      expect(result).toEqual({ kind: 'conflict', ids: [] });
      expect(await fixture.task(id)).toMatchObject({ status: 'DEAD' });
      expect(await list(job)).toMatchObject([{ value: { by: 'another server' }, revision: 1 }]);
    });
  });
}
