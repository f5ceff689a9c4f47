import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { connectQueue, defineTasks, submitIn, ValidationError } from '@millrace/worker';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createDelivery } from '../packages/queue/src/delivery/index.js';
import { openPostgresStore } from '../packages/queue/src/storage/postgres/open.js';
import {
  startPostgres,
  type PostgresServer,
} from '../packages/queue/test/postgres/postgres-server.js';
import { makeQueue, startTestServer, tokens } from '../packages/queue/test/support/server.js';
import { root } from './support/markdown.js';

const tasks = defineTasks({
  'mail.send': { payload: z.object({ to: z.string() }), queue: 'mail', maxAttempts: 2 },
});
let postgres: PostgresServer;
let databaseUrl: string;
const ends: (() => unknown)[] = [];
let queue: ReturnType<typeof connect>;

function connect(url: string) {
  return connectQueue({ url, token: tokens.root }, tasks);
}

beforeAll(async () => {
  const onEnd = (end: () => unknown) => void ends.push(end);
  postgres = await startPostgres();
  databaseUrl = await postgres.database('shop');
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const store = await openPostgresStore(databaseUrl, world);
  const server = await startTestServer({ store, createDelivery, onEnd });
  await makeQueue(server, 'mail', { callback: { protocol: 'pull' } });
  await postgres.sql(databaseUrl, 'create table orders (id text primary key)');
  queue = connect(server.url);
  ends.push(() => queue.close());
});
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
  await postgres.remove();
});

async function connectSql(): Promise<Client> {
  const client = new Client(databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

test('submitIn: a task exists with its transaction, or not at all', async () => {
  const client = await connectSql();
  await client.query('begin');
  const id = await submitIn(client, tasks, 'mail.send', { to: 'ada' }, { priority: 7 });
  await expect(queue.get(id)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
  await client.query('commit');
  expect(await queue.get(id)).toMatchObject({
    payload: { to: 'ada' },
    priority: 7,
    maxAttempts: 2,
    status: 'PENDING',
  });
  await client.query('begin');
  const undone = await submitIn(client, tasks, 'mail.send', { to: 'eve' });
  await client.query('rollback');
  await expect(queue.get(undone)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
  await queue.cancel(id);
});

test('submitIn: refuses an invalid payload before anything is sent', async () => {
  const client = await connectSql();
  const bad = submitIn(client, tasks, 'mail.send', { to: 7 as never });
  await expect(bad).rejects.toBeInstanceOf(ValidationError);
  const nowhere = submitIn(client, tasks, 'mail.send', { to: 'x' }, { queue: 'none' });
  await expect(nowhere).rejects.toThrow('none');
});

test.each(['pg', 'postgres-js', 'drizzle', 'kysely'])(
  'submitIn: examples/submit-in/%s.mjs stores an order and its task',
  async (name) => {
    const file = join(root, `examples/submit-in/${name}.mjs`);
    const env = { ...process.env, DATABASE_URL: databaseUrl };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
    const task = await queue.get(stdout.trim());
    const client = await connectSql();
    const { rows } = await client.query('select id from orders where id = $1', [
      `by ${task.payload.to}`,
    ]);
    expect([task.status, rows.length]).toEqual(['PENDING', 1]);
  },
);
