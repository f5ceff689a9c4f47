import { connect, type RemoteDatabase } from '@millrace/db/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GrpcClient } from './support/grpc.js';
import { toStruct, type Message } from './support/proto.js';
import { RestClient } from './support/rest.js';
import { startServer, type TestServer } from './support/server.js';

let server: TestServer;
let rest: RestClient;
let grpc: GrpcClient;
let client: RemoteDatabase;

beforeAll(async () => {
  server = await startServer();
  rest = new RestClient(server.http);
  grpc = new GrpcClient(server.grpc);
  client = await connect(`grpc://${server.grpc}`);
});
afterAll(async () => {
  await client?.close();
  grpc?.close();
  await server?.dispose();
});

const schema = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, address: { properties: { zip: { type: 'integer' } } } },
};

test('schema: REST sets, shows, lists and removes it', async () => {
  const path = '/v1/admin/schemas/one';
  expect(await rest.ok('PUT', path, { schema })).toMatchObject({ applied: true, checked: 0 });
  const { schema: shown } = (await rest.ok('GET', path)) as { schema: Message };
  expect(shown).toMatchObject({
    collection: 'one',
    schema,
    validate: 'strict',
    violation_count: 0,
    updated_at: expect.any(String),
  });
  expect(await rest.ok('GET', '/v1/admin/schemas')).toEqual({ schemas: [shown] });
  const refused = await rest.refusal('POST', '/v1/one/records', {
    data: { name: 'Ada', address: { zip: 'x' } },
  });
  expect(refused).toMatchObject({
    status: 400,
    reason: 'SCHEMA_VIOLATION',
    metadata: { collection: 'one', path: 'address.zip' },
  });
  expect(await rest.ok('DELETE', path)).toEqual({ seq: expect.any(Number) });
  for (const method of ['GET', 'DELETE']) {
    expect(await rest.refusal(method, path)).toMatchObject({
      status: 404,
      reason: 'SCHEMA_NOT_FOUND',
    });
  }
  await rest.ok('POST', '/v1/one/records', { data: {} });
});

test('schema: gRPC refuses a schema that cannot be used, and an unknown mode', async () => {
  const set = (message: Message) => grpc.refusal('SetSchema', { collection: 'two', ...message });
  expect(await set({ schema: toStruct({ type: 'strng' }) })).toMatchObject({
    code: 'INVALID_ARGUMENT',
    reason: 'BAD_SCHEMA',
  });
  expect(await set({ schema: toStruct({ $ref: 'http://127.0.0.1:1/x' }) })).toMatchObject({
    reason: 'BAD_SCHEMA',
    message: expect.stringContaining('not in it'),
  });
  expect(await set({ schema: toStruct({}), validate: 'lax' })).toMatchObject({
    reason: 'BAD_REQUEST',
  });
  expect(await set({})).toMatchObject({ reason: 'BAD_REQUEST' });
  const long = toStruct({ description: 'x'.repeat(300_000) });
  expect(await set({ schema: long })).toMatchObject({ reason: 'BAD_SCHEMA' });
});

test('schema: the client reports violating records and applies with force', async () => {
  const people = client.collection('three');
  await people.insertWithKey('bad', { name: 7 });
  await people.insertWithKey('good', { name: 'Ada' });
  expect(await client.schemas.set('three', schema)).toMatchObject({
    applied: false,
    checked: 2,
    violating: 1,
    violations: [{ key: 'bad', path: 'name', message: 'must be string' }],
    seq: 0,
  });
  expect(await client.schemas.get('three')).toBeUndefined();
  const forced = await client.schemas.set('three', schema, { force: true, validate: 'warn' });
  expect(forced.applied).toBe(true);
  await people.insert({});
  expect(await client.schemas.get('three')).toMatchObject({ validate: 'warn', violationCount: 1 });
  const text = await (await fetch(`${server.http}/metrics`)).text();
  expect(text).toMatch(/schema_violations_total\{validate="warn"\} 1/);
});

test('schema: bulk results and NDJSON lines carry SCHEMA_VIOLATION', async () => {
  await client.schemas.set('four', schema);
  const operations = [{ insert: { data: { name: 'Ada' } } }, { insert: { data: {} } }];
  const { results } = (await rest.ok('POST', '/v1/four/records:bulk', { operations })) as {
    results: Message[];
  };
  expect(results).toMatchObject([
    { status: 'OK' },
    { status: 'FAILED', error: { code: 3, reason: 'SCHEMA_VIOLATION' } },
  ]);
  const lines = await fetch(`${server.http}/v1/four/records:bulk`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: operations.map((operation) => JSON.stringify(operation)).join('\n'),
  });
  const statuses = (await lines.text())
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as Message)['status']);
  expect(statuses).toEqual(['OK', 'FAILED']);
});
