import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../src/storage/postgres/index.js';
import { tables } from '../../src/storage/postgres/migrations/0001-tables.sql.js';
import type { TaskStore } from '../../src/storage/task-store.js';
import { someConfig } from '../task-store/fixture.js';
import { tableProblems } from './consistency.js';
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

async function open(at = url): Promise<TaskStore> {
  const options = { clock: systemClock, random: systemRandom, log: silentLog };
  const store = await openPostgresStore(at, options);
  onTestFinished(() => store.close());
  return store;
}

async function claimAll(store: TaskStore) {
  const now = systemClock.now();
  return store.claimDue({
    queue: 'mail',
    limit: 10,
    now,
    nodeId: 'test',
    leaseExpiresAt: now + 45_000,
    newToken: () => systemRandom.ulid(now),
    maxInFlight: 10,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
}

test('tables of the first version become those of this one, with what they hold', async () => {
  await postgres.sql(url, firstTables);
  const store = await open();
  expect(await version()).toEqual([{ version: 2 }]);
  expect(await optionsOf('live')).toMatch(/fillfactor=45.*autovacuum_vacuum_cost_delay=0/);
  const [task] = await claimAll(store);
  expect(task).toMatchObject({ id: heldId, attempt: 1 });
  expect(Buffer.from(task!.payload).toString()).toBe('old');
  expect(await tableProblems(postgres, url)).toEqual([]);
});

test('where the upkeep of the tables is refused, the server works all the same', async () => {
  await postgres.sql(url, firstTables);
  const { pathname } = new URL(url);
  await postgres.sql(
    url,
    `CREATE ROLE guest LOGIN PASSWORD 'password';
    GRANT CREATE ON DATABASE ${pathname.slice(1)} TO guest;
    GRANT ALL ON SCHEMA millrace TO guest;
    GRANT ALL ON ALL TABLES IN SCHEMA millrace TO guest;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA millrace TO guest`,
  );
  const guest = new URL(url);
  guest.username = 'guest';
  const store = await open(guest.href);
  expect(await version()).toEqual([{ version: 2 }]);
  expect(await optionsOf('live')).toBeNull();
  expect(await claimAll(store)).toHaveLength(1);
});
