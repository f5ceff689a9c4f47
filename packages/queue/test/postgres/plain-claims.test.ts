import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { MemoryStore } from '../support/memory-store/index.js';
import type { NewTask, TaskStore } from '../../src/storage/port/task-store.js';
import { someConfig } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`plain_${++databases}`)));
afterAll(() => postgres.remove());

const open = () => openOn(url);

interface Step {
  /** Tasks as `priority` or `priority` and group. */
  put?: string[];
  claim?: number;
}

/** The names of what each step claims. */
async function play(
  storeAt: (step: number) => TaskStore,
  steps: readonly Step[],
  dispatchPerSecond: number,
): Promise<string[][]> {
  const now = systemClock.now();
  const claimed: string[][] = [];
  await storeAt(0).putQueue({ queue: 'mail', config: someConfig(), now, by: 'ada' });
  let serial = 0;
  for (const [at, { put = [], claim }] of steps.entries()) {
    const tasks = put.map((text): NewTask => {
      const id = `01K000000000000000000${String(++serial).padStart(5, '0')}`;
      return newTask(id, text, now);
    });
    if (tasks.length > 0) await storeAt(at).insertTasks(tasks, now);
    if (claim === undefined) continue;
    const rows = await storeAt(at).claimDue({
      queue: 'mail',
      limit: claim,
      now,
      nodeId: 'test',
      leaseExpiresAt: now + 45_000,
      newToken: () => systemRandom.ulid(now),
      maxInFlight: 60,
      dispatchPerSecond,
      fifoGroups: false,
    });
    claimed.push(rows.map(({ id, groupKey, attempt }) => `${id} ${groupKey} ${attempt}`));
  }
  return claimed;
}

function newTask(id: string, text: string, now: number): NewTask {
  return {
    id,
    queue: 'mail',
    handlerRef: 'mail.send',
    payload: Buffer.from('hello'),
    payloadContentType: 'text/plain',
    headers: {},
    priority: Number(text[0]),
    groupKey: text.slice(1) || null,
    dueAt: now,
    expiresAt: null,
    submittedBy: 'shop',
    maxPending: 0,
  };
}

/** Groups come and go, so that plain claims and those in turn follow each other. */
const steps: Step[] = [
  { put: ['4', '7', '4', '0', '4'], claim: 3 },
  { put: ['4b', '4a', '4', '7c'], claim: 1 },
  { claim: 2 },
  { claim: 10 },
  { put: ['4', '4'], claim: 1 },
  { put: ['4a', '4b', '4c', '4'], claim: 1 },
  { claim: 1 },
  { claim: 10 },
];

test.each([0, 500])(
  'plain claims and claims in turn keep one order, with %d starts a second',
  async (dispatchPerSecond) => {
    const [one, other, memory] = [await open(), await open(), new MemoryStore()];
    const here = await play((step) => (step % 2 === 0 ? one : other), steps, dispatchPerSecond);
    expect(here).toEqual(await play(() => memory, steps, dispatchPerSecond));
    expect(here.flat()).toHaveLength(15);
    expect(await tableProblems(postgres, url)).toEqual([]);
  },
);

test('several servers claim side by side from a queue without groups, each task once', async () => {
  const stores = await Promise.all([open(), open(), open()]);
  const now = systemClock.now();
  await stores[0]!.putQueue({ queue: 'mail', config: someConfig(), now, by: 'ada' });
  const tasks = Array.from({ length: 900 }, () => newTask(systemRandom.ulid(now), '4', now));
  await stores[0]!.insertTasks(tasks, now);
  const taken = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      stores[i % 3]!.claimDue({
        queue: 'mail',
        limit: 100,
        now,
        nodeId: 'test',
        leaseExpiresAt: now + 45_000,
        newToken: () => systemRandom.ulid(now),
        maxInFlight: 700,
        dispatchPerSecond: 0,
        fifoGroups: false,
      }),
    ),
  );
  const ids = taken.flat().map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeLessThanOrEqual(700);
  expect((await stores[1]!.counts('mail')).inFlight).toBe(ids.length);
  expect(await tableProblems(postgres, url)).toEqual([]);
});
