import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { tableProblems } from './consistency.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

/*
 * A server of 0.1.0 that still runs while a new one upgrades its tables, by its own statements on
 * one connection. scripts/rolling-upgrade.mjs does the same with a real one.
 */

const fixture = (file: string) =>
  readFileSync(new URL(`../fixtures/0.1.0/${file}`, import.meta.url), 'utf8');
const noon = Date.UTC(2026, 0, 5, 12);
const later = noon + 3_600_000;
const id = (serial: number) => `01KE6S0000000000000000${String(serial).padStart(4, '0')}`;

let postgres: PostgresServer;
beforeAll(async () => void (postgres = await startPostgres()));
afterAll(() => postgres.remove());

async function oldServer(url: string) {
  const client = new Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const payload = Buffer.from('from 0.1.0');
  const run = (name: string, values: unknown[]) =>
    client.query({ name, text: fixture(`${name}.sql`), values });
  return {
    insert: (serial: number, now: number) => {
      const task = [[id(serial)], ['mail'], ['old'], [0], [null], [now], [null], ['ada']];
      const body = [['text/plain'], ['{}'], [1], [payload.length], payload, [now]];
      return run('insert-tasks', [...task, ...body]);
    },
    succeed: (serial: number, token: string, now: number) =>
      run('succeed', [[id(serial)], [token], [now], ['{}']]),
  };
}

test('rolling upgrade: tasks that a server of 0.1.0 accepts before and after are handled', async () => {
  const url = await postgres.database('rolling_insert');
  await postgres.sql(url, fixture('postgres.sql'));
  const old = await oldServer(url);
  await old.insert(90, later);
  const store = await openOn(url);
  await old.insert(91, later);
  const claimed = await store.claimDue({
    queue: 'mail',
    limit: 50,
    now: later,
    nodeId: 'node-2',
    leaseExpiresAt: later + 45_000,
    newToken: () => 'new-token',
    maxInFlight: 1_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
  const fromOld = claimed.filter(({ handlerRef }) => handlerRef === 'old');
  expect(fromOld.map((task) => task.id).toSorted()).toEqual([90, 91].map(id));
  expect(Buffer.from(fromOld[1]!.payload).toString()).toBe('from 0.1.0');
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('rolling upgrade: a task in flight at a server of 0.1.0 is delivered again', async () => {
  const url = await postgres.database('rolling_settle');
  await postgres.sql(url, fixture('postgres.sql'));
  const old = await oldServer(url);
  const [row] = await postgres.sql(
    url,
    `SELECT lease_token AS token FROM millrace.live WHERE id = '${id(8)}'`,
  );
  const store = await openOn(url);
  const settled = old.succeed(8, String(row!['token']), noon + 1_000);
  await expect(settled).rejects.toThrow('"millrace.successes" does not exist');
  expect(await store.getTask(id(8))).toMatchObject({ status: 'IN_FLIGHT' });
  const ended = await store.endedLeases({ now: later, limit: 99 });
  expect(ended.map((task) => task.id)).toContain(id(8));
  expect(await tableProblems(postgres, url)).toEqual([]);
});
