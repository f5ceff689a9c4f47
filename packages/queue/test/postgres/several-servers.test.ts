import { systemClock } from '@millrace/kit/clock';
import { memoryLog, silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { campaignSize, inCampaign } from '../../../../test/support/campaign.js';
import { auditFault, auditToWire } from '../../src/core/audit.js';
import type { WholeTask } from '../../src/core/task.js';
import { Client } from '../../src/storage/postgres/connections.js';
import { openPostgresStore, type PostgresStoreOptions } from '../../src/storage/postgres/open.js';
import type { ClaimRequest, NewTask, TaskStore } from '../../src/storage/port/task-store.js';
import { makeQueue as makeQueueAt, startTestServer } from '../support/server.js';
import { buryTasks } from '../support/tasks.js';
import { settlementOf, someConfig, someTask } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

const again = inCampaign('store');

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`several_${++databases}`)));
afterAll(() => postgres.remove());

const soon = { timeout: 60_000, interval: 20 };

async function open(over: Partial<PostgresStoreOptions> = {}) {
  const options = { clock: systemClock, random: systemRandom, log: silentLog, ...over };
  const store = await openPostgresStore(url, options);
  onTestFinished(() => store.close());
  return store;
}

async function openAll(count: number) {
  const stores = await Promise.all(Array.from({ length: count }, () => open()));
  await makeQueue(stores[0]!);
  return stores;
}

const makeQueue = (store: TaskStore, queue = 'mail') =>
  store.putQueue({ queue, config: someConfig(), now: systemClock.now(), by: 'ada' });

function newTasks(count: number, over: Partial<NewTask> = {}): NewTask[] {
  const now = systemClock.now();
  return Array.from({ length: count }, () =>
    someTask({ id: systemRandom.ulid(now), dueAt: now, ...over }),
  );
}

const submit = (store: TaskStore, tasks: readonly NewTask[]) =>
  store.insertTasks(tasks, systemClock.now());

function claim(store: TaskStore, over: Partial<ClaimRequest> = {}): Promise<WholeTask[]> {
  const now = over.now ?? systemClock.now();
  return store.claimDue({
    queue: 'mail',
    limit: 50,
    now,
    nodeId: 'node',
    leaseExpiresAt: now + 60_000,
    newToken: () => Buffer.from(systemRandom.bytes(9)).toString('hex'),
    maxInFlight: 100_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
    ...over,
  });
}

/** Claims and succeeds until nothing is left; what each of the stores had. */
function workAll(stores: readonly TaskStore[], over: Partial<ClaimRequest> = {}, total = Infinity) {
  let done = 0;
  return Promise.all(
    stores.map(async (store) => {
      const ids: string[] = [];
      while (done < total) {
        const tasks = await claim(store, over);
        if (tasks.length === 0 && total === Infinity) return ids;
        const now = systemClock.now();
        await store.settle(tasks.map((task) => settlementOf(task, { kind: 'succeeded' }, { now })));
        ids.push(...tasks.map(({ id }) => id));
        done += tasks.length;
      }
      return ids;
    }),
  );
}

test('counts: every server shows those of all servers, right after each call', async () => {
  const [one, other] = await openAll(2);
  let [pending, inFlight, dead] = [0, 0, 0];
  const check = async () => {
    for (const store of [one!, other!]) {
      expect(await store.counts('mail')).toMatchObject({ pending, inFlight, dead });
    }
  };
  // Each server folds counters on the way, and each acts in turn.
  for (let round = 0; round < campaignSize({ quick: 110, full: 200 }); round++) {
    const [here, there] = round % 2 === 0 ? [one!, other!] : [other!, one!];
    await submit(here, newTasks(3));
    pending += 3;
    await check();
    const tasks = await claim(there, { limit: 2 });
    expect(tasks).toHaveLength(2);
    pending -= 2;
    inFlight += 2;
    await check();
    const now = systemClock.now();
    await here.settle([
      settlementOf(tasks[0]!, { kind: 'succeeded' }, { now }),
      settlementOf(tasks[1]!, { kind: 'dead', reason: 'PERMANENT' }, { now }),
    ]);
    inFlight -= 2;
    dead++;
    await check();
  }
  const { tasks } = await one!.deadTasks({
    queue: 'mail',
    filter: {},
    order: 'oldest_first',
    limit: 100,
    maxBytes: 1e9,
  });
  const ids = tasks.map(({ id }) => id);
  const now = systemClock.now();
  const change = { queue: 'mail', ids, diedBy: now, now, by: 'ada', selector: {} };
  await other!.actOnDead({ ...change, action: 'redrive' });
  [pending, dead] = [pending + 100, dead - 100];
  await check();
  expect(await tableProblems(postgres, url)).toEqual([]);
});

again('counts: a commit that took long is counted when it is there, on every server', async () => {
  const [one, other] = await openAll(2);
  const slow = new Client({ connectionString: url });
  await slow.connect();
  onTestFinished(() => slow.end());
  await slow.query('BEGIN');
  await slow.query(`INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT no, 0, 0, 7 FROM millrace.queues`);
  // Long enough for several folds of both servers.
  for (let i = 0; i < 300; i++) {
    await submit(i % 2 === 0 ? one! : other!, newTasks(1));
    if (i % 20 === 0) await Promise.all([one!.counts('mail'), other!.counts('mail')]);
  }
  await slow.query('COMMIT');
  for (const store of [one!, other!]) {
    expect(await store.counts('mail')).toMatchObject({ pending: 300, dead: 7 });
  }
});

again('servers that open an empty database at the same time all get the same tables', async () => {
  const stores = await openAll(6);
  expect(await stores[5]!.listQueues()).toHaveLength(1);
  const [first, ...others] = stores.map((store) =>
    Buffer.from(store.capabilities.cursorKey).toString('hex'),
  );
  expect(first).toMatch(/^[0-9a-f]{64}$/);
  expect(others).toEqual(others.map(() => first));
});

test('tables of a newer program are refused', async () => {
  await open();
  await postgres.sql(url, 'UPDATE millrace.schema_version SET version = 99');
  await expect(open()).rejects.toThrow(/have version 99; .*Use a newer Millrace: 0\.2\.0 or later/);
});

test('no task is claimed by two servers, and each of them gets some', async () => {
  const stores = await openAll(4);
  const tasks = newTasks(2_000);
  await Promise.all(
    [0, 1, 2, 3].map((i) => submit(stores[i]!, tasks.slice(i * 500, i * 500 + 500))),
  );
  const had = await workAll(stores, {}, 2_000);
  expect(had.flat().toSorted()).toEqual(tasks.map(({ id }) => id).toSorted());
  for (const ids of had) expect(ids.length).toBeGreaterThan(100);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

again(
  'where few may be in flight each server takes its part, and what one leaves others get',
  async () => {
    const [one, two, idle] = await openAll(3);
    await submit(one!, newTasks(5_000));
    const most = { maxInFlight: 10, limit: 10 };
    const first = await claim(one!, most);
    expect(first).toHaveLength(10);
    expect(await claim(two!, most)).toEqual([]);
    const succeed = (store: TaskStore, tasks: readonly WholeTask[]) =>
      store.settle(tasks.map((task) => settlementOf(task, { kind: 'succeeded' })));
    await succeed(one!, first);
    // From its next look at the others on, the first one leaves the second its half.
    await expect
      .poll(async () => {
        const tasks = await claim(one!, most);
        const others = await claim(two!, most);
        await succeed(one!, tasks);
        await succeed(two!, others);
        return [tasks.length, others.length];
      }, soon)
      .toEqual([5, 5]);
    expect((await claim(idle!, most)).length).toBeLessThanOrEqual(5);
  },
);

test('limits hold over all servers together', async () => {
  const stores = await openAll(4);
  await submit(stores[0]!, newTasks(400));
  const claimed = await Promise.all(
    Array.from({ length: 20 }, (_, i) => claim(stores[i % 4]!, { limit: 10, maxInFlight: 7 })),
  );
  expect(claimed.flat().length).toBeLessThanOrEqual(7);
  await makeQueue(stores[0]!, 'slow');
  await submit(stores[0]!, newTasks(400, { queue: 'slow' }));
  const now = systemClock.now();
  const started = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      claim(stores[i % 4]!, { queue: 'slow', now, limit: 10, dispatchPerSecond: 9 }),
    ),
  );
  expect(started.flat()).toHaveLength(9);
});

again('a full queue is full for all servers together', async () => {
  const stores = await openAll(4);
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, i) => submit(stores[i % 4]!, newTasks(10, { maxPending: 25 }))),
  );
  expect(results.flat().filter(({ kind }) => kind === 'stored')).toHaveLength(25);
  expect(await stores[1]!.counts('mail')).toMatchObject({ pending: 25 });
});

test('in a FIFO group one task runs at a time, whichever server has it', async () => {
  const stores = await openAll(3);
  const tasks = newTasks(40).map((task, i) => ({ ...task, groupKey: i % 2 ? 'a' : 'b' }));
  await submit(stores[0]!, tasks);
  const order: string[] = [];
  const running = new Map<string, number>();
  let maxAtOnce = 0;
  await Promise.all(
    stores.map(async (store) => {
      while (order.length < tasks.length) {
        for (const task of await claim(store, { fifoGroups: true })) {
          const now = (running.get(task.groupKey!) ?? 0) + 1;
          maxAtOnce = Math.max(maxAtOnce, now);
          running.set(task.groupKey!, now);
          order.push(task.id);
          running.set(task.groupKey!, now - 1);
          await store.settle([settlementOf(task, { kind: 'succeeded' })]);
        }
      }
    }),
  );
  expect(maxAtOnce).toBe(1);
  for (const key of ['a', 'b']) {
    const own = tasks.filter(({ groupKey }) => groupKey === key).map(({ id }) => id);
    expect(order.filter((id) => own.includes(id))).toEqual(own);
  }
});

test('the same id sent to several servers at once is one task', async () => {
  const stores = await openAll(4);
  const tasks = newTasks(30);
  const results = await Promise.all(stores.map((store) => submit(store, tasks)));
  const stored = results.flat().filter(({ kind }) => kind === 'stored');
  expect(stored).toHaveLength(30);
  expect(results.flat().filter(({ kind }) => kind === 'existing')).toHaveLength(90);
  expect(await stores[0]!.counts('mail')).toMatchObject({ pending: 30 });
});

test('unique keys: submits of one key at several servers at once are one task', async () => {
  const stores = await openAll(2);
  const keys = Array.from({ length: 10 }, (_, i) => `key-${i}`);
  const submitAll = () =>
    Promise.all(
      stores.flatMap((store) =>
        Array.from({ length: 5 }, () =>
          submit(
            store,
            keys.map((uniqueKey) => newTasks(1, { uniqueKey, uniqueUntil: null })[0]!),
          ),
        ),
      ),
    );
  const idsOf = (results: Awaited<ReturnType<typeof submitAll>>, at: number) =>
    results.map((batch) => {
      const result = batch[at]!;
      if (!('task' in result)) throw new Error(result.kind);
      return result.task.id;
    });
  for (let round = 0; round < 3; round++) {
    const results = await submitAll();
    for (const [at] of keys.entries()) {
      const kinds = results.map((batch) => batch[at]!.kind);
      expect(kinds.filter((kind) => kind === 'stored')).toHaveLength(1);
      expect(new Set(idsOf(results, at)).size).toBe(1);
    }
    expect(await stores[0]!.counts('mail')).toMatchObject({ pending: keys.length });
    // The keys are free when their tasks have ended.
    expect((await workAll(stores)).flat()).toHaveLength(keys.length);
  }
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('a submit never outlives the deletion of its queue', async () => {
  const stores = await openAll(2);
  for (let i = 0; i < 15; i++) {
    const queue = `brief-${i}`;
    await makeQueue(stores[0]!, queue);
    const now = systemClock.now();
    const [[result], deleted] = await Promise.all([
      submit(stores[0]!, newTasks(1, { queue })),
      stores[1]!.deleteQueue({ queue, now, by: 'ada' }),
    ]);
    expect([
      ['stored', 'not_empty'],
      ['queue_not_found', 'deleted'],
    ]).toContainEqual([result!.kind, deleted]);
  }
  expect(await tableProblems(postgres, url)).toEqual([]);
});

again('the audit log is one chain, whoever writes to it', async () => {
  const stores = await openAll(3);
  const now = systemClock.now();
  await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      stores[i % 3]!.setPaused({ queue: 'mail', paused: i % 2 === 0, now, by: `server ${i % 3}` }),
    ),
  );
  const records = (await stores[0]!.auditPage({ limit: 100 })).toReversed();
  expect(records).toHaveLength(31);
  let last;
  for (const record of records.map(auditToWire)) {
    expect(auditFault(last, record)).toBeUndefined();
    last = record;
  }
});

again('a pause and a config hold everywhere as soon as they are answered', async () => {
  const [one, two] = await openAll(2);
  await submit(one!, newTasks(10));
  const now = systemClock.now();
  await one!.setPaused({ queue: 'mail', paused: true, now, by: 'ada' });
  expect(await claim(two!)).toEqual([]);
  await two!.setPaused({ queue: 'mail', paused: false, now, by: 'ada' });
  expect(await claim(one!)).toHaveLength(10);
  await one!.putQueue({ queue: 'mail', config: someConfig('new'), now, by: 'ada' });
  expect(await two!.getQueue('mail')).toMatchObject({ version: 2, config: { description: 'new' } });
});

test('work that one server gets is hinted to the others', async () => {
  const [one, two] = await openAll(2);
  const hints: string[] = [];
  two!.onWork((queue) => hints.push(queue));
  await submit(one!, newTasks(1));
  await expect.poll(() => hints, soon).toContain('mail');
});

test('a server whose clock is an hour off keeps to the time of the database', async () => {
  const log = memoryLog();
  const [right] = await openAll(1);
  for (const aheadMs of [3_600_000, -3_600_000]) {
    const machine = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const wrong = await open({ clock: machine, log });
    const { clock } = wrong.capabilities;
    expect(Math.abs(clock.now() - systemClock.now())).toBeLessThan(60_000);
    expect(log.lines.some(({ message }) => message.includes('set it right'))).toBe(true);
    // Its leases last for the others as long as they do for itself.
    await submit(right!, newTasks(1, { dueAt: systemClock.now() - 5_000 }));
    const now = clock.now();
    const [own] = await claim(wrong, { now, leaseExpiresAt: now + 60_000 });
    expect(Math.abs(own!.lease!.expiresAt - (now + 60_000))).toBeLessThan(5);
    const soonAfter = systemClock.now() + 55_000;
    expect(await right!.endedLeases({ now: soonAfter, limit: 9 })).toEqual([]);
    const ended = await right!.endedLeases({ now: soonAfter + 10_000, limit: 9 });
    expect(ended.map(({ id }) => id)).toEqual([own!.id]);
    // It ends nobody's lease before its time, and finds what is due.
    expect(await wrong.endedLeases({ now: clock.now() + 50_000, limit: 9 })).toEqual([]);
    const { upkeepAt } = await wrong.nextEventAt();
    expect(Math.abs(upkeepAt! - (now + 60_000))).toBeLessThan(5);
    const retry = { kind: 'retry', dueAt: clock.now() - 5_000 } as const;
    await wrong.settle([settlementOf(own!, retry, { now: clock.now() })]);
    const [again] = await claim(right!);
    expect(again?.id).toBe(own!.id);
    expect(Math.abs(again!.updatedAt - systemClock.now())).toBeLessThan(60_000);
    await right!.settle([settlementOf(again!, { kind: 'succeeded' })]);
  }
});

again('without SKIP LOCKED several servers expire and delete each task once', async () => {
  const stores = await Promise.all([1, 2, 3].map(() => open({ canSkipLocked: false })));
  await makeQueue(stores[0]!);
  const now = systemClock.now();
  await submit(stores[0]!, newTasks(300, { expiresAt: now + 1 }));
  const expired = await Promise.all(
    stores.flatMap((store) => [1, 2, 3].map(() => store.expireTasks({ now: now + 5, limit: 100 }))),
  );
  const rest = await stores[0]!.expireTasks({ now: now + 5, limit: 300 });
  const ids = [...expired.flat(), ...rest].map(({ id }) => id);
  expect(new Set(ids).size).toBe(300);
  expect(ids).toHaveLength(300);
  const request = { queue: 'mail', status: 'DEAD', endedBefore: now + 6, now, limit: 100 } as const;
  let deleted = 0;
  for (let more = 1; more > 0; deleted += more) {
    const counts = await Promise.all(stores.map((store) => store.deleteFinished(request)));
    more = counts.reduce((sum, count) => sum + count, 0);
  }
  expect(deleted).toBe(300);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test.each([true, false])(
  'several servers delete each success once, some of those that ended together (SKIP LOCKED: %s)',
  async (canSkipLocked) => {
    const stores = await Promise.all([1, 2, 3].map(() => open({ canSkipLocked })));
    await makeQueue(stores[0]!);
    await submit(stores[0]!, newTasks(300));
    const tasks = await claim(stores[0]!, { limit: 300 });
    const now = systemClock.now();
    const settlements = tasks.map((task, i) => ({
      ...settlementOf(task, { kind: 'succeeded' }),
      now: now + (i % 5),
    }));
    for (let from = 0; from < 300; from += 60) {
      await stores[from % 3]!.settle(settlements.slice(from, from + 60));
    }
    const request = { queue: 'mail', status: 'SUCCEEDED', now: now + 9, limit: 7 } as const;
    let deleted = 0;
    for (let more = 1; more > 0; deleted += more) {
      const counts = await Promise.all(
        stores.map((store) => store.deleteFinished({ ...request, endedBefore: now + 3 })),
      );
      more = counts.reduce((sum, count) => sum + count, 0);
      expect(await tableProblems(postgres, url)).toEqual([]);
    }
    expect(deleted).toBe(180);
    const rest = { ...request, endedBefore: now + 5, limit: 1_000 };
    expect(await stores[1]!.deleteFinished(rest)).toBe(120);
    expect(await tableProblems(postgres, url)).toEqual([]);
  },
);

test('a conflict that the database undoes is tried again', async () => {
  const [one, two] = await openAll(2);
  await submit(one!, newTasks(60));
  const tasks = await claim(one!, { limit: 60 });
  const settlements = tasks.map((task) => settlementOf(task, { kind: 'succeeded' }));
  // The same rows in both orders, again and again.
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      (i % 2 ? one! : two!).settle(i % 3 ? settlements : settlements.toReversed()),
    ),
  );
  const kinds = results.flat().map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'settled')).toHaveLength(60);
  expect(kinds.filter((kind) => kind === 'repeated')).toHaveLength(540);
});

again('a page that was begun at one server goes on at another', async () => {
  const [here, there] = [
    await startTestServer({ store: await open() }),
    await startTestServer({ store: await open() }),
  ];
  await makeQueueAt(here, 'mail');
  await buryTasks(here, 3);
  const path = '/v1/queues/mail/dlq?limit=2';
  const first = await here.as('root', { path });
  const cursor = encodeURIComponent(String(first.body['next_cursor']));
  const second = await there.as('root', { path: `${path}&cursor=${cursor}` });
  expect([first.status, second.status]).toEqual([200, 200]);
  expect(second.body['tasks']).toHaveLength(1);
});
