import { readFileSync } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { History } from '../../src/background/task-observer.js';
import { WorkerActivity } from '../../src/delivery/worker-activity.js';
import { schemaVersion } from '../../src/storage/postgres/migrations.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { someConfig } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`migrated_${++databases}`)));
afterAll(() => postgres.remove());

const fixture = (file: string) =>
  readFileSync(new URL(`../fixtures/${file}`, import.meta.url), 'utf8');
const old = fixture('0.1.0/postgres.sql');
const noon = Date.UTC(2026, 0, 5, 12);

const version = async () => postgres.sql(url, 'SELECT version FROM millrace.schema_version');
const optionsOf = async (table: string) => {
  const text = `SELECT array_to_string(reloptions, ' ') AS options FROM pg_class
    WHERE oid = 'millrace.${table}'::regclass`;
  return (await postgres.sql(url, text))[0]!['options'];
};

const open = (at = url) => openOn(at);

async function claimAll(store: TaskStore, limit = 10) {
  const now = systemClock.now();
  return store.claimDue({
    queue: 'mail',
    limit,
    now,
    nodeId: 'test',
    leaseExpiresAt: now + 45_000,
    newToken: () => systemRandom.ulid(now),
    maxInFlight: 100,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
}

/** Everything that statements and the planner see of the tables. */
const shapeOf = async (at: string) => ({
  columns: await postgres.sql(
    at,
    `SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull,
      a.attcollation, a.attidentity, a.attstattarget, a.attstorage,
      pg_get_expr(d.adbin, d.adrelid) AS value
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'millrace'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
      AND NOT a.attisdropped ORDER BY 1, 2`,
  ),
  indexes: await postgres.sql(
    at,
    `SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'millrace' ORDER BY 1`,
  ),
  options: await postgres.sql(
    at,
    `SELECT relname, (SELECT array_agg(o ORDER BY o) FROM unnest(reloptions) AS o) AS options
    FROM pg_class WHERE relnamespace = 'millrace'::regnamespace AND relkind = 'r' ORDER BY 1`,
  ),
  sequences: await postgres.sql(
    at,
    `SELECT sequencename FROM pg_sequences WHERE schemaname = 'millrace' ORDER BY 1`,
  ),
});

test.each(['0.1.0/postgres.sql', 'schema-12.sql'])(
  'upgrade: the tables of %s become those of a new database',
  async (file) => {
    await postgres.sql(url, fixture(file));
    await open();
    expect(await version()).toEqual([{ version: schemaVersion }]);
    const fresh = await postgres.database(`fresh_${++databases}`);
    await open(fresh);
    expect(await shapeOf(url)).toEqual(await shapeOf(fresh));
  },
);

/** A queue with two groups, of which `a` had the last turn, and what belongs to it. */
const twelfth = `${fixture('schema-12.sql')}
  INSERT INTO millrace.queues (name, config, paused, version, incarnation, created_at, changed_at)
    VALUES ('mail', '${JSON.stringify(someConfig())}', false, 1, '01K0', 1, 1);
  INSERT INTO millrace.gates SELECT no, '{"4":"a"}', '[]', '' FROM millrace.queues;
  INSERT INTO millrace.floors SELECT no, kind, 0
    FROM millrace.queues, generate_series(-2, 9) AS kind;
  CREATE TEMPORARY TABLE made AS SELECT '01K000000000000000000' || 10000 + i AS id, i,
      CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN 'a' ELSE 'b' END AS group_key
    FROM generate_series(1, 9) AS i;
  INSERT INTO millrace.tasks (id, queue, handler_ref, priority, group_key, created_at, first_due_at,
    submitted_by, content_type, headers, payload)
    SELECT id, 'mail', 'mail.send', 4, nullif(group_key, ''), i, i, 'shop', 'text/plain', '{}',
      id::bytea FROM made;
  INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, attempt, total_attempts,
    redrive_count, stage, priority, started, group_key, attempts)
    SELECT id, no, i, i, i, 0, 0, 0, 0, 4, false, group_key, '{}' FROM made, millrace.queues;
  INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT no, 9, 0, 0 FROM millrace.queues;
  INSERT INTO millrace.records SELECT kind, no, 'nightly', '{"b":1}', '{"s":2}', 3, 5
    FROM millrace.queues, unnest(ARRAY['schedule', 'job']) AS kind;
  INSERT INTO millrace.history SELECT no, step, ${noon} + i * 1000, 'A', '{"submitted":' || i || '}'
    FROM millrace.queues, unnest(ARRAY[10, 60]) AS step, generate_series(1, 3) AS i;
  INSERT INTO millrace.history_totals SELECT no, 7, 5, 3 FROM millrace.queues;
  INSERT INTO millrace.workers SELECT no, 'key-of-w1', 'w1', 'mailers', NULL, ${noon}, 5, 2, 1, 1
    FROM millrace.queues`;

test('upgrade: a database of version 12 keeps tasks, turns, rows and history', async () => {
  await postgres.sql(url, twelfth);
  const store = await open();
  expect(await tableProblems(postgres, url)).toEqual([]);
  expect(await store.counts('mail')).toMatchObject({ pending: 9, inFlight: 0 });
  for (const table of ['schedule', 'job'] as const) {
    const row = { table, queue: 'mail', key: 'nightly', revision: 3, createdAt: 5 };
    expect(await store.listRows({ table, hasBodies: true })).toEqual([
      { ...row, body: { b: 1 }, value: { s: 2 } },
    ]);
  }
  const clock = { ...systemClock, now: () => noon };
  const history = new History({ store, clock, instance: 'B' });
  const rows = await history.read('mail', 10, noon + 2_500);
  expect(rows.map(({ at, instance }) => [at - noon, instance])).toEqual([
    [2_000, 'A'],
    [3_000, 'A'],
  ]);
  expect(await history.totals('mail')).toEqual({ succeeded: 7, failed: 5, dead: 3 });
  const workers = new WorkerActivity({ store, clock, log: silentLog });
  expect(await workers.list('mail')).toEqual([
    {
      worker: 'w1',
      principal: 'mailers',
      remoteIp: null,
      lastSeenAt: noon,
      inFlight: 1,
      claimed: 5,
      completed: 2,
      failed: 1,
    },
  ]);
  // The group after the last turn goes first.
  const claimed = await claimAll(store, 3);
  expect(claimed.map(({ groupKey }) => groupKey)).toEqual(['b', null, 'a']);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('upgrade: tables of before 0.1.0 are refused', async () => {
  await postgres.sql(url, old);
  await postgres.sql(url, 'UPDATE millrace.schema_version SET version = 4');
  await expect(open()).rejects.toThrow(/version 4, of before 0.1.0/);
});

test('a server of 0.1.0 that still runs can neither claim nor settle', async () => {
  await open();
  const gate = 'SELECT queue_no, turns FROM millrace.gates';
  await expect(postgres.sql(url, gate)).rejects.toThrow(/"millrace.gates" does not exist/);
  const succeeded = 'INSERT INTO millrace.successes DEFAULT VALUES';
  await expect(postgres.sql(url, succeeded)).rejects.toThrow(/"millrace.successes" does not exist/);
});

test('tables that take longer than a statement may are changed all the same', async () => {
  await postgres.sql(url, old);
  await postgres.sql(
    url,
    `CREATE SEQUENCE public.indexes;
    CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql
      AS $$ BEGIN
        IF nextval('public.indexes') = 1 THEN PERFORM pg_sleep(1.5); END IF;
      END $$;
    CREATE EVENT TRIGGER slow ON ddl_command_end WHEN TAG IN ('CREATE INDEX')
      EXECUTE FUNCTION slow()`,
  );
  await openOn(url, { statementTimeoutMs: 1_000 });
  expect(await version()).toEqual([{ version: schemaVersion }]);
});

const asGuest = async (grants: string) => {
  const { pathname } = new URL(url);
  await postgres.sql(
    url,
    `DO $$ BEGIN CREATE ROLE guest LOGIN PASSWORD 'password';
      EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    GRANT CREATE ON DATABASE ${pathname.slice(1)} TO guest;
    GRANT ALL ON SCHEMA millrace TO guest;
    GRANT ALL ON ALL TABLES IN SCHEMA millrace TO guest;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA millrace TO guest;
    ${grants}`,
  );
  const guest = new URL(url);
  guest.username = 'guest';
  return guest.href;
};

test('where the upkeep of a table is refused, the server works all the same', async () => {
  await postgres.sql(url, old);
  const owned = ['live', 'ended', 'queues', 'gates', 'tasks', 'floors', 'ledger', 'successes'];
  const guest = await asGuest(
    `${owned.map((table) => `ALTER TABLE millrace.${table} OWNER TO guest;`).join('\n')}
    ALTER TABLE millrace.wrecks OWNER TO guest`,
  );
  const store = await open(guest);
  expect(await version()).toEqual([{ version: schemaVersion }]);
  expect(await optionsOf('live')).toMatch(/fillfactor=38/);
  expect(await claimAll(store)).not.toHaveLength(0);
});

test('a role without the privilege to change the tables gets an error, and they stay unchanged', async () => {
  await postgres.sql(url, old);
  await expect(open(await asGuest(''))).rejects.toThrow(/must be owner/);
  expect(await version()).toEqual([{ version: 5 }]);
});

test('a role that may not make a schema works in one that it was given', async () => {
  await postgres.sql(url, `CREATE ROLE tenant LOGIN PASSWORD 'tenant'`);
  const tenant = new URL(url);
  tenant.username = tenant.password = 'tenant';
  await expect(open(tenant.href)).rejects.toThrow(/permission denied.*CREATE SCHEMA millrace/);
  await postgres.sql(url, 'CREATE SCHEMA millrace AUTHORIZATION tenant');
  const store = await open(tenant.href);
  const put = { queue: 'mail', config: someConfig(), now: systemClock.now(), by: 'ada' };
  expect(await store.putQueue(put)).toMatchObject({ kind: 'written' });
});

test('a database of another encoding is refused', async () => {
  await postgres.sql(url, `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'`);
  const latin = new URL(url);
  latin.pathname = '/latin';
  await expect(open(latin.href)).rejects.toThrow(/encoding of this database is LATIN1/);
});
