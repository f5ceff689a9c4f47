import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { memoryLog } from '@millrace/kit/log';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import { serverDependencies } from '../../src/server/serve.js';
import { startServer } from '../../src/server/server.js';
import { httpClient, type TestRequest } from '../support/http-client.js';
import { startHandler } from '../support/handler.js';
import { newDirectory, testSettings, tokens } from '../support/server.js';
import { ownPostgres, type PostgresServer } from './postgres-server.js';

const again = inCampaign('process');

let postgres: PostgresServer;
beforeAll(async () => void (postgres = await ownPostgres()));
afterAll(() => postgres.remove());

const soon = { timeout: 60_000, interval: 50 };
const submit: TestRequest = {
  method: 'POST',
  path: '/v1/queues/mail/tasks',
  body: { handler_ref: 'a' },
};

/** A server on the database, with a queue, and whoever asks it as root. */
async function startOn(storage: string) {
  const handler = await startHandler(() => ({ status: 200 }));
  const log = memoryLog();
  const settings = { ...testSettings(newDirectory()), storage };
  const world = { clock: systemClock, random: systemRandom, log };
  const running = await startServer(settings, world, serverDependencies);
  const asking = httpClient(running.listeners[0]!.url);
  onTestFinished(async () => {
    asking.close();
    await running.stop();
  });
  const send = (request: TestRequest) => asking({ ...request, token: tokens.root });
  const made = await send({
    method: 'PUT',
    path: '/v1/admin/queues/mail/config',
    body: { callback: { url: handler.url } },
  });
  expect(made.status, made.text).toBe(200);
  return { send, handler };
}

/** Answers, and how long that took. */
async function timed<Answer>(call: () => Promise<Answer>): Promise<[Answer, number]> {
  const start = performance.now();
  return [await call(), performance.now() - start];
}

test('while the database is down submits are refused at once, and all resumes by itself', async () => {
  const { send, handler } = await startOn(await postgres.database('down'));
  const first = await send(submit);
  expect(first.status).toBe(202);
  await expect.poll(() => handler.received.length, soon).toBe(1);
  await postgres.stop();
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const [refused, tookMs] = await timed(() => send(submit));
    times.push(tookMs);
    expect(refused.status).toBe(503);
    expect(refused.body).toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
    expect(refused.headers['retry-after']).toBe('5');
  }
  // The best of five, because the machine may be busy.
  expect(Math.min(...times)).toBeLessThan(2_000);
  await expect.poll(async () => (await send({ path: '/readyz' })).status, soon).toBe(503);
  const unready = await send({ path: '/readyz' });
  expect(unready.headers['retry-after']).toBe('5');
  expect((await send({ path: '/healthz' })).status).toBe(200);
  await postgres.start();
  await expect.poll(async () => (await send({ path: '/readyz' })).status, soon).toBe(200);
  await expect.poll(async () => (await send(submit)).status, soon).toBe(202);
  await expect.poll(() => handler.received.length, soon).toBe(2);
});

again('connections that are cut are replaced', async () => {
  const url = await postgres.database('cut');
  const { send, handler } = await startOn(url);
  for (let i = 1; i <= 3; i++) {
    await postgres.sql(
      await postgres.database('postgres'),
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'cut'`,
    );
    await expect.poll(async () => (await send(submit)).status, soon).toBe(202);
    await expect.poll(() => handler.received.length, soon).toBe(i);
  }
});

test('a database that falls silent is noticed, and after that nobody waits for it', async () => {
  const wire = await silentWire(postgres.port);
  const url = new URL(await postgres.database('silent'));
  url.port = String(wire.port);
  const { send, handler } = await startOn(url.href);
  expect((await send(submit)).status).toBe(202);
  await expect.poll(() => handler.received.length, soon).toBe(1);
  wire.setSilent(true);
  const [noticed, tookMs] = await timed(() => send(submit));
  expect(noticed.status).toBe(503);
  expect(tookMs).toBeLessThan(20_000);
  const times: number[] = [];
  for (let i = 0; i < 20; i++) times.push((await timed(() => send(submit)))[1]);
  // Now and then one of them is the one that tries.
  expect(times.filter((ms) => ms < 500).length).toBeGreaterThanOrEqual(15);
  wire.setSilent(false);
  await expect.poll(async () => (await send(submit)).status, soon).toBe(202);
  await expect.poll(() => handler.received.length, soon).toBeGreaterThan(1);
});

/** A proxy that forwards bytes, or swallows them like a broken network. */
async function silentWire(to: number) {
  let isSilent = false;
  const sockets = new Set<Socket>();
  const server = createServer((inner) => {
    const outer = connect(to, '127.0.0.1');
    for (const [from, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from);
      from.on('error', () => other.destroy());
      from.on('close', () => !isSilent && other.destroy());
      from.on('data', (bytes) => !isSilent && other.write(bytes));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    setSilent: (silent: boolean) => {
      isSilent = silent;
      // What was swallowed would be missing from the stream.
      if (!silent) for (const socket of sockets) socket.destroy();
    },
  };
}

again('a database that only reads is not ready, and is again by itself', async () => {
  const { send, handler } = await startOn(await postgres.database('reads'));
  const root = await postgres.database('postgres');
  const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'reads'`;
  await postgres.sql(root, 'ALTER DATABASE reads SET default_transaction_read_only = on');
  await postgres.sql(root, cut);
  await expect.poll(async () => (await send({ path: '/readyz' })).status, soon).toBe(503);
  const refused = await send(submit);
  expect(refused.status).toBe(503);
  expect(refused.body).toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
  await postgres.sql(root, 'ALTER DATABASE reads RESET default_transaction_read_only');
  await postgres.sql(root, cut);
  await expect.poll(async () => (await send({ path: '/readyz' })).status, soon).toBe(200);
  await expect.poll(async () => (await send(submit)).status, soon).toBe(202);
  await expect.poll(() => handler.received.length, soon).toBeGreaterThan(0);
});

again(
  'where the database has no place for more connections, those that are open serve',
  async () => {
    const url = new URL(await postgres.database('full'));
    const root = await postgres.database('postgres');
    await postgres.sql(root, `CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 3`);
    await postgres.sql(root, 'ALTER DATABASE "full" OWNER TO few');
    url.username = url.password = 'few';
    const { send } = await startOn(url.href);
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(Array.from({ length: 40 }, () => send(submit)));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
    }
  },
);

again('a server that is started before its database waits for it', async () => {
  const storage = await postgres.database('later');
  await postgres.stop();
  const starting = startOn(storage);
  const early = await Promise.race([starting, systemClock.sleep(1_000)]);
  expect(early).toBeUndefined();
  await postgres.start();
  const { send } = await starting;
  expect((await send(submit)).status).toBe(202);
});

test('a database or a name that is wrong is said at once', async () => {
  const storage = await postgres.database('right');
  const wrong = [storage.replace('/right', '/none'), storage.replace('password', 'word')];
  for (const each of wrong) await expect(startOn(each)).rejects.toThrow('storage: PostgreSQL says');
});
