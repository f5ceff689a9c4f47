import { readFileSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer, type AddressInfo } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { callbackGuard, parseAllowlist, RequestAbort } from '@millrace/kit/outbound';
import { systemRandom } from '@millrace/kit/random';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { traceOf } from '../src/core/callback-headers.js';
import { sampleConfig } from '../src/delivery/delivery.test-support.js';
import { GrpcHandlerClient, type GrpcHandlersOptions } from '../src/delivery/grpc-handlers.js';
import { createDelivery } from '../src/delivery/index.js';
import { openStore } from '../src/storage/open-store.js';
import { startPostgres } from './postgres/postgres-server.js';
import { startGrpcHandler, type Execute, type GrpcHandler } from './support/grpc-handler.js';
import {
  endWithFile,
  makeQueue,
  newDirectory,
  startTestServer,
  type TestServer,
} from './support/server.js';

const soon = { timeout: 60_000, interval: 20 };
const loopback = { host: '127.0.0.1', port: '*' as const, networks: ['127.0.0.0/8'] };

describe.each(['embedded', 'postgres'] as const)('callbacks over gRPC, %s store', (kind) => {
  const onEnd = endWithFile();
  let server: TestServer;
  let execute: Execute = () => ({});
  let handler: GrpcHandler;
  beforeAll(async () => {
    const postgres = kind === 'postgres' ? await startPostgres() : undefined;
    if (postgres) onEnd(() => postgres.remove());
    const storage = postgres ? await postgres.database('grpc') : 'embedded';
    const dataDirectory = newDirectory(onEnd);
    const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
    handler = await startGrpcHandler((request) => execute(request), { onEnd });
    server = await startTestServer({
      onEnd,
      store: await openStore(storage, { ...world, dataDirectory }),
      createDelivery,
      settings: { callback_allowlist: [{ scheme: 'grpc', ...loopback }] },
    });
  });

  let queues = 0;
  async function newQueue(callback: object = {}, more: object = {}): Promise<string> {
    const name = `mail.q${++queues}`;
    const config = { protocol: 'grpc', url: handler.url, ...callback };
    await makeQueue(server, name, { callback: config, ...more });
    return name;
  }

  async function submit(queue: string, body: object = {}): Promise<string> {
    const path = `/v1/queues/${queue}/tasks`;
    const task = { handler_ref: 'send', ...body };
    const answer = await server.as('submitter', { method: 'POST', path, body: task });
    return String(answer.body['id']);
  }

  const taskOf = async (id: string) =>
    (await server.as('operator', { path: `/v1/tasks/${id}` })).body as any;
  const ended = async (id: string) => {
    await expect.poll(async () => (await taskOf(id)).status, soon).toMatch(/SUCCEEDED|DEAD/);
    return taskOf(id);
  };

  test('execute: gets the task, its payload and the credentials of the queue', async () => {
    execute = () => ({});
    const auth = { type: 'bearer', secret_ref: 'mail-token' };
    const signing = { secret_refs: ['mail-signing'] };
    const queue = await newQueue({ auth, signing }, { retry: { max_attempts: 4 } });
    const payload = Buffer.from([0, 255, 7]);
    const headers = { 'X-Tenant': 'acme' };
    const id = await submit(queue, { payload: payload.toString('base64'), headers });
    expect(await ended(id)).toMatchObject({
      status: 'SUCCEEDED',
      attempts: [{ url: handler.url, remote_ip: '127.0.0.1', http_status: null }],
    });
    const request = handler.received.find(({ task }) => task['id'] === id)!;
    expect(request.payload).toEqual(payload);
    expect(request.task).toMatchObject({
      queue,
      handler_ref: 'send',
      payload_content_type: 'application/octet-stream',
      headers,
      attempt: 1,
      max_attempts: 4,
      redrive_count: 0,
      probe: false,
    });
    expect(request.task['lease_token']).not.toBe('');
    expect(request.task['traceparent']).toMatch(/^00-/);
    expect(request.metadata).toMatchObject({
      authorization: 'Bearer abc123',
      'webhook-id': id,
      'x-queue-task-id': id,
      'x-queue-lease-token': request.task['lease_token'],
    });
    expect(request.metadata['webhook-signature']).toMatch(/^v1,/);
  });

  test('execute: carries the dependencies with their results, and suspends the task', async () => {
    const json = Buffer.from('{"sent": true}');
    execute = () => ({ result: json });
    const queue = await newQueue({ keep_result: true });
    const first = await submit(queue);
    await ended(first);
    let calls = 0;
    execute = () => (++calls === 1 ? { suspend: { signals: ['go'] } } : { result: json });
    const second = await submit(queue, { depends_on: [first] });
    await expect.poll(async () => (await taskOf(second)).waiting_for, soon).toBe('signal');
    const request = handler.received.find(({ task }) => task['id'] === second)!;
    const [dependency] = request.call.request.dependencies as { result: Uint8Array }[];
    expect(dependency).toMatchObject({ id: first, handler_ref: 'send', status: 'SUCCEEDED' });
    expect(JSON.parse(Buffer.from(dependency!.result).toString())).toEqual({ sent: true });
    const signal = { method: 'POST', path: `/v1/tasks/${second}/signals`, body: { name: 'go' } };
    await server.as('root', signal);
    expect(await ended(second)).toMatchObject({ status: 'SUCCEEDED', result: { sent: true } });
  });

  test('execute: the result is kept with keep_result only', async () => {
    execute = () => ({ result: Buffer.from('{"sent": true}') });
    const small = await submit(await newQueue({ keep_result: true }));
    expect(await ended(small)).toMatchObject({ result: { sent: true }, result_dropped: false });
    const ignored = await submit(await newQueue());
    expect(await ended(ignored)).toMatchObject({ result: null });
    execute = () => ({ result: Buffer.from(JSON.stringify('x'.repeat(70_000))) });
    const large = await submit(await newQueue({ keep_result: true }));
    expect(await ended(large)).toMatchObject({ result: null, result_dropped: true });
  });

  test('execute: a retryable status is retried after retry_after', async () => {
    let calls = 0;
    execute = () => {
      calls++;
      const status = { code: grpc.status.UNAVAILABLE, message: 'later' };
      return calls === 1 ? { status, retry_after: { seconds: 0, nanos: 20_000_000 } } : {};
    };
    const retry = { initial_backoff_ms: 10, max_backoff_ms: 10 };
    const task = await ended(await submit(await newQueue({}, { retry })));
    expect(task).toMatchObject({
      status: 'SUCCEEDED',
      attempts: [
        { outcome: 'FAILED', error_type: 'UNAVAILABLE', retry_after_ms: 20 },
        { outcome: 'SUCCEEDED' },
      ],
    });
    expect(task.attempts[0].message).toContain('later');
  });

  test.each([
    ['in the answer', () => ({ status: { code: grpc.status.NOT_FOUND, message: 'no ada' } })],
    [
      'of the call',
      () => Promise.reject(Object.assign(new Error(), { code: 5, details: 'no ada' })),
    ],
  ])('execute: another status %s is dead at once', async (_where, answer) => {
    execute = answer;
    const task = await ended(await submit(await newQueue()));
    expect(task).toMatchObject({ status: 'DEAD', dead_reason: 'PERMANENT', attempt: 1 });
    expect(task.last_error).toMatchObject({ error_type: 'NOT_FOUND', http_status: null });
    expect(task.last_error.message).toContain('no ada');
  });

  test('cancel: closes the call', async () => {
    let isCancelled = false;
    execute = ({ call }) => {
      call.on('cancelled', () => (isCancelled = true));
      return new Promise(() => undefined);
    };
    const id = await submit(await newQueue());
    await expect
      .poll(() => handler.received.some(({ task }) => task['id'] === id), soon)
      .toBe(true);
    const cancel = { method: 'POST', path: `/v1/tasks/${id}:cancel`, body: {} } as const;
    expect((await server.as('operator', cancel)).body).toMatchObject({ status: 'DEAD' });
    await expect.poll(() => isCancelled, soon).toBe(true);
    expect(await taskOf(id)).toMatchObject({ dead_reason: 'CANCELLED' });
  });

  test('timeout: is the deadline of the call', async () => {
    execute = () => new Promise(() => undefined);
    const id = await submit(await newQueue({ timeout_ms: 100 }, { retry: { max_attempts: 1 } }));
    expect(await ended(id)).toMatchObject({ last_error: { error_type: 'TIMEOUT' } });
    const { call } = handler.received.find(({ task }) => task['id'] === id)!;
    expect(call.getDeadline()).not.toBe(Infinity);
  });

  test('probe: calls the handler with no lease', async () => {
    execute = ({ task }) => {
      const status = { code: grpc.status.UNIMPLEMENTED, message: task['handler_ref'] };
      return task['probe'] ? { status } : {};
    };
    const queue = await newQueue();
    const path = `/v1/admin/queues/${queue}:test`;
    const { body } = await server.as('admin', { method: 'POST', path });
    expect(body).toMatchObject({
      delivered: false,
      http_status: null,
      error_type: 'UNIMPLEMENTED',
      message: 'The handler answered with UNIMPLEMENTED: queue.probe',
    });
  });

  test.each([
    [{ protocol: 'grpc', url: 'http://127.0.0.1:1' }, 'INVALID_CONFIG'],
    [{ protocol: 'http', url: 'grpc://127.0.0.1:1' }, 'CALLBACK_URL_NOT_ALLOWED'],
    [{ url: 'grpc://127.0.0.1:1' }, 'CALLBACK_URL_NOT_ALLOWED'],
    [{ protocol: 'grpc', url: 'grpc://127.0.0.1:1/path' }, 'CALLBACK_URL_NOT_ALLOWED'],
    [{ protocol: 'grpc', url: 'grpcs://127.0.0.1:1' }, 'CALLBACK_URL_NOT_ALLOWED'],
    [{ protocol: 'grpc', url: 'grpc://169.254.169.254:1' }, 'CALLBACK_URL_NOT_ALLOWED'],
    [{ protocol: 'grpc' }, 'INVALID_CONFIG'],
    [
      {
        protocol: 'grpc',
        url: 'grpc://127.0.0.1:1',
        auth: { type: 'header', name: 'x-key-bin', secret_ref: 'mail-token' },
      },
      'INVALID_CONFIG',
    ],
  ])('config: %j is refused with %s', async (callback, code) => {
    const path = '/v1/admin/queues/mail.bad/config';
    const answer = await server.as('admin', { method: 'PUT', path, body: { callback } });
    expect(answer).toMatchObject({ status: 422, body: { code } });
  });
});

describe('client', () => {
  const pem = (name: string) =>
    readFileSync(new URL(`../../kit/test/outbound/self-signed.${name}.pem`, import.meta.url));

  function newClient(entries: object[], options: Partial<GrpcHandlersOptions> = {}) {
    const guard = callbackGuard(parseAllowlist(entries));
    const client = new GrpcHandlerClient({ guard, ...options });
    onTestFinished(() => client.close());
    return client;
  }

  function executeAt(client: GrpcHandlerClient, url: string, more: object = {}, callback = {}) {
    const task = {
      id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
      queue: 'mail',
      handlerRef: 'send',
      payloadContentType: 'text/plain',
      headers: {},
      attempt: 1,
      redriveCount: 0,
      payload: new Uint8Array(0),
    };
    return client.execute(task, {
      leaseToken: 'token',
      trace: traceOf({}, 'token'),
      config: sampleConfig({ callback: { protocol: 'grpc', url, ...callback } }),
      credentials: { auth: undefined, signingKeys: [] },
      now: systemClock.now(),
      timeoutMs: 20_000,
      ...more,
    });
  }

  const handlerOf = (execute: Execute = () => ({}), credentials?: grpc.ServerCredentials) =>
    startGrpcHandler(execute, { onEnd: onTestFinished, ...(credentials && { credentials }) });

  test('TLS: the certificate must be trusted and of the name', async () => {
    const pair = { private_key: pem('key'), cert_chain: pem('cert') };
    const { port } = await handlerOf(
      undefined,
      grpc.ServerCredentials.createSsl(null, [pair], false),
    );
    const entry = (host: string) => ({ ...loopback, scheme: 'grpcs', host });
    const names = ['hooks.example.test', 'other.example.test', '127.0.0.1'];
    const entries = names.map(entry);
    const resolver = () => Promise.resolve(['127.0.0.1']);
    const trusting = newClient(entries, { resolver, rootCertificates: pem('cert') });
    const outcomes = [];
    for (const name of names) {
      const { outcome } = await executeAt(trusting, `grpcs://${name}:${port}`);
      outcomes.push(outcome.errorType);
    }
    expect(outcomes).toEqual([null, 'TLS_FAILURE', null]);
    const strict = newClient(entries, { resolver });
    const { outcome } = await executeAt(strict, `grpcs://hooks.example.test:${port}`);
    expect(outcome).toMatchObject({ errorType: 'TLS_FAILURE', mayRetry: true });
  });

  test('guard: a name that leads to an address that is not open is never called', async () => {
    const { port, received } = await handlerOf();
    let addresses = ['127.0.0.1'];
    const resolver = () => Promise.resolve(addresses);
    const entries = [{ scheme: 'grpc', host: 'h.test', port }];
    const client = newClient(entries, { resolver });
    const { outcome } = await executeAt(client, `grpc://h.test:${port}`);
    expect(outcome).toMatchObject({ errorType: 'TARGET_BLOCKED', remoteIp: '127.0.0.1' });
    // One address that is open does not help the other.
    addresses = ['127.0.0.1', '169.254.169.254'];
    const second = newClient([{ ...entries[0], networks: ['127.0.0.0/8'] }], { resolver });
    const { outcome: mixed } = await executeAt(second, `grpc://h.test:${port}`);
    expect(mixed).toMatchObject({ errorType: 'TARGET_BLOCKED', remoteIp: '169.254.169.254' });
    const { outcome: unlisted } = await executeAt(second, `grpc://other.test:${port}`);
    expect(unlisted.errorType).toBe('TARGET_BLOCKED');
    expect(received).toEqual([]);
  });

  test('proxy: a proxy of the environment is not used', async () => {
    const { url } = await handlerOf();
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const name of ['http_proxy', 'grpc_proxy']) vi.stubEnv(name, 'http://127.0.0.1:9');
    const client = newClient([{ ...loopback, scheme: 'grpc' }]);
    expect((await executeAt(client, url)).outcome.kind).toBe('succeeded');
  });

  test('failures: say what went wrong', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const { port } = silent.address() as AddressInfo;
    onTestFinished(() => void silent.close());
    const unknown = () => Promise.reject(new Error('ENOTFOUND h.test'));
    const entries = [
      { ...loopback, scheme: 'grpc' },
      { scheme: 'grpc', host: 'h.test', port: '*' },
    ];
    const client = newClient(entries, { resolver: unknown });
    const typeAt = async (url: string, callback = {}) =>
      (await executeAt(client, url, {}, callback)).outcome.errorType;
    expect(await typeAt('grpc://127.0.0.1:1')).toBe('CONNECTION_REFUSED');
    expect(await typeAt('grpc://h.test:1')).toBe('DNS_FAILURE');
    const impatient = { connect_timeout_ms: 50 };
    expect(await typeAt(`grpc://127.0.0.1:${port}`, impatient)).toBe('TIMEOUT');
    const never = newClient(entries, { resolver: () => new Promise(() => undefined) });
    const { outcome } = await executeAt(never, 'grpc://h.test:1', { timeoutMs: 20 });
    expect(outcome.errorType).toBe('TIMEOUT');
    const signal = new RequestAbort();
    const aborted = executeAt(never, 'grpc://h.test:1', { signal });
    signal.abort();
    expect((await aborted).outcome.kind).toBe('interrupted');
  });

  test('response: one that is not an ExecuteResponse is a failed attempt', async () => {
    const server = createHttp2Server();
    onTestFinished(() => void server.close());
    server.on('stream', (stream) => {
      stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff]));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const client = newClient([{ ...loopback, scheme: 'grpc' }]);
    const { outcome } = await executeAt(client, `grpc://127.0.0.1:${port}`);
    expect(outcome).toMatchObject({ kind: 'failed', errorType: 'INTERNAL', mayRetry: true });
    expect(outcome.message).toContain('not a valid ExecuteResponse');
    client.close();
  });

  test('channels: one for each target, closed when idle and above the limit', async () => {
    const handlers = await Promise.all([handlerOf(), handlerOf(), handlerOf()]);
    const entries = [{ ...loopback, scheme: 'grpc' }];
    const client = newClient(entries, { limits: { maxChannels: 2, idleMs: 200 } });
    await Promise.all(Array.from({ length: 20 }, () => executeAt(client, handlers[0].url)));
    const peers = new Set(handlers[0].received.map(({ call }) => call.getPeer()));
    expect(peers.size).toBe(1);
    for (const { url } of handlers) await executeAt(client, url);
    expect(client.openChannels).toBeLessThanOrEqual(2);
    await expect.poll(() => client.openChannels, soon).toBe(0);
    expect((await executeAt(client, handlers[0].url)).outcome.kind).toBe('succeeded');
  });
});
