import * as grpc from '@grpc/grpc-js';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createDelivery } from '../../src/delivery/index.js';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import { queueV1 } from '../support/grpc-handler.js';
import { makeQueue, startTestServer, tokens, type TestServer } from '../support/server.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
beforeAll(async () => void (postgres = await startPostgres()));
afterAll(() => postgres.remove());

async function startServer(url: string): Promise<TestServer> {
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  return startTestServer({
    onEnd: onTestFinished,
    store: await openPostgresStore(url, world),
    createDelivery,
    settings: { grpc: { host: '127.0.0.1', port: 0 } },
  });
}

function clientOf(server: TestServer): any {
  const { url } = server.running.listeners.find(({ listener }) => listener === 'grpc')!;
  const client = new queueV1.Queue(new URL(url).host, grpc.credentials.createInsecure());
  onTestFinished(() => client.close());
  return client;
}

test('claim stream: a task settled on another server makes room for the next', async () => {
  const url = await postgres.database('grpc_claims');
  const [a, b] = [await startServer(url), await startServer(url)];
  await makeQueue(a, 'mail', { callback: { protocol: 'pull' } });
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${tokens.admin}`);
  const other = clientOf(b);
  const call = (method: string, request: object): Promise<any> =>
    new Promise((resolve, reject) => {
      other[method](request, metadata, (error: unknown, answer: unknown) =>
        error ? reject(error as Error) : resolve(answer),
      );
    });
  const ids: string[] = [];
  for (let n = 0; n < 4; n++) {
    ids.push((await call('Submit', { queue: 'mail', handler_ref: 'a' })).id);
  }
  const request = { queue: 'mail', worker: 'w1', max_outstanding: 1, lease_ms: 600_000 };
  const stream = clientOf(a).Claim(request, metadata);
  const tasks: any[] = [];
  stream.on('data', (task: unknown) => tasks.push(task));
  stream.on('error', () => {});
  onTestFinished(() => stream.cancel());
  for (let n = 0; n < ids.length; n++) {
    await expect.poll(() => tasks.length, { timeout: 60_000 }).toBe(n + 1);
    const { id, lease_token } = tasks[n];
    expect(await call('Complete', { id, lease_token })).toMatchObject({ status: 'SUCCEEDED' });
  }
  expect(tasks.map(({ id }) => id)).toEqual(ids);
});
