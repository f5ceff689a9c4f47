import { expect, test } from 'vitest';
import { failureOf, GrpcClient } from './support/grpc.js';
import { toStruct } from './support/proto.js';
import { RestClient } from './support/rest.js';
import { startServer } from './support/server.js';
import { WatchReader } from './support/watching.js';

/** Waits until this many calls have arrived at the server. */
async function callsInFlight(rest: RestClient, count: number): Promise<void> {
  const metrics = async () => (await rest.send('GET', '/metrics')).text;
  const line = `millrace_db_calls_in_flight ${count}\n`;
  await expect.poll(metrics, { timeout: 60_000 }).toContain(line);
}

test('drain: notifies callers, finishes calls in flight and closes', async () => {
  const server = await startServer();
  const grpc = new GrpcClient(server.grpc);
  const rest = new RestClient(server.http);
  await rest.ok('POST', '/v1/c/keys', { key: 'k', data: {} });
  const watch = new WatchReader(grpc.stream('Watch', { collection: 'c' }));
  const lines = await rest.open('GET', '/v1/c/records:watch');
  const events = await rest.open('GET', '/v1/c/records:watch', undefined, {
    accept: 'text/event-stream',
  });
  const health = grpc.healthWatch();
  const states: unknown[] = [];
  health.on('data', ({ status }) => states.push(status));
  const healthEnded = new Promise((resolve) => health.on('end', resolve));
  health.on('error', () => undefined);
  await watch.isOpen;
  await expect.poll(() => states).toEqual(['SERVING']);
  const { core, writes } = server.database;
  const waiting = { collection: 'c', key: 'k', min_seq: core.durable.seq + 1 };
  const inFlight = grpc.call('FindByKey', waiting, { timeoutMs: 100_000 });
  await callsInFlight(rest, 1);

  const stopped = server.stop();
  expect(server.stop()).toBe(stopped);
  await expect.poll(() => states).toEqual(['SERVING', 'NOT_SERVING']);
  expect(await grpc.health()).toEqual({ status: 'NOT_SERVING' });
  const insert = { collection: 'c', data: toStruct({}) };
  expect(await grpc.refusal('Insert', insert)).toMatchObject({
    code: 'UNAVAILABLE',
    reason: 'SHUTTING_DOWN',
  });
  const refused = await rest.refusal('POST', '/v1/c/records', { data: {} });
  expect(refused).toMatchObject({ status: 503, code: 14, reason: 'SHUTTING_DOWN' });
  expect(refused.headers.get('connection')).toBe('close');
  expect((await fetch(`${server.http}/readyz`)).status).toBe(503);
  expect((await fetch(`${server.http}/healthz`)).status).toBe(200);
  const ending: unknown = await watch.next().catch((error: unknown) => error);
  expect(failureOf(ending)).toMatchObject({ code: 'UNAVAILABLE', reason: 'SHUTTING_DOWN' });
  expect(await lines.line()).toMatchObject({
    error: { code: 14, details: [{ reason: 'SHUTTING_DOWN' }, { retry_delay: '1s' }] },
  });
  expect(await lines.next()).toBeUndefined();
  expect(await events.next('\n\n')).toBe(': open');
  expect(await events.next('\n\n')).toMatch(/^data: \{"error":/);

  await writes.insert('c', {});
  expect(await inFlight).toHaveProperty('record');
  await stopped;
  await healthEnded;
  expect(server.database.isOpen).toBe(false);
  await expect(fetch(`${server.http}/healthz`)).rejects.toThrow();
  grpc.close();

  const again = await startServer({}, server.data);
  expect(await new RestClient(again.http).ok('GET', '/v1/c/keys/k')).toHaveProperty('record');
  await again.dispose();
});

test('drain: calls beyond the deadline are aborted with a reason', async () => {
  const server = await startServer({ 'drain-timeout-ms': '150' });
  const grpc = new GrpcClient(server.grpc);
  const rest = new RestClient(server.http);
  const min = 99_999;
  const request = { collection: 'c', key: 'k', min_seq: min };
  const overGrpc = grpc.refusal('FindByKey', request, { timeoutMs: 100_000 });
  const overRest = rest.refusal('GET', `/v1/c/keys/k?min_seq=${min}`, undefined, {
    'grpc-timeout': '100S',
  });
  const both = Promise.all([overGrpc, overRest]);
  await callsInFlight(rest, 2);
  const startedAt = performance.now();
  await server.dispose();
  // The default deadline is 30 s.
  expect(performance.now() - startedAt).toBeLessThan(15_000);
  await both;
  expect(await overGrpc).toMatchObject({ code: 'UNAVAILABLE', reason: 'SHUTTING_DOWN' });
  expect(await overRest).toMatchObject({ status: 503, reason: 'SHUTTING_DOWN' });
  expect(server.log.lines.map(({ message }) => message)).toContain(
    'drain deadline exceeded, aborting calls',
  );
  grpc.close();
});

test('drain: idle connections do not delay the stop', async () => {
  const server = await startServer();
  const grpc = new GrpcClient(server.grpc);
  await grpc.call('BeginTx');
  await new RestClient(server.http).ok('POST', '/v1/c/records:find');
  const startedAt = performance.now();
  await server.dispose();
  // Waiting for them would take the 30 s of the default deadline.
  expect(performance.now() - startedAt).toBeLessThan(15_000);
  grpc.close();
});

test('start: a second server on the same directory is refused with the owner', async () => {
  const server = await startServer();
  await expect(startServer({}, server.data)).rejects.toThrow(
    new RegExp(`in use by process ${process.pid}`),
  );
  expect(await new RestClient(server.http).ok('POST', '/v1/c/records:find')).toBeDefined();
  await server.dispose();
});

test('start: a port in use is a one-line error, and nothing stays open', async () => {
  const server = await startServer();
  const started = startServer({ http: server.http.replace('http://', '') });
  await expect(started).rejects.toThrow(/already in use.*--http/);
  await server.dispose();
});

/** Answers a paused reader cannot have in its own buffers. */
async function fill(rest: RestClient, records: number): Promise<void> {
  const operations = Array.from({ length: records }, () => ({
    insert: { data: { text: 'x'.repeat(100_000) } },
  }));
  await rest.ok('POST', '/v1/c/records:bulk', { operations });
}

test('drain: an answer that is not read yet is delivered within the drain time', async () => {
  const server = await startServer();
  const rest = new RestClient(server.http);
  await fill(rest, 80);
  const stream = new GrpcClient(server.grpc).stream('Find', { collection: 'c' });
  let bytes = 0;
  const outcome = new Promise<unknown>((resolve) => {
    stream.on('error', resolve);
    stream.on('end', () => resolve('ended'));
  });
  await new Promise((resolve) => stream.once('readable', () => resolve(undefined)));
  // The call has ended on the server once its answer is queued, or the drain waits for it.
  const stopped = server.stop();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  stream.on('data', (message: object) => (bytes += JSON.stringify(message).length));
  expect(await outcome).toBe('ended');
  expect(bytes).toBeGreaterThan(80 * 100_000);
  await stopped;
  await server.dispose();
});

test('drain: an answer that nobody reads does not outlast the drain time', async () => {
  const server = await startServer({ 'drain-timeout-ms': '2000' });
  const rest = new RestClient(server.http);
  await fill(rest, 80);
  const stream = new GrpcClient(server.grpc).stream('Find', { collection: 'c' });
  const outcome = new Promise<unknown>((resolve) => stream.on('error', resolve));
  await new Promise((resolve) => stream.once('readable', () => resolve(undefined)));
  await server.dispose();
  stream.resume();
  expect(await outcome).toMatchObject({ code: 14 });
});
