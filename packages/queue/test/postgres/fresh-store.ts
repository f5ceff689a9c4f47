import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, onTestFinished } from 'vitest';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

const world = { clock: systemClock, random: systemRandom, log: silentLog };
let postgres: Promise<PostgresServer> | undefined;
let databases = 0;

/** An empty store in a database of its own, which ends with the test file. */
export async function freshStore(): Promise<TaskStore> {
  if (!postgres) {
    postgres = startWithTables();
    afterAll(async () => {
      const server = await postgres!;
      postgres = undefined;
      await server.remove();
    });
  }
  const url = await (await postgres).database(`queue_${++databases}`, 'tables');
  return openPostgresStore(url, world);
}

/** With a database to copy: making all tables again takes several times as long. */
async function startWithTables(): Promise<PostgresServer> {
  const server = await startPostgres();
  const store = await openPostgresStore(await server.database('tables'), world);
  await store.close();
  return server;
}

/** A store on a database that may have others, until the test is over. */
export async function openOn(
  url: string,
  options: { statementTimeoutMs?: number; upgrade?: boolean } = {},
): Promise<TaskStore> {
  const store = await openPostgresStore(url, { ...world, ...options });
  onTestFinished(() => store.close());
  return store;
}
