import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Database } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { silentLog } from '@millrace/kit/log';
import { seededRandom } from '@millrace/kit/random';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WholeTask } from '../../core/task.js';
import { noon, settlementOf, someConfig } from '../../../test/task-store/fixture.js';
import { StorageUnavailable, type ClaimRequest, type NewTask } from '../port/task-store.js';
import { storeProblems } from './verify.js';
import { EmbeddedStore } from './embedded-store.js';
import { kinds, nameKey } from './keys.js';
import { openEmbeddedStore } from './open.js';
import { reorder } from './transitions.js';
import { RecentTasks, Step } from './step.js';
import { deleteQueue } from './queue-acts.js';

/** Stands still for the writer, so that no step ends its time slice and begins another commit. */
const clock = { ...systemClock, monotonic: () => 0 };
const options = { clock, random: seededRandom(3), log: silentLog };
let directory: string;
let database: Database;
let store: EmbeddedStore;
let made = 0;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
  database = await open(directory, options);
  store = new EmbeddedStore(database, options.random);
  await store.putQueue({ queue: 'mail', config: someConfig(), now: noon, by: 'ada' });
});

afterEach(async () => {
  if (database.isOpen) expect(database.readRows(storeProblems)).toEqual([]);
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

function newTask(over: Partial<NewTask> = {}): NewTask {
  return {
    id: options.random.ulid(noon),
    queue: 'mail',
    handlerRef: 'mail.send',
    payload: Buffer.from('hello'),
    payloadContentType: 'text/plain',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: noon,
    expiresAt: null,
    submittedBy: 'shop',
    maxPending: 0,
    ...over,
  };
}

const insert = (count: number, over: (i: number) => Partial<NewTask> = () => ({})) =>
  store.insertTasks(
    Array.from({ length: count }, (_, i) => newTask(over(i))),
    noon,
  );

const claim = (over: Partial<ClaimRequest> = {}) =>
  store.claimDue({
    queue: 'mail',
    limit: 10,
    now: noon,
    nodeId: 'node-1',
    leaseExpiresAt: noon + 45_000,
    newToken: () => `token-${++made}`,
    maxInFlight: 100_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
    ...over,
  });

/** How many commits an act takes. */
async function commitsOf(run: () => Promise<unknown>): Promise<number> {
  const before = database.core.stats.batches;
  await run();
  return database.core.stats.batches - before;
}

/** Runs one step of the store directly. */
const act = <Result>(run: (step: Step) => Result) =>
  database.transact(({ rows }) => {
    const step = new Step(rows, new RecentTasks());
    const result = run(step);
    step.finish();
    return result;
  });

/** The next commit does not reach the disk; those after it do. */
function failNextCommit(): void {
  const { store: rows } = database.core;
  const commit = rows.commit.bind(rows);
  rows.commit = async () => {
    rows.commit = commit;
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw new Error('EIO: i/o error');
  };
}

const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

describe('commits', () => {
  test('inserts that share a step hint at their queue once, and one claim takes them all', async () => {
    let hints = 0;
    let claiming: Promise<WholeTask[]> | undefined;
    const stop = store.onWork(() => {
      hints++;
      claiming ??= claim();
    });
    await Promise.all([insert(1), insert(1), insert(1)]);
    stop();
    expect(hints).toBe(1);
    expect(await claiming).toHaveLength(3);
  });

  test('a claim that follows the hint of an insert shares its commit', async () => {
    let claiming: Promise<WholeTask[]> | undefined;
    const stop = store.onWork(() => void (claiming ??= claim()));
    let statuses: string[] = [];
    const commits = await commitsOf(async () => {
      const [result] = await insert(1);
      expect(result).toMatchObject({ kind: 'stored', task: { status: 'PENDING', attempt: 0 } });
      statuses = (await claiming!).map(({ status }) => status);
    });
    stop();
    expect({ commits, statuses }).toEqual({ commits: 1, statuses: ['IN_FLIGHT'] });
  });

  test('a claim that finds nothing due takes none', async () => {
    expect(await commitsOf(() => claim())).toBe(0);
    await insert(1, () => ({ dueAt: noon + 1_000 }));
    expect(await commitsOf(() => claim())).toBe(0);
    expect(await claim({ now: noon + 1_000 })).toHaveLength(1);
  });

  test('a claim from a paused queue, or from none, takes none', async () => {
    await insert(1);
    await store.setPaused({ queue: 'mail', paused: true, now: noon, by: 'ada' });
    expect(await commitsOf(() => claim())).toBe(0);
    expect(await commitsOf(() => claim({ queue: 'post' }))).toBe(0);
    await store.setPaused({ queue: 'mail', paused: false, now: noon, by: 'ada' });
    expect(await claim()).toHaveLength(1);
  });
});

describe('when a commit fails', () => {
  test('the caller gets StorageUnavailable, and nothing has changed', async () => {
    await insert(3);
    failNextCommit();
    await expect(insert(5)).rejects.toThrow(StorageUnavailable);
    expect(await store.counts('mail')).toMatchObject({ pending: 3 });
    failNextCommit();
    await expect(claim()).rejects.toThrow(/does not respond: .*EIO/);
    expect(await store.counts('mail')).toMatchObject({ pending: 3, inFlight: 0 });
    expect(await claim()).toHaveLength(3);
  });

  test('a claim that was never stored cannot be settled', async () => {
    const { id } = newTask();
    await store.insertTasks([newTask({ id })], noon);
    failNextCommit();
    await expect(claim({ newToken: () => 'lost' })).rejects.toThrow(StorageUnavailable);
    const lease = { token: 'lost', expiresAt: noon, nodeId: '', startedAt: noon, isAsync: false };
    const whole = { ...(await store.getTask(id))!, lease } as WholeTask;
    const results = await store.settle([settlementOf(whole, { kind: 'succeeded' })]);
    expect(results).toMatchObject([{ kind: 'lease_lost', task: { status: 'PENDING' } }]);
  });

  test('steps that ran on top of it are run again on the stored state', async () => {
    await insert(4);
    const tasks = await claim({ limit: 2 });
    failNextCommit();
    const lost = store.settle(tasks.map((task) => settlementOf(task, { kind: 'succeeded' })));
    lost.catch(() => undefined);
    await soon();
    // These run while the settlement is being written, and again after it failed.
    const repeated = store.settle([settlementOf(tasks[0]!, { kind: 'retry', dueAt: noon + 900 })]);
    const claimed = claim({ limit: 1 });
    await expect(lost).rejects.toThrow(StorageUnavailable);
    expect(await repeated).toMatchObject([{ kind: 'settled', task: { status: 'PENDING' } }]);
    expect(await claimed).toHaveLength(1);
    expect(await store.counts('mail')).toMatchObject({ pending: 2, inFlight: 2 });
  });

  test('a ready row whose move was lost is claimed where it is, once', async () => {
    // Without a group, the low-water mark would hide it.
    await insert(2, () => ({ groupKey: 'a' }));
    await claim({ limit: 1 });
    const [waiting] = (
      await store.listTasks({ queue: 'mail', order: 'next', limit: 9, filter: {} })
    ).tasks;
    const moveTo = (priority: number) =>
      store.updateTask({
        id: waiting!.id,
        action: 'update',
        priority,
        now: noon,
        by: 'ada',
        selector: {},
      });
    expect(await moveTo(5)).toMatchObject({ kind: 'changed' });
    failNextCommit();
    // The counters stay as they are, and so does their row.
    await expect(moveTo(4)).rejects.toThrow(StorageUnavailable);
    expect((await claim()).map(({ id }) => id)).toEqual([waiting!.id]);
    await insert(1);
    expect(await claim()).toHaveLength(1);
    expect(await store.counts('mail')).toMatchObject({ pending: 0, inFlight: 3 });
  });

  test('the next expiry may be early, and is never late', async () => {
    const early = async () => (await store.nextEventAt({ mayBeEarly: true })).upkeepAt;
    expect(await early()).toBeUndefined();
    await insert(1);
    const [task] = await claim({ leaseExpiresAt: noon + 50 });
    expect(await early()).toBe(noon + 50);
    await insert(1, () => ({ dueAt: noon + 90, expiresAt: noon + 40 }));
    expect(await early()).toBe(noon + 40);
    await store.expireTasks({ now: noon + 40, limit: 9 });
    await store.settle([settlementOf(task!, { kind: 'succeeded' })]);
    expect(await early()).toBe(noon + 40);
    expect((await store.nextEventAt()).upkeepAt).toBeUndefined();
    expect(await early()).toBeUndefined();
    // A reader during the commit sees neither of them.
    const inserted = insert(1, () => ({ dueAt: noon + 90, expiresAt: noon + 60 }));
    await store.nextEventAt();
    await inserted;
    expect(await early()).toBe(noon + 60);
  });

  test('a claim that came with an insert is lost with it, and neither has happened', async () => {
    let claiming: Promise<unknown> | undefined;
    const stop = store.onWork(() => {
      claiming ??= claim().catch((error: unknown) => error);
    });
    failNextCommit();
    await expect(insert(2)).rejects.toThrow(StorageUnavailable);
    stop();
    expect(await claiming).toBeInstanceOf(StorageUnavailable);
    expect(await store.counts('mail')).toMatchObject({ pending: 0, inFlight: 0 });
  });

  test('a task whose failed settling is in the file all the same is still found', async () => {
    await insert(1);
    const [task] = await claim();
    expect(await claim()).toEqual([]);
    const { store: rows } = database.core;
    const commit = rows.commit.bind(rows);
    rows.commit = async (...args) => {
      rows.commit = commit;
      await commit(...args);
      throw new Error('EIO: the fsync failed');
    };
    const retry = settlementOf(task!, { kind: 'retry', dueAt: noon });
    await expect(store.settle([retry])).rejects.toThrow(StorageUnavailable);
    expect((await store.nextEventAt()).dueByQueue).toEqual(new Map([['mail', noon]]));
    expect(await claim()).toHaveLength(1);
  });

  test('a mistake in the code is not taken for a failing disk', async () => {
    const wrong = { ...newTask(), payload: undefined } as unknown as NewTask;
    await expect(store.insertTasks([wrong], noon)).rejects.toThrow(TypeError);
    await expect(store.probe()).resolves.toBeUndefined();
  });

  test('a closed store is unavailable', async () => {
    await store.close();
    await expect(store.counts('mail')).rejects.toThrow(StorageUnavailable);
    await expect(insert(1)).rejects.toThrow(StorageUnavailable);
    await expect(store.probe()).rejects.toThrow(StorageUnavailable);
  });
});

describe('calls at the same time', () => {
  test('many small ones become few steps', async () => {
    const { transact } = database;
    let steps = 0;
    database.transact = (step) => {
      steps++;
      return transact.call(database, step) as never;
    };
    const results = await Promise.all(Array.from({ length: 200 }, () => insert(1)));
    expect(results.flat().every((result) => result.kind === 'stored')).toBe(true);
    expect(steps).toBeLessThan(5);
    expect(await store.counts('mail')).toMatchObject({ pending: 200 });
    const tasks = await claim({ limit: 200 });
    steps = 0;
    const settled = await Promise.all(
      tasks.map((task) => store.settle([settlementOf(task, { kind: 'succeeded' })])),
    );
    expect(settled.flat().every((result) => result.kind === 'settled')).toBe(true);
    expect(steps).toBeLessThan(5);
  });

  test('a failing call does not fail the others', async () => {
    const wrong = { ...newTask(), payload: undefined } as unknown as NewTask;
    const calls = [insert(2), store.insertTasks([newTask(), wrong], noon), insert(3)];
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(await store.counts('mail')).toMatchObject({ pending: 5 });
  });

  test('all calls fail when the disk fails', async () => {
    failNextCommit();
    const outcomes = await Promise.allSettled([insert(1), insert(1), insert(1)]);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected' });
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(StorageUnavailable);
    }
    expect(await store.counts('mail')).toMatchObject({ pending: 0 });
  });
});

describe('opening', () => {
  test('a store of a newer format is refused', async () => {
    const key = nameKey(kinds.meta, 'format');
    await database.transact(({ rows }) => {
      rows.put(key, Buffer.from('99'));
      rows.put(nameKey(kinds.meta, 'release'), Buffer.from('9.1.0'));
    });
    await store.close();
    const refusal = await openEmbeddedStore(directory, options).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(UsageError);
    expect(String(refusal)).toMatch(/queue format 99;.* Use a newer Millrace: 9\.1\.0 or later/);
    // The refused open released the directory.
    const again = await openEmbeddedStore(directory, options).catch((error: unknown) => error);
    expect(String(again)).toContain('queue format 99');
  });

  test('a store of an older format is backed up and upgraded, or refused', async () => {
    const key = nameKey(kinds.meta, 'format');
    const [first] = await insert(1);
    const id = first?.kind === 'stored' ? first.task.id : '';
    await database.transact(({ rows }) => rows.put(key, Buffer.from('1')));
    await store.close();
    const refused = openEmbeddedStore(directory, { ...options, upgrade: false });
    await expect(refused).rejects.toThrow('Upgrades are turned off');
    await (await openEmbeddedStore(directory, options)).close();
    const backup = await open(join(directory, 'backup-before-queue-format-2'), options);
    expect(backup.readRows((rows) => rows.get(key))?.toString()).toBe('1');
    const copy = new EmbeddedStore(backup, options.random);
    expect(await copy.getTask(id)).toMatchObject({ id });
    await copy.close();
  });

  test('a format that is no number is called damage', async () => {
    const key = nameKey(kinds.meta, 'format');
    await database.transact(({ rows }) => rows.put(key, Buffer.from('x')));
    await store.close();
    await expect(openEmbeddedStore(directory, options)).rejects.toThrow('damaged');
  });

  test('the tasks of a queue whose deletion was cut short follow it', async () => {
    const results = await insert(3);
    const settlements = (await claim()).map((task) => settlementOf(task, { kind: 'succeeded' }));
    await store.settle(settlements);
    const deletion = { queue: 'mail', now: noon + 500, by: 'ada' };
    await act((step) => deleteQueue(step, deletion));
    const [first] = results;
    const id = first?.kind === 'stored' ? first.task.id : '';
    const tombstone = { id, status: 'SUCCEEDED', purgedAt: noon + 500 };
    expect(await store.getTask(id)).toMatchObject(tombstone);
    await store.putQueue({ queue: 'mail', config: someConfig(), now: noon + 600, by: 'ada' });
    expect(await store.insertTasks([newTask({ id })], noon + 700)).toMatchObject([
      { kind: 'purged', tombstone },
    ]);
    await store.close();
    const again = await openEmbeddedStore(directory, options);
    expect(await again.getTask(id)).toMatchObject(tombstone);
    await again.close();
    database = await open(directory, options);
    store = new EmbeddedStore(database, options.random);
    expect(database.readRows(storeProblems)).toEqual([]);
  });
});

describe('large amounts', () => {
  test('a queue changes its order a part at a time, there and back', async () => {
    for (let i = 0; i < 5; i++) {
      await insert(1_000, (n) => ({ groupKey: n % 4 ? `g${n % 400}` : null, priority: n % 10 }));
    }
    const fifo = await claim({ limit: 10_000, fifoGroups: true });
    const keys = fifo.flatMap((task) => task.groupKey ?? []);
    expect(keys).toHaveLength(300);
    expect(new Set(keys).size).toBe(300);
    expect(database.readRows(storeProblems)).toEqual([]);
    const rest = await claim({ limit: 10_000 });
    expect(fifo.length + rest.length).toBe(5_000);
  });

  test.each([9, 4, 0])(
    'one of priority %i submitted in the middle of the change has its place in the line',
    async (priority) => {
      for (let i = 0; i < 5; i++) await insert(1_000, () => ({ groupKey: 'a' }));
      const convert = () => act((step) => reorder(step, 'mail', true));
      expect(await convert()).toBe(false);
      const early = newTask({ groupKey: 'a', dueAt: noon - 1_000, priority });
      await store.insertTasks([early], noon);
      const [first, ...others] = await claim({ fifoGroups: true });
      expect(others).toEqual([]);
      expect(first?.id).toBe(early.id);
      await store.settle([settlementOf(first!, { kind: 'succeeded' })]);
      expect(await claim({ fifoGroups: true })).toHaveLength(1);
    },
  );

  test('more tasks than are made ready at once fall due, and all are claimed', async () => {
    for (let i = 0; i < 5; i++) await insert(1_000, (n) => ({ dueAt: noon + 1_000 + n }));
    let claimed = 0;
    for (let i = 0; i < 5; i++)
      claimed += (await claim({ limit: 2_000, now: noon + 9_000 })).length;
    expect(claimed).toBe(5_000);
    expect((await store.nextEventAt()).dueByQueue.size).toBe(0);
  });
});
