// @module-tag campaign-store
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Client } from '../../src/storage/postgres/connections.js';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { someAttempt, someConfig, someTask } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
beforeAll(async () => void (postgres = await startPostgres()));
afterAll(() => postgres.remove());

const dead = 30_000;
const rounds = 40;
const inRound = 10;
/** By then a server has all its low-water marks. */
const settlingMs = 5_000;

/**
 * Dead rows of each kind that vacuum cannot remove, and statistics that say the tables are empty.
 */
const makeDead = (now: number) => `
  INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, expires_at, attempt,
      total_attempts, redrive_count, stage, priority, started, group_key, attempts)
    SELECT '01K0000000000000000' || 1000000 + i, no, ${now} - 60000 + i, 1, ${now} - 60000 + i,
      CASE i % 3 WHEN 1 THEN ${now} - i END, 0, 0, 0, i % 2, 4, false, '', '{}'
    FROM millrace.queues, generate_series(1, ${dead}) AS i;
  INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT no, 0, 0, 0 FROM millrace.queues, generate_series(1, ${dead});
  INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT ${now} - 60000 + i, '{}' FROM generate_series(1, ${dead}) AS i;
  DELETE FROM millrace.live; DELETE FROM millrace.counters; DELETE FROM millrace.claims;
  ANALYZE`;

/** How many entries of the indexes were read so far. */
async function read(url: string): Promise<number> {
  const text = `SELECT sum(idx_tup_read)::float AS read FROM pg_stat_user_indexes
    WHERE schemaname = 'millrace'`;
  return Number((await postgres.sql(url, text))[0]!['read']);
}

async function holdSnapshot(url: string): Promise<void> {
  const reader = new Client({ connectionString: url });
  await reader.connect();
  onTestFinished(() => reader.end());
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await reader.query('SELECT count(*) FROM pg_class');
}

const open = (url: string) =>
  openPostgresStore(url, { clock: systemClock, random: systemRandom, log: silentLog });

function claim(store: TaskStore) {
  const now = systemClock.now();
  return store.claimDue({
    queue: 'mail',
    limit: 100,
    now,
    nodeId: 'test',
    leaseExpiresAt: now + 45_000,
    newToken: () => systemRandom.ulid(now),
    maxInFlight: 1_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
}

/** The recurring calls of a server. */
async function work(store: TaskStore): Promise<void> {
  const now = systemClock.now();
  const tasks = Array.from({ length: inRound }, (_, i) =>
    someTask({
      id: systemRandom.ulid(now),
      dueAt: i === 0 ? now + 1 : now,
      expiresAt: i === 1 ? now + 60_000 : null,
    }),
  );
  await store.insertTasks(tasks, now);
  const claimed = await claim(store);
  const results = await store.settle(
    claimed.map((task) => ({
      id: task.id,
      token: task.lease!.token,
      now: systemClock.now(),
      verdict: { kind: 'succeeded' },
      attempt: someAttempt({ attempt: task.attempt }),
    })),
  );
  expect(results.every(({ kind }) => kind === 'settled')).toBe(true);
  await store.nextEventAt();
  await store.endedLeases({ now, limit: 100 });
  await store.expireTasks({ now, limit: 100 });
  await store.getTask(tasks[2]!.id);
}

test('dead rows: a server does not scan them again and again while a snapshot is held', async () => {
  const url = await postgres.database('held');
  const first = await open(url);
  const now = systemClock.now();
  await first.putQueue({ queue: 'mail', config: someConfig(), now, by: 'ada' });
  await work(first);
  await holdSnapshot(url);
  await postgres.sql(url, makeDead(now));
  // It has its place by now, and shares it.
  await work(first);
  await first.close();

  const store = await open(url);
  for (const end = systemClock.now() + settlingMs; systemClock.now() < end;) await work(store);
  // The database's figures on what was read are as old as that.
  await systemClock.sleep(1_500);
  await work(store);
  const before = await read(url);
  for (let i = 0; i < rounds; i++) await work(store);
  await systemClock.sleep(1_500);
  await store.close();
  expect(await read(url)).toBeGreaterThan(before);
  // Occasionally everything is scanned. Every time would be millions of entries.
  expect((await read(url)) - before).toBeLessThan((rounds * dead) / 4);
  expect(await tableProblems(postgres, url)).toEqual([]);
});
