import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll } from 'vitest';
import { openPostgresStore } from '../../src/storage/postgres/index.js';
import type { TaskStore } from '../../src/storage/task-store.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: Promise<PostgresServer> | undefined;
let databases = 0;

/** An empty store in a database of its own, on a PostgreSQL that ends with the test file. */
export async function freshStore(): Promise<TaskStore> {
  if (!postgres) {
    postgres = startPostgres();
    afterAll(async () => (await postgres!).remove());
  }
  const url = await (await postgres).database(`queue_${++databases}`);
  return openPostgresStore(url, { clock: systemClock, random: systemRandom, log: silentLog });
}
