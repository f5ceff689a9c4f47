import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type ClientHttp2Stream } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import { GrpcClient } from './support/grpc.js';
import { keysYaml } from './support/keys.js';
import { toStruct } from './support/proto.js';
import { RestClient } from './support/rest.js';
import { startServer } from './support/server.js';

const again = inCampaign('cases');

/** Sends the bytes and returns what the server sends until `isEnough` or the end. */
async function exchange(url: string, bytes: string, isEnough: (text: string) => boolean) {
  const { port, hostname } = new URL(url);
  const socket = connectSocket(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(bytes);
  let text = '';
  for await (const part of socket) {
    text += String(part);
    if (isEnough(text)) break;
  }
  socket.destroy();
  return text;
}

const hasStatus = (text: string) => /^HTTP\/1\.1 [2-5]\d\d /.test(text);

test('REST: a caller without a key is refused before its body is received', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-keys-'));
  const file = join(directory, 'keys.yaml');
  writeFileSync(file, keysYaml([{ id: 'a', secret: 's', scopes: [['*', 'admin']] }]));
  const server = await startServer({ 'keys-file': file });
  const head = 'POST /v1/c/records HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n';
  expect(await exchange(server.http, `${head}\r\n{"data":`, hasStatus)).toContain(' 401 ');
  await server.dispose();
  rmSync(directory, { recursive: true, force: true });
});

test('REST: a body above the memory limit of a connection is OVERLOADED', async () => {
  const server = await startServer({ 'max-peer-memory-bytes': '1MiB' });
  const body = JSON.stringify({ data: { text: 'x'.repeat(600_000) } });
  const head = `POST /v1/c/records HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}`;
  const text = await exchange(server.http, `${head}\r\n\r\n${body}`, hasStatus);
  expect(text).toMatch(/^HTTP\/1\.1 (429|503) /);
  expect((await new RestClient(server.http).send('GET', '/healthz')).status).toBe(200);
  await server.dispose();
});

test('gRPC: a caller without a key is refused before its request is received', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-keys-'));
  const file = join(directory, 'keys.yaml');
  writeFileSync(file, keysYaml([{ id: 'a', secret: 's', scopes: [['*', 'admin']] }]));
  const server = await startServer({ 'keys-file': file });
  const session = connect(`http://${server.grpc}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/millrace.db.v1.Database/Insert',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  // The headers alone, and the beginning of a message that never ends.
  stream.write(Buffer.from([0, 0, 0x40, 0, 0, 1, 2, 3]));
  expect((await headersOf(stream))['grpc-status']).toBe('16');
  session.destroy();
  const known = new GrpcClient(server.grpc);
  await known.call('Insert', { collection: 'c', data: toStruct({}) }, { key: 'a.s' });
  known.close();
  await server.dispose();
  rmSync(directory, { recursive: true, force: true });
});

function headersOf(stream: ClientHttp2Stream): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    stream.on('response', (headers) => resolve({ ...headers }));
    stream.on('error', reject);
  });
}

again('gRPC: a burst of 5,000 inserts from one client loses none', async () => {
  const server = await startServer({ 'shed-target-ms': '60000' });
  const client = new GrpcClient(server.grpc);
  const inserts = Array.from({ length: 5_000 }, (_, n) =>
    client.call('Insert', { collection: 'c', data: toStruct({ n }) }),
  );
  const results = await Promise.allSettled(inserts);
  expect(results.filter(({ status }) => status === 'rejected')).toEqual([]);
  client.close();
  await server.dispose();
});

test('gRPC: large concurrent reads of one client wait, and all complete', async () => {
  // A connection may hold 4 MiB; the responses are 20 MB.
  const server = await startServer({ 'max-peer-memory-bytes': '16MiB' });
  const client = new GrpcClient(server.grpc);
  const text = 'x'.repeat(500_000);
  const key = 'large';
  await client.call('InsertWithKey', { collection: 'c', key, data: toStruct({ text }) });
  const reads = Array.from({ length: 40 }, () =>
    client.call('FindByKey', { collection: 'c', key }),
  );
  const other = new GrpcClient(server.grpc);
  expect(await other.health()).toEqual({ status: 'SERVING' });
  expect(await Promise.all(reads)).toHaveLength(40);
  client.close();
  other.close();
  await server.dispose();
});

test('gRPC: the oldest connection without a call makes room at the limit', async () => {
  const server = await startServer({ 'max-connections': '1' });
  const first = connect(`http://${server.grpc}`);
  first.on('error', () => undefined);
  await once(first, 'connect');
  const second = connect(`http://${server.grpc}`);
  await once(first, 'close');
  expect(second.closed).toBe(false);
  second.destroy();
  await server.dispose();
});
