import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, expect } from 'vitest';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
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

testTaskStore('The PostgreSQL store', {
  open: async () => {
    const store = await open();
    await postgres.sql(url, emptyTables);
    return store;
  },
  reopen: async (store) => {
    await store.close();
    return open();
  },
  close: async (store) => {
    await store.close();
    expect(await tableProblems(postgres, url)).toEqual([]);
  },
});
