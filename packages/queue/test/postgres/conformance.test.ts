import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, expect } from 'vitest';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { testTaskStore } from '../task-store-conformance.js';
import { tableProblems } from './consistency.js';
import { emptyTables, startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.database('queue');
});
afterAll(() => postgres.remove());

const open = () =>
  openPostgresStore(url, { clock: systemClock, random: systemRandom, log: silentLog });

/** One for all tests: to connect and to plan every statement again takes most of their time. */
let shared: TaskStore | undefined;
afterAll(() => shared?.close());

/** Sessions of the store that still fold counters or raise marks: a test must not empty their tables. */
const busy = `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
  AND application_name = 'millrace-queue' AND state <> 'idle'`;

testTaskStore('The PostgreSQL store', {
  open: async () => {
    shared ??= await open();
    await expect.poll(() => postgres.sql(url, busy), { interval: 5 }).toEqual([]);
    await postgres.sql(url, emptyTables);
    return shared;
  },
  reopen: async (store) => {
    await store.close();
    return (shared = await open());
  },
  close: async () => expect(await tableProblems(postgres, url)).toEqual([]),
});
