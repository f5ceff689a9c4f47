import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { failureOf, GrpcClient } from './support/grpc.js';
import { keysYaml, type KeyEntry } from './support/keys.js';
import { toStruct } from './support/proto.js';
import { RestClient } from './support/rest.js';
import { startServer, type TestServer } from './support/server.js';
import { WatchReader } from './support/watching.js';
import { apiLabel } from '../../src/server/calls/calls.js';

const scratch = mkdtempSync(join(tmpdir(), 'mr-keys-'));
const keysFile = join(scratch, 'keys.yaml');
const keys: KeyEntry[] = [
  { id: 'root', secret: 'r00t', scopes: [['*', 'admin']] },
  { id: 'reader', secret: 'rrr', scopes: [['people', 'read']] },
  {
    id: 'writer',
    secret: 'www',
    scopes: [
      ['people', 'write'],
      ['orders.*', 'write'],
    ],
  },
  { id: 'people-admin', secret: 'ppp', scopes: [['people', 'admin']] },
  { id: 'old', secret: 'ooo', scopes: [['*', 'admin']], expiresAt: '2020-01-01T00:00:00Z' },
  { id: 'svc.dotted', secret: 'd.o.t', scopes: [['*', 'read']] },
  { id: 'nothing', secret: 'nnn', scopes: [] },
];
const keyOf = (id: string) => `${id}.${keys.find((key) => key.id === id)?.secret}`;

let server: TestServer;
let grpc: GrpcClient;
const restAs = (id?: string) =>
  new RestClient(server.http, id === undefined ? {} : { 'x-api-key': keyOf(id) });

beforeAll(async () => {
  writeFileSync(keysFile, keysYaml(keys));
  server = await startServer({ 'keys-file': keysFile });
  grpc = new GrpcClient(server.grpc);
});
afterAll(async () => {
  grpc?.close();
  await server?.dispose();
  rmSync(scratch, { recursive: true, force: true });
});

test('auth: a missing, unknown or expired key is UNAUTHENTICATED', async () => {
  const path = '/v1/people/records:find';
  const refusals: [headers: Record<string, string>, reason: string][] = [
    [{}, 'MISSING_KEY'],
    [{ 'x-api-key': '' }, 'MISSING_KEY'],
    [{ authorization: 'Basic cm9vdDpyMDB0' }, 'MISSING_KEY'],
    [{ 'x-api-key': 'nobody.secret' }, 'UNKNOWN_KEY'],
    [{ 'x-api-key': 'root.wrong' }, 'UNKNOWN_KEY'],
    [{ 'x-api-key': 'root' }, 'UNKNOWN_KEY'],
    [{ authorization: 'Bearer root.wrong' }, 'UNKNOWN_KEY'],
    [{ 'x-api-key': 'x'.repeat(2_000) }, 'UNKNOWN_KEY'],
    [{ 'x-api-key': keyOf('old') }, 'EXPIRED_KEY'],
    [{ 'x-api-key': 'old.wrong' }, 'UNKNOWN_KEY'],
  ];
  for (const [headers, reason] of refusals) {
    const refused = await new RestClient(server.http).refusal('POST', path, {}, headers);
    expect(refused).toMatchObject({ status: 401, code: 16, reason });
    expect(refused.headers.get('www-authenticate')).toContain('Bearer');
  }
  const find = { collection: 'people' };
  expect(await grpc.refusal('Find', find)).toMatchObject({
    code: 'UNAUTHENTICATED',
    reason: 'MISSING_KEY',
  });
  expect(await grpc.refusal('Find', find, { key: 'root.no' })).toMatchObject({
    reason: 'UNKNOWN_KEY',
  });
  expect(await grpc.refusal('Find', find, { bearer: keyOf('old') })).toMatchObject({
    reason: 'EXPIRED_KEY',
  });
});

test('auth: accepts a key as x-api-key and as a bearer token, on gRPC and REST', async () => {
  const find = { collection: 'people' };
  expect(await grpc.collect('Find', find, { key: keyOf('root') })).toHaveLength(1);
  expect(await grpc.collect('Find', find, { bearer: keyOf('root') })).toHaveLength(1);
  const bearer = new RestClient(server.http, { authorization: `Bearer ${keyOf('root')}` });
  await bearer.ok('POST', '/v1/people/records:find');
  await restAs('svc.dotted').ok('POST', '/v1/people/records:find');
});

type Attempt = [name: string, method: string, path: string, body?: object];
const attempts: Attempt[] = [
  ['read', 'POST', '/v1/people/records:find', {}],
  ['aggregate', 'POST', '/v1/people/records:aggregate', {}],
  ['write', 'POST', '/v1/people/records', { data: {} }],
  ['write orders.eu', 'POST', '/v1/orders.eu/records', { data: {} }],
  ['read orders', 'POST', '/v1/orders/records:find', {}],
  ['begin', 'POST', '/v1/tx:begin', {}],
  ['status', 'GET', '/v1/admin/replication'],
  ['compact', 'POST', '/v1/admin:compact', { dry_run: true }],
];
const allowed: Record<string, string[]> = {
  root: attempts.map(([name]) => name),
  reader: ['read', 'aggregate', 'begin'],
  writer: ['read', 'aggregate', 'write', 'write orders.eu', 'begin'],
  'people-admin': ['read', 'aggregate', 'write', 'begin'],
  'svc.dotted': ['read', 'aggregate', 'read orders', 'begin'],
  nothing: [],
};

describe.each(Object.keys(allowed))('the key %s', (id) => {
  test.each(attempts)('%s', async (name, method, path, body) => {
    const answer = await restAs(id).send(method, path, body);
    if (allowed[id]!.includes(name)) expect(answer.status).toBe(200);
    else {
      expect(answer.status).toBe(403);
      expect(answer.body).toMatchObject({ code: 7, details: [{ reason: 'SCOPE' }] });
    }
  });
});

test('auth: a watch of the whole database needs admin access to all of it', async () => {
  const watch = (id: string) => grpc.refusal('Watch', {}, { key: keyOf(id), timeoutMs: 300 });
  expect(await watch('root')).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
  for (const id of ['reader', 'writer', 'people-admin', 'svc.dotted']) {
    const refused = await watch(id);
    expect(refused).toMatchObject({ code: 'PERMISSION_DENIED', reason: 'SCOPE' });
    expect(refused.metadata).toEqual({ access: 'admin' });
  }
  expect((await restAs('reader').refusal('POST', '/v1/records:watch', {})).status).toBe(403);
});

test('auth: a transaction belongs to the key that began it', async () => {
  const [writer, root] = [{ key: keyOf('writer') }, { key: keyOf('root') }];
  const { tx_id: txId } = await grpc.call('BeginTx', {}, writer);
  const insert = { collection: 'people', data: toStruct({}), tx_id: txId };
  await grpc.call('Insert', insert, writer);
  for (const [method, request] of [
    ['Insert', insert],
    ['Find', { collection: 'people', tx_id: txId }],
    ['CommitTx', { tx_id: txId }],
    ['RollbackTx', { tx_id: txId }],
  ] as const) {
    expect(await grpc.refusal(method, request, root)).toMatchObject({ reason: 'TX_NOT_FOUND' });
  }
  expect(await grpc.call('CommitTx', { tx_id: txId }, writer)).toMatchObject({ operations: 1 });
  expect(await grpc.refusal('CommitTx', { tx_id: txId }, root)).toMatchObject({
    reason: 'TX_NOT_FOUND',
  });
});

test('auth: health and readiness need no key, metrics none on loopback', async () => {
  const nobody = new RestClient(server.http);
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.yaml', '/docs']) {
    expect((await nobody.send('GET', path)).status).toBe(200);
  }
  expect(await grpc.health()).toEqual({ status: 'SERVING' });
});

test('auth: the Unix socket needs no key and is private', async () => {
  const path = new URL(server.socket).pathname;
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(server.data).mode & 0o777).toBe(0o700);
  const client = new GrpcClient(server.socket);
  expect(await client.call('ReplicationStatus')).toMatchObject({ role: 'leader' });
  expect(await client.health()).toEqual({ status: 'SERVING' });
  client.close();
});

test('keys file: a change is loaded, an invalid file keeps the old keys', async () => {
  const fresh: KeyEntry = { id: 'fresh', secret: 'fff', scopes: [['*', 'read']] };
  const path = '/v1/people/records:find';
  const asFresh = new RestClient(server.http, { 'x-api-key': 'fresh.fff' });
  expect((await asFresh.refusal('POST', path)).reason).toBe('UNKNOWN_KEY');
  writeFileSync(keysFile, keysYaml([...keys.slice(1), fresh]));
  await expect.poll(async () => (await asFresh.send('POST', path)).status).toBe(200);
  expect((await restAs('root').refusal('POST', path)).reason).toBe('UNKNOWN_KEY');

  writeFileSync(keysFile, 'keys: [{id: x}]');
  const failed = () => server.log.lines.find(({ message }) => message.includes('failed to reload'));
  await expect.poll(failed).toBeDefined();
  expect(failed()?.message).toContain('keys.yaml:1: keys[0].secret_sha256');
  expect((await asFresh.send('POST', path)).status).toBe(200);
  const { text } = await new RestClient(server.http).send('GET', '/metrics');
  expect(text).toContain('millrace_db_keys_file_fresh 0');
  expect(text).toMatch(/millrace_db_keys_file_failures_total [1-9]/);
  writeFileSync(keysFile, keysYaml(keys));
  await expect.poll(async () => (await restAs('root').send('POST', path)).status).toBe(200);
});

test('keys file: a watch ends when its key is revoked', async () => {
  const watch = new WatchReader(
    grpc.stream('Watch', { collection: 'people' }, { key: keyOf('reader') }),
  );
  const other = new WatchReader(
    grpc.stream('Watch', { collection: 'people' }, { key: keyOf('writer') }),
  );
  await Promise.all([watch.isOpen, other.isOpen]);
  const without = keys.filter(({ id }) => id !== 'reader');
  const narrower = without.map((key) =>
    key.id === 'writer' ? { ...key, scopes: [['orders', 'read']] as KeyEntry['scopes'] } : key,
  );
  writeFileSync(keysFile, keysYaml(narrower));
  const ending: unknown = await watch.next().catch((error: unknown) => error);
  expect(failureOf(ending)).toMatchObject({ code: 'UNAUTHENTICATED', reason: 'UNKNOWN_KEY' });
  const otherEnding: unknown = await other.next().catch((error: unknown) => error);
  expect(failureOf(otherEnding)).toMatchObject({ code: 'PERMISSION_DENIED', reason: 'SCOPE' });
  writeFileSync(keysFile, keysYaml(keys));
  const path = '/v1/people/records:find';
  await expect.poll(async () => (await restAs('reader').send('POST', path)).status).toBe(200);
});

test('keys file: SIGHUP reloads it', async () => {
  const before = server.log.lines.length;
  writeFileSync(keysFile, `# a comment\n${keysYaml(keys)}`);
  process.emit('SIGHUP');
  const read = server.log.lines.slice(before).find(({ message }) => message === 'keys reloaded');
  expect(read?.fields).toMatchObject({ cause: 'SIGHUP' });
});

test('access log: a refused call has the key id but never the secret', async () => {
  await restAs('reader').refusal('POST', '/v1/people/records', { data: {} });
  const line = server.log.lines.findLast(({ message }) => message === 'call');
  expect(line?.fields).toMatchObject({
    method: 'Insert',
    [apiLabel]: 'rest',
    code: 'PERMISSION_DENIED',
    reason: 'SCOPE',
    principal: 'reader',
  });
  expect(JSON.stringify(server.log.lines)).not.toContain('rrr');
});

test('auth none: refused on an address that other machines can reach', async () => {
  for (const flag of ['grpc', 'http']) {
    const started = startServer({ [flag]: '0.0.0.0:0', auth: 'none' });
    await expect(started).rejects.toThrow(UsageError);
    await expect(started).rejects.toThrow(/0\.0\.0\.0.*auth is none/);
  }
  const open = await startServer({ grpc: '0.0.0.0:0', http: '0.0.0.0:0', 'keys-file': keysFile });
  expect((await new RestClient(open.http).refusal('POST', '/v1/c/records:find')).status).toBe(401);
  await open.dispose();
});

test('keys file: a missing or invalid file is reported with file and line', async () => {
  await expect(startServer({ 'keys-file': join(scratch, 'none.yaml') })).rejects.toThrow(
    /none\.yaml: no such file/,
  );
  const bad = join(scratch, 'bad.yaml');
  writeFileSync(bad, 'keys:\n  - id: a\n    secret_sha256: secret\n    scopes: []\n');
  await expect(startServer({ 'keys-file': bad })).rejects.toThrow(
    /bad\.yaml:3: keys\[0\]\.secret_sha256 must be the 64 hex digits/,
  );
});

describe('without keys', () => {
  let lone: TestServer;
  beforeAll(async () => {
    lone = await startServer();
  });
  afterAll(() => lone?.dispose());

  const statusWith = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const call = httpRequest(`${lone.http}/v1/people/records:find`, { method: 'POST', headers });
      call.on('response', (response) => {
        response.resume();
        resolve(response.statusCode!);
      });
      call.on('error', reject);
      call.end('{}');
    });

  test('auth none: web pages of other sites are refused', async () => {
    const { port } = new URL(lone.http);
    const json = { 'content-type': 'application/json' };
    expect(await statusWith(json)).toBe(200);
    expect(await statusWith({ ...json, host: 'localhost:8080' })).toBe(200);
    expect(await statusWith({ ...json, host: '[::1]:8080' })).toBe(200);
    const own = { origin: `http://localhost:${port}` };
    expect(await statusWith({ ...own, ...json })).toBe(200);
    expect(await statusWith({ ...own, 'content-type': 'text/plain' })).toBe(400);
    expect(await statusWith({ ...own })).toBe(400);
    expect(await statusWith({ origin: 'http://localhost:3000', ...json })).toBe(400);
    expect(await statusWith({ 'sec-fetch-site': 'cross-site', ...json })).toBe(400);
    expect(await statusWith({ 'sec-fetch-site': 'same-origin', ...json })).toBe(200);
    expect(await statusWith({ 'sec-fetch-site': 'same-origin' })).toBe(400);
    expect(await statusWith({ host: 'rebound.example:8080' })).toBe(400);
    expect(await statusWith({ host: '127.0.0.1.example' })).toBe(400);
    expect(await statusWith({ origin: 'https://evil.example' })).toBe(400);
    expect(await statusWith({ origin: 'null' })).toBe(400);
  });

  test('auth none: another content type than JSON is 415', async () => {
    expect(await statusWith({ 'content-type': 'application/x-www-form-urlencoded' })).toBe(415);
    expect(await statusWith({ 'content-type': 'text/plain' })).toBe(415);
    expect(await statusWith({})).toBe(415);
  });

  test('auth none: every caller is the same local principal with full access', async () => {
    const client = new GrpcClient(lone.grpc);
    const overSocket = new GrpcClient(lone.socket);
    const { tx_id: txId } = await client.call('BeginTx');
    await overSocket.call('Insert', { collection: 'c', data: toStruct({}), tx_id: txId });
    expect(await client.call('CommitTx', { tx_id: txId })).toMatchObject({ operations: 1 });
    client.close();
    overSocket.close();
  });
});
