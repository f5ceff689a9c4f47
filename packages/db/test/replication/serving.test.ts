import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '@millrace/db/client';
import { afterAll, expect, test } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import { GrpcClient } from '../server/support/grpc.js';
import { keysYaml } from '../server/support/keys.js';
import { RestClient } from '../server/support/rest.js';
import { expectSame, inState, logged, reached, streaming, useNodes } from './support/nodes.js';

const again = inCampaign('cases');

const nodes = useNodes();
const scratch = mkdtempSync(join(tmpdir(), 'mr-serving-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function grpcOf({ url }: { url: string }): GrpcClient {
  const client = new GrpcClient(url.replace('grpc://', ''));
  nodes.onClose(() => client.close());
  return client;
}

test('follower: refuses writes on gRPC and REST and names its leader', async () => {
  const leader = await nodes.start();
  await leader.client.collection('docs').upsert('a', { n: 1 });
  const follower = await nodes.follow(leader.url);
  const [grpc, rest] = [grpcOf(follower), new RestClient(follower.http)];
  const wanted = { reason: 'READ_ONLY_REPLICA', metadata: { leader: leader.url } };
  const struct = { fields: {} };
  for (const [method, request] of [
    ['Insert', { collection: 'docs', data: struct }],
    ['Upsert', { collection: 'docs', key: 'a', data: struct }],
    ['DeleteByKey', { collection: 'docs', key: 'a' }],
    ['BeginTx', {}],
  ] as const) {
    const refused = await grpc.refusal(method, request);
    expect(refused).toMatchObject({ code: 'FAILED_PRECONDITION', ...wanted });
    expect(refused.message).toContain(leader.url);
  }
  expect(await rest.refusal('POST', '/v1/docs/records', { data: {} })).toMatchObject({
    status: 400,
    ...wanted,
  });
  expect(await rest.refusal('DELETE', '/v1/docs/keys/a')).toMatchObject({ status: 400, ...wanted });
  await expectSame(leader, follower);
});

test('follower: serves reads, read-only transactions, watches and backups', async () => {
  const leader = await nodes.start();
  const docs = leader.client.collection<{ n: number }>('docs');
  await docs.upsert('a', { n: 1 });
  const follower = await nodes.follow(leader.url);
  const there = follower.client.collection<{ n: number }>('docs');
  const watch = there.watch({ includeInitial: true });
  const start = [await watch.next(), await watch.next()];
  expect(start.map(({ value }) => value?.kind)).toEqual(['initial', 'initial_end']);
  const transaction = await follower.client.begin({ readOnly: true });
  const { record } = await docs.upsert('a', { n: 2 });
  expect((await there.findByKey('a', { minSeq: record.seq }))?.data).toEqual({ n: 2 });
  expect((await there.findByKey('a', { transaction }))?.data).toEqual({ n: 1 });
  await transaction.commit();
  expect(await there.count({ field: 'n', op: 'eq', value: 2 })).toBe(1);
  const { value: message } = await watch.next();
  expect(message).toMatchObject({ kind: 'changes', seq: record.seq, changes: [{ op: 'update' }] });
  await watch.return?.();
  let bytes = 0;
  for await (const part of follower.client.backup()) {
    if (part.kind === 'data') bytes += part.bytes.length;
  }
  expect(bytes).toBeGreaterThan(0);
});

test('follower: min_seq waits for the commit or refuses REPLICA_BEHIND', async () => {
  const leader = await nodes.start();
  const docs = leader.client.collection('docs');
  await docs.upsert('a', { n: 1 });
  const proxy = await nodes.proxy(leader.url);
  const follower = await nodes.follow(proxy.url);
  proxy.goDown();
  await inState(follower, 'disconnected');
  const { record } = await docs.upsert('a', { n: 2 });
  const rest = new RestClient(follower.http);
  const grpc = grpcOf(follower);
  const request = { collection: 'docs', key: 'a', min_seq: record.seq };
  const refused = await grpc.refusal('FindByKey', request, { timeoutMs: 4_000 });
  expect(refused).toMatchObject({
    code: 'UNAVAILABLE',
    reason: 'REPLICA_BEHIND',
    metadata: { seq: String(record.seq - 1), min_seq: String(record.seq) },
  });
  const waiting = rest.ok('GET', `/v1/docs/keys/a?min_seq=${record.seq}`);
  const transaction = follower.client.begin({ readOnly: true, minSeq: record.seq });
  proxy.heal();
  expect(await waiting).toMatchObject({ record: { data: { n: 2 }, seq: record.seq } });
  expect((await transaction).readSeq).toBe(record.seq);
});

again('follower: without a first copy it is live but not ready', async () => {
  const leader = await nodes.start();
  await leader.client.collection('docs').upsert('a', { n: 1 });
  const proxy = await nodes.proxy(leader.url);
  proxy.goDown();
  const follower = await nodes.start({ follow: proxy.url });
  const [grpc, rest] = [grpcOf(follower), new RestClient(follower.http)];
  expect((await rest.send('GET', '/healthz')).status).toBe(200);
  const ready = await fetch(`${follower.http}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.text()).toContain('first copy');
  expect(await rest.refusal('GET', '/v1/docs/keys/a')).toMatchObject({
    status: 503,
    reason: 'NOT_READY',
  });
  expect(await rest.refusal('POST', '/v1/admin:promote', { force: true })).toMatchObject({
    reason: 'NOT_READY',
  });
  expect(await grpc.health()).toMatchObject({ status: 'SERVING' });
  const own = 'millrace.db.v1.Database';
  expect(await grpc.health(own)).toMatchObject({ status: 'NOT_SERVING' });
  await inState(follower, 'disconnected');
  expect(await rest.ok('GET', '/v1/admin/replication')).toMatchObject({
    role: 'follower',
    leader_address: proxy.url,
    seq: 0,
  });
  proxy.heal();
  await streaming(follower);
  expect((await rest.send('GET', '/readyz')).status).toBe(200);
  expect(await grpc.health(own)).toMatchObject({ status: 'SERVING' });
  expect((await rest.send('GET', '/metrics')).text).toMatch(/^millrace_db_is_streaming 1$/m);
  await expectSame(leader, follower);
});

test('follower: has the indexes of its own settings', async () => {
  const leader = await nodes.start({ collections: '{docs: {indexes: [{fields: [a]}]}}' });
  const docs = leader.client.collection('docs');
  for (let n = 0; n < 300; n++) await docs.insert({ a: n % 3, b: n % 7 });
  const follower = await nodes.follow(leader.url, {
    collections: '{docs: {indexes: [{fields: [b]}, {fields: [c], unique: true}]}}',
  });
  for (let n = 0; n < 20; n++) await docs.insert({ a: 1, b: 3, c: n });
  await expectSame(leader, follower);
  await follower.server.database.indexesBuilt();
  const there = follower.client.collection('docs');
  const { plan } = await there.find({
    filter: { field: 'b', op: 'eq', value: 3 },
    explain: true,
    limit: 1_000,
  });
  expect(plan).toMatchObject({ index: 'b', fullScan: false });
  expect((await follower.client.status({ includeCollections: true })).collections).toMatchObject([
    { name: 'docs', records: 320, indexes: [{ name: 'b' }, { name: 'c' }] },
  ]);

  // The leader's data overrides a unique index that only the follower has.
  await docs.insert({ c: 7 });
  await docs.insert({ c: 1_000 });
  await expectSame(leader, follower);
  expect(follower.server.database.indexes().map(({ name, state }) => [name, state])).toEqual([
    ['docs(b)', 'ready'],
    ['docs(c) unique', 'failed'],
  ]);
});

again('follower: records of one commit may swap unique values', async () => {
  const collections = '{docs: {indexes: [{fields: [u], unique: true}]}}';
  const leader = await nodes.start({ collections });
  const docs = leader.client.collection('docs');
  await docs.insertWithKey('a', { u: 1 });
  await docs.insertWithKey('b', { u: 2 });
  const follower = await nodes.follow(leader.url, { collections });
  await leader.client.transaction(async (transaction) => {
    await docs.upsert('a', { u: 99 }, { transaction });
    await docs.upsert('b', { u: 1 }, { transaction });
    await docs.upsert('a', { u: 2 }, { transaction });
  });
  await leader.client.transaction(async (transaction) => {
    await docs.deleteByKey('a', { transaction });
    await docs.insertWithKey('c', { u: 2 }, { transaction });
    await docs.insertWithKey('a', { u: 3 }, { transaction });
  });
  await expectSame(leader, follower);
  expect(follower.server.database.indexes()[0]!.state).toBe('ready');
});

test('follower: a node with another database is refused and keeps its data', async () => {
  const [leader, other] = [await nodes.start(), await nodes.start()];
  await leader.client.collection('docs').insert({ n: 1 });
  await other.client.collection('mine').upsert('a', { n: 1 });
  await other.stop();
  const follower = await nodes.start({ follow: leader.url }, other.data);
  await inState(follower, 'diverged');
  expect((await follower.client.collection('mine').findByKey('a'))?.data).toEqual({ n: 1 });
  await logged(follower, 'reason', 'LINEAGE_MISMATCH');
  expect((await leader.status()).role).toBe('leader');
});

test('follower: needs a key with admin scope and never shows it', async () => {
  const file = join(scratch, 'keys.yaml');
  writeFileSync(
    file,
    keysYaml([
      { id: 'replica', secret: 'correct-horse-battery', scopes: [['*', 'admin']] },
      { id: 'reader', secret: 'staple', scopes: [['*', 'read']] },
    ]),
  );
  const leader = await nodes.start({ 'keys-file': file });
  const weak = await nodes.start({ follow: leader.url, 'follow-key': 'reader.staple' });
  await logged(weak, 'reason', 'SCOPE');
  // Sending peer information does not replace a key.
  const reader = new GrpcClient(leader.url.replace('grpc://', ''));
  nodes.onClose(() => reader.close());
  const asNode = { collection: 'docs', start_seq: 1, peer: { node_id: 'x', role: 'follower' } };
  expect(await reader.refusal('Watch', asNode, { key: 'reader.staple' })).toMatchObject({
    reason: 'SCOPE',
  });
  const follower = await nodes.start({
    follow: leader.url,
    'follow-key': 'replica.correct-horse-battery',
  });
  await streaming(follower);
  expect(JSON.stringify(follower.log.lines)).not.toContain('correct-horse');
});

test('follower: uses TLS with a client certificate', async () => {
  const file = (name: string) =>
    fileURLToPath(new URL(`../server/certificates/${name}`, import.meta.url));
  const own = { 'tls-cert': file('server.pem'), 'tls-key': file('server.key') };
  const ca = { 'client-ca': file('ca.pem') };
  const leader = await nodes.start({ ...own, ...ca });
  const local = await leader.local();
  await local.collection('docs').insert({ n: 1 });
  const url = leader.url.replace('127.0.0.1', 'localhost');
  const caller = { 'tls-cert': file('caller.pem'), 'tls-key': file('caller.key') };
  const follower = await nodes.start({ follow: url, ...caller, ...ca });
  await reached(follower, 1);
  const lags = async () => (await local.status()).followers.map(({ lag }) => lag);
  await expect.poll(lags, { timeout: 60_000 }).toEqual([0]);
});

test('client: with TLS it never writes to a leader without, whatever followers say', async () => {
  const leader = await nodes.start();
  const file = (name: string) =>
    fileURLToPath(new URL(`../server/certificates/${name}`, import.meta.url));
  const tls = { 'tls-cert': file('server.pem'), 'tls-key': file('server.key') };
  const followers = [
    await nodes.start({ follow: leader.url, ...tls }),
    await nodes.start({ follow: leader.url, ...tls }),
  ];
  const urls = followers.map(({ url }) => url.replace('127.0.0.1', 'localhost'));
  const options = { timeoutMs: 3_000, tls: { ca: readFileSync(file('ca.pem')) } };
  const db = await connect(urls, options);
  nodes.onClose(() => db.close());
  // Both name the leader, whose address has no TLS.
  await expect(db.collection('docs').insert({ n: 1 })).rejects.toThrow(leader.url);
  expect(await leader.client.collection('docs').count()).toBe(0);
});

test('min_acks: a write is acknowledged when enough followers have it on disk', async () => {
  const leader = await nodes.start({ 'min-acks': '1' });
  const grpc = grpcOf(leader);
  const insert = (request_id: string) => ({
    collection: 'docs',
    request_id,
    data_json: Buffer.from('{"n":1}'),
  });
  // The server stops waiting a tenth before the caller's deadline, which must suffice on a busy
  // machine.
  const alone = await grpc.refusal('Insert', insert('one'), { timeoutMs: 2_000 });
  expect(alone).toMatchObject({
    code: 'UNAVAILABLE',
    reason: 'NOT_ENOUGH_ACKS',
    metadata: { min_acks: '1', acks: '0' },
  });
  const proxy = await nodes.proxy(leader.url);
  const follower = await nodes.follow(proxy.url);
  const repeated = await grpc.call('Insert', insert('one'));
  expect(await leader.status()).toMatchObject({ seq: 1, minAcks: 1 });
  expect(repeated).toMatchObject({ record: { rev: 1, seq: 1 } });
  const { id } = await leader.client.collection('docs').insert({ n: 2 });
  expect(await follower.client.collection('docs').findById(id)).toBeDefined();

  proxy.goDown();
  const refused = await new RestClient(leader.http).refusal(
    'POST',
    '/v1/docs/records',
    { data: {} },
    { 'grpc-timeout': '2000m' },
  );
  expect(refused).toMatchObject({ status: 503, reason: 'NOT_ENOUGH_ACKS' });
  proxy.heal();
  await streaming(follower);
  await expectSame(leader, follower);
});

test('follower: has the schema of its leader and enforces it after promotion', async () => {
  const leader = await nodes.start();
  const schema = { required: ['name'], properties: { name: { type: 'string' } } };
  await leader.client.schemas.set('people', schema);
  const follower = await nodes.follow(leader.url);
  await streaming(follower);
  await leader.client.schemas.set('late', schema);
  await expect.poll(() => follower.client.schemas.list()).toHaveLength(2);
  await expect(follower.client.schemas.set('people', {})).rejects.toMatchObject({
    code: 'READ_ONLY_REPLICA',
  });
  await leader.stop();
  await follower.client.promote({ force: true });
  for (const name of ['people', 'late']) {
    await expect(follower.client.collection(name).insert({})).rejects.toMatchObject({
      code: 'SCHEMA_VIOLATION',
    });
    await follower.client.collection(name).insert({ name: 'Ada' });
  }
});
