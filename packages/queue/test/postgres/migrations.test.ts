import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { tables } from '../../src/storage/postgres/migrations/0001-tables.sql.js';
import { upkeep } from '../../src/storage/postgres/migrations/0002-upkeep.sql.js';
import { claims, claimsUpkeep } from '../../src/storage/postgres/migrations/0003-claims.sql.js';
import { schemaVersion } from '../../src/storage/postgres/migrations.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { someAttempt, someConfig } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
import { openOn } from './fresh-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
let databases = 0;
beforeAll(async () => void (postgres = await startPostgres()));
beforeEach(async () => void (url = await postgres.database(`migrated_${++databases}`)));
afterAll(() => postgres.remove());

const heldId = '01K00000000000000000000001';

/** As the first version left them, with one task that waits. */
const firstTables = `CREATE SCHEMA millrace;
  CREATE TABLE millrace.schema_version (one boolean PRIMARY KEY, version integer NOT NULL);
  INSERT INTO millrace.schema_version VALUES (true, 1);
  ${tables.join(';\n')};
  INSERT INTO millrace.queues (name, config, paused, version, incarnation, created_at, updated_at)
    VALUES ('mail', '${JSON.stringify(someConfig())}', false, 1, '${heldId}', 1, 1);
  INSERT INTO millrace.gates SELECT no, '{}', '[]' FROM millrace.queues;
  INSERT INTO millrace.tasks (id, queue, handler_ref, priority, created_at, first_due_at,
    submitted_by, content_type, headers, payload)
    VALUES ('${heldId}', 'mail', 'mail.send', 4, 1, 1, 'shop', 'text/plain', '{}', 'old');
  INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, attempt, total_attempts,
    redrive_count, status, priority, started, group_key, attempts)
    SELECT '${heldId}', no, 1, 1, 1, 0, 0, 0, 0, 4, false, '', '{}' FROM millrace.queues;
  INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT no, 1, 0, 0 FROM millrace.queues`;

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

/** As the second version left them: of two groups and of none, two of each in flight. */
const secondTables = `${firstTables};
  ${upkeep.join(';\n')};
  UPDATE millrace.schema_version SET version = 2;
  CREATE TEMPORARY TABLE made AS SELECT '01K000000000000000000' || 10000 + i AS id, i,
      CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN 'a' ELSE 'b' END AS group_key
    FROM generate_series(1, 60) AS i;
  INSERT INTO millrace.tasks (id, queue, handler_ref, priority, group_key, created_at, first_due_at,
    submitted_by, content_type, headers, payload)
    SELECT id, 'mail', 'mail.send', 4, group_key, i, i, 'shop', 'text/plain', '{}', id::bytea
    FROM made;
  INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, lease_expires_at,
    lease_started_at, attempt, total_attempts, redrive_count, status, priority, started,
    lease_async, group_key, lease_token, lease_node, attempts)
    SELECT id, no, i, i, CASE WHEN i > 6 THEN i END, CASE WHEN i <= 6 THEN 1000 + i % 2 END,
      CASE WHEN i <= 6 THEN i END, CASE WHEN i <= 6 THEN 1 ELSE 0 END,
      CASE WHEN i <= 6 THEN 1 ELSE 0 END, 0, CASE WHEN i <= 6 THEN 2 ELSE 0 END, 4, i <= 6,
      CASE WHEN i <= 6 THEN false END, coalesce(group_key, ''), CASE WHEN i <= 6 THEN 'token' || i END,
      CASE WHEN i <= 6 THEN 'old' END, '{}'
    FROM made, millrace.queues;
  INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT no, 54, 6, 0 FROM millrace.queues`;

test('tables of the first version become those of this one, with what they hold', async () => {
  await postgres.sql(url, firstTables);
  const store = await open();
  expect(await version()).toEqual([{ version: schemaVersion }]);
  expect(await optionsOf('live')).toMatch(/fillfactor=38/);
  expect(await optionsOf('live')).toMatch(/autovacuum_vacuum_cost_delay=0/);
  const [task] = await claimAll(store);
  expect(task).toMatchObject({ id: heldId, attempt: 1 });
  expect(Buffer.from(task!.payload).toString()).toBe('old');
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('what was in flight in tables of the second version is found when its lease ends', async () => {
  await postgres.sql(url, secondTables);
  const store = await open();
  expect(await version()).toEqual([{ version: schemaVersion }]);
  expect(await tableProblems(postgres, url)).toEqual([]);
  expect(await store.counts('mail')).toMatchObject({ pending: 55, inFlight: 6 });
  expect((await store.nextEventAt()).upkeepAt).toBe(1_000);
  const ended = await store.endedLeases({ now: 1_001, limit: 100 });
  expect(ended.map(({ lease }) => lease!.token)).toEqual(
    [2, 4, 6, 1, 3, 5].map((serial) => `token${serial}`),
  );
  const now = systemClock.now();
  const results = await store.settle(
    ended.map((task) => ({
      id: task.id,
      token: task.lease!.token,
      now,
      verdict: { kind: 'retry', dueAt: now },
      attempt: someAttempt({ attempt: task.attempt }),
    })),
  );
  expect(results.map(({ kind }) => kind)).toEqual(ended.map(() => 'settled'));
  const claimed = [await claimAll(store, 40), await claimAll(store, 40)].flat();
  expect(claimed).toHaveLength(61);
  expect(new Set(claimed.map(({ id }) => id)).size).toBe(61);
  expect(claimed.filter(({ attempt }) => attempt === 2)).toHaveLength(6);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

/** As the third version left them, with five that succeeded at three times and one that is dead. */
const thirdTables = `${firstTables};
  ${[...upkeep, ...claims, ...claimsUpkeep].join(';\n')};
  UPDATE millrace.schema_version SET version = 3;
  CREATE TEMPORARY TABLE over AS SELECT '01K0000000000000000000001' || i AS id, i
    FROM generate_series(1, 6) AS i;
  INSERT INTO millrace.tasks (id, queue, handler_ref, priority, created_at, first_due_at,
    submitted_by, content_type, headers, payload)
    SELECT id, 'mail', 'mail.send', 4, i, i, 'shop', 'text/plain', '{}', id::bytea FROM over;
  INSERT INTO millrace.ended (id, queue_no, ended_at, attempt, total_attempts, redrive_count, status,
    handler_ref, dead_reason, attempts)
    SELECT id, no, 1000 + i / 2, 1, 1, 0, CASE i WHEN 6 THEN 4 ELSE 3 END, 'mail.send',
      CASE i WHEN 6 THEN 'PERMANENT' END, '{}'
    FROM over, millrace.queues;
  INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT no, 0, 0, 1 FROM millrace.queues`;

test('what had succeeded in tables of the third version is deleted at its time', async () => {
  await postgres.sql(url, thirdTables);
  const store = await open();
  expect(await tableProblems(postgres, url)).toEqual([]);
  const filter = {};
  const query = {
    queue: 'mail',
    order: 'oldest_first',
    filter,
    limit: 9,
    maxBytes: 9_999,
  } as const;
  const page = await store.deadTasks(query);
  expect(page.tasks).toMatchObject([{ status: 'DEAD', deadAt: 1_003 }]);
  const remove = (status: 'SUCCEEDED' | 'DEAD', endedBefore: number, limit = 9) =>
    store.deleteFinished({ queue: 'mail', status, endedBefore, now: 2_000, limit });
  expect(await remove('SUCCEEDED', 1_000)).toBe(0);
  expect(await remove('SUCCEEDED', 1_002, 2)).toBe(2);
  expect(await tableProblems(postgres, url)).toEqual([]);
  expect(await remove('SUCCEEDED', 1_002)).toBe(1);
  expect(await remove('SUCCEEDED', 9_000)).toBe(2);
  expect(await remove('DEAD', 9_000)).toBe(1);
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('a server of 0.1.0 that still runs can neither claim nor settle', async () => {
  await open();
  const gate = 'SELECT queue_no, turns FROM millrace.gates';
  await expect(postgres.sql(url, gate)).rejects.toThrow(/column "turns"/);
  const succeeded = 'INSERT INTO millrace.successes DEFAULT VALUES';
  await expect(postgres.sql(url, succeeded)).rejects.toThrow(/"millrace.successes" does not exist/);
});

test('a server of the third version that still runs can neither claim nor settle', async () => {
  await open();
  const queue = 'SELECT no, name, config, paused, updated_at FROM millrace.queues';
  await expect(postgres.sql(url, queue)).rejects.toThrow(/column "updated_at"/);
  const settled = `INSERT INTO millrace.ended (id, status) VALUES ('', 3)`;
  await expect(postgres.sql(url, settled)).rejects.toThrow(/column "status"/);
});

test('tables that take longer than a statement may are changed all the same', async () => {
  await postgres.sql(url, thirdTables);
  await postgres.sql(
    url,
    `CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql
      AS $$ BEGIN PERFORM pg_sleep(1.5); END $$;
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
  await postgres.sql(url, firstTables);
  const owned = ['live', 'ended', 'queues', 'gates', 'tasks'];
  const guest = await asGuest(
    owned.map((table) => `ALTER TABLE millrace.${table} OWNER TO guest;`).join('\n'),
  );
  const store = await open(guest);
  expect(await version()).toEqual([{ version: schemaVersion }]);
  expect(await optionsOf('live')).toMatch(/fillfactor=38/);
  expect(await optionsOf('ledger')).toBeNull();
  expect(await claimAll(store)).toHaveLength(1);
});

test('a role without the privilege to change the tables gets an error, and they stay unchanged', async () => {
  await postgres.sql(url, firstTables);
  await expect(open(await asGuest(''))).rejects.toThrow(/must be owner/);
  expect(await version()).toEqual([{ version: 1 }]);
  expect(await optionsOf('live')).toBeNull();
});

test('a server of the second version that still runs can do nothing to the tables', async () => {
  await open();
  const claim = `UPDATE millrace.live SET status = 2 WHERE status + 0 = 0`;
  await expect(postgres.sql(url, claim)).rejects.toThrow(/column "status"/);
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
