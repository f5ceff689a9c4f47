import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GrpcClient } from './support/grpc.js';
import type { Message } from './support/proto.js';
import { RestClient } from './support/rest.js';
import { startServer, type TestServer } from './support/server.js';

let server: TestServer;
let rest: RestClient;
let grpc: GrpcClient;

beforeAll(async () => {
  server = await startServer();
  rest = new RestClient(server.http);
  grpc = new GrpcClient(server.grpc);
});
afterAll(async () => {
  grpc?.close();
  await server?.dispose();
});

const linesOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Message);
const ndjson = { 'content-type': 'application/x-ndjson' };

test('bulk: REST refuses a body without operations', async () => {
  for (const body of [{}, { operations: null }, { ordered: true }]) {
    expect(await rest.refusal('POST', '/v1/none/records:bulk', body)).toMatchObject({
      reason: 'BAD_REQUEST',
      message: expect.stringContaining('operations is missing'),
    });
  }
  expect(await rest.ok('POST', '/v1/none/records:bulk', { operations: [] })).toMatchObject({});
});

test('bulk: REST writes many and marks what was not run', async () => {
  const operations = [
    { insert: { key: 'a', data: { n: 1 } } },
    { insert: { key: 'a', data: { n: 2 } } },
    { delete: { key: 'a' } },
  ];
  const answer = await rest.ok('POST', '/v1/one/records:bulk', { operations, ordered: true });
  const results = answer['results'] as Message[];
  expect(results.map(({ status }) => status)).toEqual(['OK', 'FAILED', 'NOT_RUN']);
  expect(results[0]).toMatchObject({ key: 'a', rev: 1, created: true, seq: answer['seq'] });
  expect(results[1]).toMatchObject({ error: { code: 6, reason: 'DUPLICATE_KEY' } });
  const atomic = { operations: operations.slice(1), atomic: true };
  expect(await rest.refusal('POST', '/v1/one/records:bulk', atomic)).toMatchObject({
    status: 409,
    reason: 'DUPLICATE_KEY',
    message: expect.stringContaining('operations[0]'),
  });
  const many = Array.from({ length: 10_001 }, () => ({ delete: { key: 'x' } }));
  expect(await rest.refusal('POST', '/v1/one/records:bulk', { operations: many })).toMatchObject({
    status: 400,
    reason: 'BAD_REQUEST',
  });
});

test('bulk: the message limit is 16 MiB on gRPC and REST', async () => {
  const text = 'x'.repeat(1_500_000);
  const operations = (count: number) =>
    Array.from({ length: count }, () => ({ insert: { data: { text } } }));
  await rest.ok('POST', '/v1/large/records:bulk', { operations: operations(9) });
  const refused = await rest.refusal('POST', '/v1/large/records:bulk', {
    operations: operations(12),
  });
  expect(refused).toMatchObject({ status: 400, reason: 'REQUEST_TOO_LARGE' });
  const message = (count: number) => ({
    collection: 'large',
    operations: Array.from({ length: count }, () => ({
      insert: { data_json: Buffer.from(JSON.stringify({ text })) },
    })),
  });
  await grpc.call('BulkWrite', message(9));
  expect(await grpc.refusal('BulkWrite', message(12))).toMatchObject({
    reason: 'REQUEST_TOO_LARGE',
  });
});

test('bulk: updateMany and deleteMany count matched and changed', async () => {
  const operations = Array.from({ length: 20 }, (_, n) => ({ insert: { data: { n } } }));
  await rest.ok('POST', '/v1/many/records:bulk', { operations });
  const filter = { field: 'n', op: 'lt', value: 10 };
  const update = { filter, patch: { low: true }, limit: 4 };
  expect(await rest.ok('POST', '/v1/many/records:updateMany', update)).toMatchObject({
    changed: 4,
  });
  const rest10 = await rest.ok('POST', '/v1/many/records:updateMany', { ...update, limit: 0 });
  expect(rest10).toMatchObject({ matched: 10, changed: 6 });
  expect(await rest.refusal('POST', '/v1/many/records:deleteMany', {})).toMatchObject({
    status: 400,
    reason: 'BAD_REQUEST',
  });
  for (const operation of ['updateMany', 'deleteMany']) {
    const request = { filter: { n: { gt: 3 } }, ...(operation === 'updateMany' && { patch: {} }) };
    expect(await rest.refusal('POST', `/v1/many/records:${operation}`, request)).toMatchObject({
      status: 400,
      reason: 'BAD_FILTER',
    });
  }
  const text = { filter, patch: 'x' };
  expect(await rest.refusal('POST', '/v1/many/records:updateMany', text)).toMatchObject({
    reason: 'BAD_DATA',
    message: 'patch must be a JSON object, not a string.',
  });
  expect(await rest.ok('POST', '/v1/many/records:deleteMany', { filter })).toMatchObject({
    matched: 10,
    changed: 10,
  });
  expect(await grpc.call('DeleteMany', { collection: 'many', filter: {} })).toMatchObject({
    matched: 10,
    changed: 10,
  });
});

test('bulk: NDJSON has one result per line, in order, and a bad line fails alone', async () => {
  const lines = [
    '{"insert": {"key": "a", "data": {"n": 1}}}',
    'nonsense',
    '',
    '{"insert": {"key": "a", "data": {"n": 2}}}',
    '{"upset": {}}',
    '{"upsert": {"key": "b", "data": {"n": 3}}}',
  ].join('\n');
  const answer = await rest.send('POST', '/v1/lines/records:bulk', lines, ndjson);
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  expect(
    linesOf(answer.text).map(({ status, error }) => (error as Message)?.['reason'] ?? status),
  ).toEqual(['OK', 'BAD_REQUEST', 'DUPLICATE_KEY', 'BAD_REQUEST', 'OK']);
  const ordered = await rest.send('POST', '/v1/stop/records:bulk?ordered=true', lines, ndjson);
  expect(linesOf(ordered.text).map(({ status }) => status)).toEqual([
    'OK',
    'FAILED',
    'NOT_RUN',
    'NOT_RUN',
    'NOT_RUN',
  ]);
  const wrong = await rest.refusal('POST', '/v1/stop/records:bulk?atomic=true', lines, ndjson);
  expect(wrong).toMatchObject({ status: 400, reason: 'BAD_REQUEST' });
});

test('bulk: NDJSON answers while the body is still being sent', async () => {
  const sent = httpRequest(`${server.http}/v1/live/records:bulk`, {
    method: 'POST',
    headers: ndjson,
  });
  const response = new Promise<NodeJS.ReadableStream>((resolve, reject) => {
    sent.on('response', resolve).on('error', reject);
  });
  sent.write('{"insert": {"data": {"n": 1}}}\n');
  const body = await response;
  const first = await new Promise<Buffer>((resolve) => body.once('data', resolve));
  expect(linesOf(first.toString())).toMatchObject([{ status: 'OK' }]);
  const line = `${JSON.stringify({ insert: { data: { text: 'x'.repeat(200) } } })}\n`;
  sent.end(line.repeat(5_000));
  let text = '';
  for await (const chunk of body) text += String(chunk);
  expect(linesOf(text)).toHaveLength(5_000);
  expect(await server.database.collection('live').count()).toBe(5_001);
});
