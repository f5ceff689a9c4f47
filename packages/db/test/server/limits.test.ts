import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GrpcClient } from './support/grpc.js';
import { toStruct } from './support/proto.js';
import { RestClient } from './support/rest.js';
import { startServer, type TestServer } from './support/server.js';
import { WatchReader } from './support/watching.js';

let server: TestServer;
let grpc: GrpcClient;
let rest: RestClient;

beforeAll(async () => {
  server = await startServer({ 'max-inflight': '2', 'max-watches': '2' });
  grpc = new GrpcClient(server.grpc);
  rest = new RestClient(server.http);
});
afterAll(async () => {
  grpc?.close();
  await server?.dispose();
});

/** Two calls that wait for a commit, which `release` writes. */
async function occupy(): Promise<() => Promise<void>> {
  const { core, writes } = server.database;
  const request = { collection: 'c', min_seq: core.durable.seq + 1 };
  // Without a deadline of its own a call waits 5 s only.
  const held = [1, 2].map(() => grpc.collect('Find', request, { timeoutMs: 100_000 }));
  await expect.poll(async () => (await inFlight()) === 2).toBe(true);
  return async () => {
    await writes.insert('c', {});
    await Promise.all(held);
    await expect.poll(async () => (await inFlight()) === 0).toBe(true);
  };
}

async function inFlight(): Promise<number> {
  const { text } = await rest.send('GET', '/metrics');
  return Number(/millrace_db_calls_in_flight (\d+)/.exec(text)?.[1]);
}

test('limits: calls above max_inflight are shed with a retry delay', async () => {
  const release = await occupy();
  const shed = await rest.refusal('POST', '/v1/c/records', { data: {} });
  expect(shed).toMatchObject({ status: 429, code: 8, reason: 'OVERLOADED' });
  expect(shed.headers.get('retry-after')).toBe('1');
  expect(shed.details[1]).toEqual({
    '@type': 'type.googleapis.com/google.rpc.RetryInfo',
    retry_delay: '0.250s',
  });
  const overGrpc = await grpc.refusal('Insert', { collection: 'c', data: toStruct({}) });
  expect(overGrpc).toMatchObject({ code: 'RESOURCE_EXHAUSTED', reason: 'OVERLOADED' });
  expect(overGrpc.details[1]).toMatchObject({
    '@type': 'type.googleapis.com/google.rpc.RetryInfo',
    retry_delay: { seconds: 0, nanos: 250_000_000 },
  });
  await release();
  await rest.ok('POST', '/v1/c/records', { data: {} });
  const { text } = await rest.send('GET', '/metrics');
  expect(text).toContain('millrace_db_shed_calls_total{cause="inflight"} 2');
});

test('limits: health, readiness and admin calls are never shed', async () => {
  const release = await occupy();
  expect(await grpc.health()).toEqual({ status: 'SERVING' });
  expect((await rest.send('GET', '/readyz')).status).toBe(200);
  expect(await rest.ok('GET', '/v1/admin/replication')).toMatchObject({ role: 'leader' });
  expect(await grpc.collect('Backup')).not.toHaveLength(0);
  expect(await rest.ok('POST', '/v1/admin:compact', { dry_run: true })).toHaveProperty('elapsed');
  await release();
});

test('limits: max_watches counts open watches only', async () => {
  const first = new WatchReader(grpc.stream('Watch', { collection: 'c' }));
  const second = await rest.open('GET', '/v1/c/records:watch');
  await first.isOpen;
  const refused = await grpc.refusal('Watch', { collection: 'c' });
  expect(refused).toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    reason: 'WATCH_LIMIT',
    metadata: { limit: '2' },
  });
  const overRest = await rest.refusal('GET', '/v1/c/records:watch');
  expect(overRest).toMatchObject({ status: 429, reason: 'WATCH_LIMIT' });
  expect(overRest.headers.get('retry-after')).toBe('1');
  // Calls have a separate limit.
  await rest.ok('POST', '/v1/c/records', { data: {} });
  first.close();
  second.close();
  await expect.poll(() => server.database.watches.size).toBe(0);
  const third = new WatchReader(grpc.stream('Watch', { collection: 'c' }));
  await third.isOpen;
  third.close();
});

const recovery = { timeout: 60_000, interval: 100 };

/** Blocks the event loop for `ms` in each turn, so that every call waits that long. */
function blockEveryTurn(ms: number): () => void {
  let isOn = true;
  const block = () => {
    const end = performance.now() + ms;
    while (performance.now() < end);
    if (isOn) setImmediate(block);
  };
  block();
  return () => (isOn = false);
}

test('limits: a queue delay above the target sheds load and recovers', async () => {
  const busy = await startServer({
    'shed-target-ms': '40',
    'shed-interval-ms': '100',
    'max-inflight': '64',
  });
  const client = new RestClient(busy.http);
  await busy.database.writes.insert('c', { n: 1 });
  const load = fileURLToPath(new URL('./programs/load.mjs', import.meta.url));
  const stopBlocking = blockEveryTurn(60);
  const callers = spawn(process.execPath, [load, busy.http, '60', '60000'], { stdio: 'pipe' });
  let statuses = '';
  callers.stdout.on('data', (bytes: Buffer) => (statuses += bytes.toString()));
  await new Promise((resolve) => callers.on('close', resolve));
  stopBlocking();
  expect(Object.keys(JSON.parse(statuses) as object)).toEqual(['200', '429']);
  const { text } = await client.send('GET', '/metrics');
  expect(text).toMatch(/millrace_db_shed_calls_total\{cause="queue_delay"\} [1-9]/);
  expect(busy.log.lines.map(({ message }) => message)).toContain('load shedding started');
  const find = async () => (await client.send('POST', '/v1/c/records:find')).status;
  await expect.poll(find, recovery).toBe(200);
  const metrics = async () => (await client.send('GET', '/metrics')).text;
  await expect.poll(metrics, recovery).toContain('millrace_db_admitted_share 1\n');
  await busy.dispose();
});

test('REST: health checks do not wait behind calls with large answers', async () => {
  const server = await startServer();
  const record = { key: 'large', data: { text: 'x'.repeat(1_500_000) } };
  const { status } = await new RestClient(server.http).send('POST', '/v1/c/keys', record);
  expect(status).toBe(200);
  const { port } = new URL(server.http);
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), '127.0.0.1');
    // The server accepts one connection after the other: an answer says that it has.
    socket.write(requestFor('/healthz'));
    await once(socket, 'data');
    return socket;
  };
  const readers = await Promise.all(Array.from({ length: 60 }, open));
  const prober = await open();
  for (const reader of readers) reader.write(requestFor('/v1/c/keys/large'));
  prober.write(requestFor('/healthz'));
  await once(prober, 'data');
  const answered = server.log.lines.filter(({ fields }) => fields['method'] === 'FindByKey');
  expect(answered.length).toBeLessThan(readers.length / 2);
  for (const socket of [...readers, prober]) socket.destroy();
  await server.dispose();
});

const requestFor = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
