import { describe, expect, test } from 'vitest';
import type { JobStep, RecordWrite } from '../../src/storage/port/task-store.js';
import { noon, type Fixture } from './fixture.js';

const job = { kind: 'job', queue: 'mail', name: 'J1' } as const;

export function recordTests(fixture: Fixture): void {
  const write = (over: Partial<RecordWrite> = {}) =>
    fixture.store.writeRecord({
      kind: 'schedule',
      queue: 'mail',
      name: 'nightly',
      ifRevision: 0,
      body: { cron: '0 3 * * *' },
      state: { paused: false },
      now: noon,
      ...over,
    });
  const list = (over: object = {}) => fixture.store.listRecords({ kind: 'schedule', ...over });
  const audit = async () => {
    const records = await fixture.store.auditPage({ limit: 100 });
    return records.map(({ action, count, at }) => [action, count, at - noon]).toReversed();
  };

  describe('the records of queues', () => {
    test('a record keeps its body, state, revision and creation time', async () => {
      await fixture.queue();
      const created = await write();
      const record = {
        kind: 'schedule',
        queue: 'mail',
        name: 'nightly',
        state: { paused: false },
        revision: 1,
        createdAt: noon,
      };
      expect(created).toEqual({ kind: 'written', record, inserted: [] });
      const changed = { ifRevision: 1, body: undefined, state: { paused: true }, now: noon + 9 };
      expect(await write(changed)).toMatchObject({ record: { revision: 2, createdAt: noon } });
      await fixture.reopen();
      const state = { ...record, state: { paused: true }, revision: 2 };
      expect(await list()).toEqual([{ ...state, body: { cron: '0 3 * * *' } }]);
      expect(await fixture.store.listRecordStates('schedule')).toEqual([state]);
      expect(await fixture.store.listRecordStates('job')).toEqual([]);
      await write({ ifRevision: 2, body: { cron: '0 4 * * *' } });
      expect(await list()).toMatchObject([{ body: { cron: '0 4 * * *' }, revision: 3 }]);
    });

    test('records are listed by name, after a name and up to a limit', async () => {
      await fixture.queue();
      for (const name of ['b', 'a', 'ab', 'c']) await write({ name });
      const { store } = fixture;
      const names = async (query: object) => {
        const found = await store.listRecords({ kind: 'schedule', queue: 'mail', ...query });
        return found.map(({ name }) => name);
      };
      expect(await names({})).toEqual(['a', 'ab', 'b', 'c']);
      expect(await names({ after: 'a', limit: 2 })).toEqual(['ab', 'b']);
      expect(await names({ after: 'c' })).toEqual([]);
      expect(await store.listRecordStates('schedule', 'mail')).toHaveLength(4);
      expect(await store.listRecordStates('schedule', 'other')).toEqual([]);
    });

    test('a write with another revision changes nothing', async () => {
      await fixture.queue();
      expect(await write({ ifRevision: 1 })).toEqual({ kind: 'conflict' });
      await write();
      const tasks = [fixture.newTask()];
      const act = { principal: 'ada', action: 'purge', queue: 'mail', selector: {}, count: 1 };
      for (const ifRevision of [0, 2]) {
        const late = { ifRevision, state: { late: true }, tasks, audit: { ...act } as never };
        expect(await write(late)).toEqual({ kind: 'conflict' });
      }
      expect(await list()).toMatchObject([{ state: { paused: false }, revision: 1 }]);
      expect(await fixture.store.getTask(tasks[0]!.id)).toBeUndefined();
      expect(await audit()).toEqual([['config_write', null, 0]]);
    });

    test('of concurrent writes of one revision one succeeds', async () => {
      await fixture.queue();
      await write();
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, n) => write({ ifRevision: 1, state: { n } })),
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

    test('a full queue takes no task of a record', async () => {
      await fixture.queue();
      const tasks = [fixture.newTask({ maxPending: 1 }), fixture.newTask({ maxPending: 1 })];
      const result = await write({ tasks });
      expect(result).toMatchObject({ inserted: [{ kind: 'stored' }, { kind: 'queue_full' }] });
    });

    test('records are listed by queue and name', async () => {
      for (const queue of ['mail', 'fax']) {
        await fixture.queue(queue);
        for (const name of ['b', 'a', 'aa']) await write({ queue, name });
      }
      await write({ kind: 'job', name: 'a' });
      const names = async (over: object) =>
        (await list(over)).map(({ queue, name }) => `${queue}/${name}`);
      const all = ['fax/a', 'fax/aa', 'fax/b', 'mail/a', 'mail/aa', 'mail/b'];
      expect(await names({})).toEqual(all);
      expect(await names({ queue: 'mail' })).toEqual(all.slice(3));
      expect(await names({ queue: 'mail', name: 'a' })).toEqual(['mail/a']);
      expect(await names({ name: 'aa' })).toEqual(['fax/aa', 'mail/aa']);
      expect(await names({ queue: 'none' })).toEqual([]);
    });

    test('a record is deleted by name, and with its queue', async () => {
      expect(await write()).toEqual({ kind: 'queue_not_found' });
      await fixture.queue();
      await write();
      await write({ name: 'weekly' });
      const key = { kind: 'schedule', queue: 'mail', name: 'nightly' } as const;
      expect(await fixture.store.deleteRecord(key)).toBe(true);
      expect(await fixture.store.deleteRecord(key)).toBe(false);
      expect(await fixture.store.deleteRecord({ ...key, queue: 'none' })).toBe(false);
      expect(await list()).toHaveLength(1);
      await fixture.store.deleteQueue({ queue: 'mail', now: noon, by: 'ada' });
      await fixture.queue();
      expect(await list()).toEqual([]);
    });
  });

  describe('the steps of a job', () => {
    const step = (ids: readonly string[], over: Partial<JobStep> = {}): JobStep => ({
      name: 'J1',
      ifRevision: 1,
      state: (count) => ({ count }),
      change: {
        action: 'purge',
        queue: 'mail',
        ids,
        diedBy: noon + 5,
        now: noon + 10,
        by: 'ada',
        selector: {},
      },
      ...over,
    });

    test('a step changes tasks and the state of the job, without an audit record', async () => {
      await fixture.queue();
      const ids = [await fixture.die(), await fixture.die(), await fixture.die({}, noon + 6)];
      await write({ ...job, state: {} });
      const acts = await audit();
      const result = await fixture.store.runJobStep(step(ids));
      expect(result).toMatchObject({ kind: 'done', ids: ids.slice(0, 2), record: { revision: 2 } });
      expect(await list(job)).toMatchObject([{ state: { count: 2 }, revision: 2 }]);
      expect(await fixture.store.counts('mail')).toMatchObject({ dead: 1 });
      expect(await audit()).toEqual(acts);
    });

    test('a redrive makes its tasks due at the times given', async () => {
      await fixture.queue();
      const ids = [await fixture.die(), await fixture.die()];
      await write({ ...job, state: {} });
      const dueAt = (index: number) => noon + 20 + index;
      const change = { ...step(ids).change, action: 'redrive', dueAt } as const;
      expect(await fixture.store.runJobStep(step(ids, { change }))).toMatchObject({ ids });
      expect(await fixture.task(ids[1]!)).toMatchObject({ status: 'PENDING', dueAt: noon + 21 });
      expect(await fixture.claimIds({ now: noon + 20 })).toEqual([ids[0]]);
    });

    test('a step with another revision changes nothing', async () => {
      await fixture.queue();
      const id = await fixture.die();
      expect(await fixture.store.runJobStep(step([id]))).toEqual({ kind: 'conflict' });
      await write({ ...job, state: { by: 'another server' } });
      const late = step([id], { ifRevision: 2 });
      expect(await fixture.store.runJobStep(late)).toEqual({ kind: 'conflict' });
      expect(await fixture.task(id)).toMatchObject({ status: 'DEAD' });
      expect(await list(job)).toMatchObject([{ state: { by: 'another server' }, revision: 1 }]);
    });
  });
}
