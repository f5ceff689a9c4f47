import { readFileSync } from 'node:fs';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyUnpack, durationMs } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import {
  ClaimRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
} from '@millrace/contract/queue-grpc';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { createDelivery } from '../src/delivery/index.js';
import { queueV1 } from './support/grpc-handler.js';
import {
  endWithFile,
  makeQueue,
  startTestServer,
  tokens,
  type TestServer,
  type TestOptions,
} from './support/server.js';

const again = inCampaign('cases');

const mebibyte = 2 ** 20;
const grpcAt = { grpc: { host: '127.0.0.1', port: 0 } };

async function start(
  settings: TestOptions['settings'],
  onEnd: TestOptions['onEnd'] = onTestFinished,
): Promise<{ server: TestServer; url: URL }> {
  const server = await startTestServer({
    onEnd,
    createDelivery,
    settings: { ...grpcAt, ...settings },
  });
  await makeQueue(server, 'mail', { callback: { protocol: 'pull' } });
  const { url } = server.running.listeners.find(({ listener }) => listener === 'grpc')!;
  return { server, url: new URL(url) };
}

let shared: Awaited<ReturnType<typeof start>>;
const onFileEnd = endWithFile();
beforeAll(async () => {
  shared = await start({}, onFileEnd);
});

function openSession({ host }: URL): ClientHttp2Session {
  const session = connectHttp2(`http://${host}`).on('error', () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

interface Refused {
  code: string;
  reason: string;
  retryMs?: number;
}

function open(session: ClientHttp2Session, method: string, headers: Record<string, string>) {
  const call = session.request({
    ':method': 'POST',
    ':path': `/queue.v1.Queue/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  return call.on('error', () => undefined).resume();
}

/** Sends `body` as it is; resolves with the status, which may come before the request has ended. */
function send(
  session: ClientHttp2Session,
  method: string,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<Refused> {
  const call = open(session, method, headers);
  call.write(body);
  return new Promise((resolve) => {
    const take = (fields: Record<string, unknown>) => {
      if (fields['grpc-status'] === undefined) return;
      const code = grpc.status[Number(fields['grpc-status'])]!;
      resolve({
        code,
        ...detailsOf(Buffer.from(String(fields['grpc-status-details-bin']), 'base64')),
      });
    };
    call.on('response', take).on('trailers', take);
  });
}

function detailsOf(bytes: Buffer): Omit<Refused, 'code'> {
  const { details } = fromBinary(StatusSchema, bytes);
  const { reason } = anyUnpack(details[0]!, ErrorInfoSchema)!;
  const retry = details[1] && anyUnpack(details[1], RetryInfoSchema);
  return { reason, ...(retry?.retryDelay && { retryMs: durationMs(retry.retryDelay) }) };
}

function message(bytes: Uint8Array, isCompressed = 0): Buffer {
  const head = Buffer.from([isCompressed, 0, 0, 0, 0]);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

const admin = { authorization: `Bearer ${tokens.admin}` };
const nobody = { code: 'UNAUTHENTICATED', reason: 'UNAUTHENTICATED' };

test('gRPC: without a token the headers alone are answered, whatever follows', async () => {
  const session = openSession(shared.url);
  const unfinished = message(Buffer.alloc(15 * mebibyte)).subarray(0, 64 * 1024);
  expect(await send(session, 'SubmitBatch', unfinished)).toEqual(nobody);
  const bomb = message(gzipSync(Buffer.alloc(15 * mebibyte)), 1);
  expect(await send(session, 'Submit', bomb, { 'grpc-encoding': 'gzip' })).toEqual(nobody);
  expect(await send(session, 'Claim', Buffer.alloc(0))).toEqual(nobody);
  const wrong = { authorization: 'Bearer mrq_wrong' };
  expect(await send(session, 'Submit', Buffer.alloc(0), wrong)).toEqual(nobody);
});

test('gRPC: errors of the transport carry ErrorInfo', async () => {
  const session = openSession(shared.url);
  const missing = { code: 'UNIMPLEMENTED', reason: 'NOT_FOUND' };
  expect(await send(session, 'Nothing', message(Buffer.alloc(0)), admin)).toEqual(missing);
  const large = Buffer.from([0, 0x7f, 0, 0, 0]);
  const tooLarge = { code: 'RESOURCE_EXHAUSTED', reason: 'PAYLOAD_TOO_LARGE' };
  expect(await send(session, 'Submit', large, admin)).toEqual(tooLarge);
  const broken = { code: 'INTERNAL', reason: 'INVALID_TASK' };
  expect(await send(session, 'Submit', Buffer.from([7, 0, 0, 0, 0]), admin)).toEqual(broken);
});

test('gRPC: a compressed message counts by its decompressed size', async () => {
  const { url } = shared;
  const client = new queueV1.Queue(url.host, grpc.credentials.createInsecure(), {
    'grpc.default_compression_algorithm': 2,
  });
  onTestFinished(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', admin.authorization);
  const submit = (payload: Buffer) =>
    new Promise<any>((resolve) =>
      client.Submit(
        { queue: 'mail', handler_ref: 'a', payload },
        metadata,
        (error: any, task: any) => resolve(error ?? task),
      ),
    );
  expect(await submit(Buffer.alloc(1000, 'x'))).toMatchObject({ status: 'PENDING' });
  const bomb = await submit(Buffer.alloc(17 * mebibyte));
  expect(bomb.code).toBe(grpc.status.RESOURCE_EXHAUSTED);
  const [details] = bomb.metadata.get('grpc-status-details-bin');
  expect(detailsOf(details)).toEqual({ reason: 'PAYLOAD_TOO_LARGE' });
});

again('gRPC: connections above max_connections are closed', async () => {
  const { url } = await start({ max_connections: 3 });
  const sockets = Array.from({ length: 8 }, () => connect(Number(url.port), url.hostname));
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  let closed = 0;
  for (const socket of sockets) {
    socket
      .on('error', () => undefined)
      .on('close', () => closed++)
      .resume();
  }
  await expect.poll(() => closed).toBe(5);
});

test('claim: a principal has at most max_waiting_claims waiting in a queue', async () => {
  const { server, url } = await start({ max_waiting_claims: 2 });
  const client = new queueV1.Queue(url.host, grpc.credentials.createInsecure());
  onTestFinished(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set('authorization', `Bearer ${tokens.worker}`);
  const claimFor = (handler: string) => {
    const request = { queue: 'mail', worker: 'w', handlers: [handler] };
    const stream = client.Claim(request, metadata);
    onTestFinished(() => stream.cancel());
    const tasks: any[] = [];
    stream.on('data', (task: any) => tasks.push(task.handler_ref));
    const failed = new Promise<any>((resolve) => stream.on('error', resolve));
    return { tasks, failed };
  };
  const [a, b] = [claimFor('a'), claimFor('b')];
  const claim = {
    method: 'POST',
    path: '/v1/queues/mail/tasks:claim',
    body: { worker: 'w', wait_ms: 1 },
  };
  await expect.poll(async () => (await server.as('worker', claim)).status).toBe(429);
  const { headers, body } = await server.as('worker', claim);
  expect(headers).toMatchObject({ 'retry-after': '1', ratelimit: '"claims";r=0;t=1' });
  expect(body).toMatchObject({ code: 'RATE_LIMITED' });
  const refused = await claimFor('c').failed;
  const [details] = refused.metadata.get('grpc-status-details-bin');
  expect(detailsOf(details)).toEqual({ reason: 'RATE_LIMITED', retryMs: 1000 });
  // Others can still wait, and those that wait are served.
  expect((await server.as('operator', claim)).status).toBe(200);
  const submit = { method: 'POST', path: '/v1/queues/mail/tasks', body: { handler_ref: 'b' } };
  await server.as('submitter', submit);
  await expect.poll(() => b.tasks).toEqual(['b']);
  expect(a.tasks).toEqual([]);
});

test('claim: a stream that is not read is cut off and its tasks are handed back', async () => {
  const { server, url } = await start({});
  const payload = Buffer.alloc(2 ** 19, 'x').toString('base64');
  const path = '/v1/queues/mail/tasks';
  for (let n = 0; n < 4; n++) {
    await server.as('submitter', { method: 'POST', path, body: { handler_ref: 'a', payload } });
  }
  const statuses = async () => {
    const { body } = await server.as('operator', { method: 'GET', path });
    return (body as any).tasks.map(({ status }: any) => status);
  };
  const session = connectHttp2(`http://${url.host}`, { settings: { initialWindowSize: 0 } });
  onTestFinished(() => session.destroy());
  const claim = create(ClaimRequestSchema, { queue: 'mail', worker: 'w', maxOutstanding: 4 });
  const call = open(session, 'Claim', admin);
  let isCut = false;
  call.on('close', () => (isCut = true));
  call.end(message(toBinary(ClaimRequestSchema, claim)));
  await expect.poll(statuses).toContain('IN_FLIGHT');
  expect(isCut).toBe(false);
  const cutOff = () => {
    server.clock.monotonicAheadMs += 1_000;
    return isCut;
  };
  await expect.poll(cutOff, { timeout: 60_000, interval: 100 }).toBe(true);
  const pending = ['PENDING', 'PENDING', 'PENDING', 'PENDING'];
  await expect.poll(statuses).toEqual(pending);
});

test('TLS: serves REST and gRPC with the certificate of the settings', async () => {
  const file = (name: string) =>
    new URL(`../../kit/test/outbound/self-signed.${name}.pem`, import.meta.url);
  const server = await startTestServer({
    createDelivery,
    settings: { ...grpcAt, tls_cert: file('cert').pathname, tls_key: file('key').pathname },
  });
  const urls = Object.fromEntries(
    server.running.listeners.map(({ listener, url }) => [listener, url]),
  );
  expect(urls).toMatchObject({
    http: expect.stringMatching(/^https:/),
    grpc: expect.stringMatching(/^grpcs:/),
  });
  const client = new queueV1.Queue(
    new URL(urls['grpc']!).host,
    grpc.credentials.createSsl(readFileSync(file('cert'))),
  );
  onTestFinished(() => client.close());
  const error = await new Promise<any>((resolve) => client.Stats({ queue: 'mail' }, resolve));
  expect(error.code).toBe(grpc.status.UNAUTHENTICATED);
});
