import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { callbackGuard, parseAllowlist } from '@millrace/kit/outbound';
import { systemRandom } from '@millrace/kit/random';
import { createOutbound } from '@millrace/wire/http1';
import { Webhook } from 'standardwebhooks';
import { afterEach, expect, test } from 'vitest';
import type { QueueConfig } from '../src/core/queue.js';
import type { WholeTask } from '../src/core/task.js';
import { newObserver, sampleConfig, sampleTask } from '../src/delivery/delivery.test-support.js';
import { createDelivery } from '../src/delivery/index.js';
import { MemoryStore } from './support/memory-store/index.js';
import type { NewTask } from '../src/storage/port/task-store.js';

interface Received {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const secrets: Record<string, string> = {
  key: `whsec_${Buffer.from('a secret for signing').toString('base64')}`,
  next: `whsec_${Buffer.from('the one that follows').toString('base64')}`,
  token: 'abc',
};

/** A handler that listens on loopback, and a delivery that calls it with the real client. */
async function newPlace(handle: (request: Received, response: ServerResponse) => void) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const all = { method, url, headers, body: Buffer.concat(chunks) };
      received.push(all);
      handle(all, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const entry = { scheme: 'http', host: '127.0.0.1', port: '*', path_prefix: '/' };
  const allowlist = parseAllowlist([
    { ...entry, networks: ['127.0.0.0/8'] },
    { ...entry, host: 'localhost' },
  ]);
  const outbound = createOutbound({ guard: callbackGuard(allowlist) });
  ends.push(() => outbound.close());
  const store = new MemoryStore();
  const metrics = createMetrics('queue');
  const delivery = createDelivery({
    store,
    observer: newObserver(store, systemClock),
    clock: systemClock,
    random: systemRandom,
    log: memoryLog(),
    outbound,
    metrics,
    findSecret: (name) => secrets[name],
    isAllowed: () => true,
    nodeId: 'node-1',
  });
  await delivery.start();
  ends.push(async () => {
    await delivery.stop({ timeoutMs: 0 });
    metrics.close();
  });

  return {
    received,
    url: `http://127.0.0.1:${port}`,
    port,
    delivery,
    store,
    async run(
      task: Partial<NewTask>,
      callback: Partial<QueueConfig['callback']> & { url: string },
      status: WholeTask['status'] = 'SUCCEEDED',
    ): Promise<WholeTask> {
      const retry = { max_attempts: 1 };
      const put = { config: sampleConfig({ callback, retry }), now: 0, by: 'test' };
      await store.putQueue({ ...put, queue: 'mail' });
      const now = systemClock.now();
      const id = systemRandom.ulid(now);
      await store.insertTasks([{ ...sampleTask(id, now), ...task }], now);
      for (;;) {
        const found = (await store.getTask(id)) as WholeTask;
        if (found.status === status) return found;
        if (found.status !== 'PENDING' && found.status !== 'IN_FLIGHT') {
          throw new Error(`${found.status}: ${JSON.stringify(found.lastError)}`);
        }
        await systemClock.sleep(5);
      }
    },
  };
}

const ok = (_: Received, response: ServerResponse) => void response.writeHead(200).end('done');
const signing = { scheme: 'standard_webhooks' as const, secret_refs: ['key', 'next'] };

test('a handler receives the bytes, the headers and a signature that the library verifies', async () => {
  const place = await newPlace(ok);
  const text = '{"to":"Zoë"}';
  const task = await place.run(
    {
      payload: Buffer.from(text),
      payloadContentType: 'application/json',
      headers: { 'X-Tenant': 'acme', Cookie: 'no', Host: 'evil.example', 'Content-Length': '1' },
    },
    {
      url: `${place.url}/hooks/mail?key=1`,
      signing,
      auth: { type: 'bearer', secret_ref: 'token' },
    },
  );
  const [request] = place.received;
  expect(request).toMatchObject({ method: 'POST', url: '/hooks/mail?key=1' });
  expect(request!.body.toString()).toBe(text);
  expect(request!.headers).toMatchObject({
    host: `127.0.0.1:${place.port}`,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    authorization: 'Bearer abc',
    'x-tenant': 'acme',
    'x-queue-name': 'mail',
    'x-queue-task-id': task.id,
    'x-queue-handler-ref': 'mail.send',
    'x-queue-attempt': '1',
    'x-queue-max-attempts': '1',
    'x-queue-redrive-count': '0',
    'x-queue-deadline': expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    'x-queue-lease-token': expect.any(String),
    traceparent: expect.stringContaining(task.attempts[0]!.traceId!),
  });
  expect(request!.headers).not.toHaveProperty('cookie');
  const headers = request!.headers as Record<string, string>;
  for (const name of ['key', 'next']) {
    const verified = new Webhook(secrets[name]!).verify(request!.body.toString(), headers);
    expect(verified).toEqual({ to: 'Zoë' });
  }
  expect(task.attempts[0]).toMatchObject({
    outcome: 'SUCCEEDED',
    httpStatus: 200,
    responseSnippet: 'done',
    remoteIp: '127.0.0.1',
    url: `${place.url}/hooks/mail`,
  });
});

test('a binary payload arrives bit for bit, signed as it is', async () => {
  const place = await newPlace(ok);
  const payload = Buffer.from([0, 255, 254, 13, 10, ...randomBytes(200_000)]);
  await place.run(
    { payload, payloadContentType: 'application/octet-stream' },
    { url: place.url, signing },
  );
  const [request] = place.received;
  expect(request!.body.equals(payload)).toBe(true);
  const { headers } = request!;
  const head = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
  // The library takes text alone, which these bytes are not.
  const key = Buffer.from(secrets['key']!.slice(6), 'base64');
  const expected = createHmac('sha256', key).update(head).update(request!.body).digest('base64');
  expect(String(headers['webhook-signature']).split(' ')[0]).toBe(`v1,${expected}`);
});

test('an empty payload is an empty body', async () => {
  const place = await newPlace(ok);
  await place.run({ payload: new Uint8Array(0) }, { url: place.url });
  expect(place.received[0]!.body).toHaveLength(0);
  expect(place.received[0]!.headers).toMatchObject({ 'content-length': '0' });
});

test('a redirect is never followed', async () => {
  const place = await newPlace((_, response) => {
    response.writeHead(307, { location: 'http://169.254.169.254/latest/meta-data/' }).end();
  });
  const task = await place.run({}, { url: place.url }, 'DEAD');
  expect(place.received).toHaveLength(1);
  expect(task.lastError).toMatchObject({ errorType: 'REDIRECT', httpStatus: 307 });
});

test('an answer without an end is read to 64 KiB and no further', async () => {
  const place = await newPlace((_, response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write('ä'.repeat(8_192)));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  });
  const task = await place.run({}, { url: place.url });
  expect(task.attempts[0]!.responseSnippet).toBe('ä'.repeat(1_024));
});

test('the time-out covers everything up to the last byte', async () => {
  const place = await newPlace((_, response) => void response.writeHead(200).write('first byte'));
  const task = await place.run({}, { url: place.url, timeout_ms: 300 }, 'DEAD');
  expect(task.lastError).toMatchObject({ errorType: 'TIMEOUT', httpStatus: null });
  expect(task.attempts[0]!.durationMs).toBeGreaterThanOrEqual(300);
});

test('unreachable targets have distinct error types', async () => {
  const place = await newPlace((_, response) => void response.destroy());
  const reset = await place.run({}, { url: place.url }, 'DEAD');
  expect(reset.lastError).toMatchObject({ errorType: 'CONNECTION_RESET' });
  const blocked = await place.run({}, { url: `http://localhost:${place.port}` }, 'DEAD');
  expect(blocked.lastError).toMatchObject({ errorType: 'TARGET_BLOCKED' });
  expect(blocked.attempts[0]).toMatchObject({ outcome: 'FAILED', attempt: 1 });
  const refused = await place.run({}, { url: 'http://127.0.0.1:1' }, 'DEAD');
  expect(refused.lastError).toMatchObject({ errorType: 'CONNECTION_REFUSED' });
});

test('a handler that puts a task off costs it no attempt', async () => {
  const place = await newPlace((_, response) => {
    const isFirst = place.received.length === 1;
    if (isFirst) response.writeHead(429, { 'x-queue-defer': 'true', 'retry-after': '1' });
    response.end();
  });
  const task = await place.run({}, { url: place.url });
  expect(task).toMatchObject({
    attempt: 1,
    totalAttempts: 1,
    attempts: [
      { outcome: 'DEFERRED', attempt: 1, errorType: 'RATE_LIMITED', retryAfterMs: 1_000 },
      { outcome: 'SUCCEEDED', attempt: 1 },
    ],
  });
});

test('a server that stops breaks off what does not end, and hands it back', async () => {
  const place = await newPlace(() => {});
  const task = await place.run({}, { url: place.url }, 'IN_FLIGHT');
  while (place.received.length === 0) await systemClock.sleep(5);
  await place.delivery.stop({ timeoutMs: 50 });
  expect(await place.store.getTask(task.id)).toMatchObject({
    status: 'PENDING',
    attempt: 0,
    attempts: [{ outcome: 'INTERRUPTED' }],
  });
});
