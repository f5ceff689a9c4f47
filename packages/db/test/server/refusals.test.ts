import { dbReasons, grpcCodes, type DbReason } from '@millrace/contract/db';
import { expect, test } from 'vitest';
import { freshName, recordOf, useServer } from './support/both.js';
import { toFilter, toStruct, type Message } from './support/proto.js';

const both = useServer({
  collections: '{unique: {indexes: [{fields: [email], unique: true}, {fields: [age]}]}}',
});
const noSuchId = '01JCZ8Q4V7W3S1N6K2M5T9X0AB';

interface Case {
  reason: DbReason;
  grpc?: [method: string, request: Message];
  rest?: [method: string, path: string, body?: unknown];
  /** Metadata keys in addition to those of the contract. */
  says?: RegExp;
}

const tooDeep = (levels: number): unknown => (levels === 0 ? 1 : { a: tooDeep(levels - 1) });
const large = 'x'.repeat(2 * 1024 * 1024);
const data = toStruct({});

const cases: Case[] = [
  {
    reason: 'BAD_REQUEST',
    grpc: ['UpdateIfRev', { collection: 'c', data, expected_rev: 1 }],
    rest: ['POST', '/v1/c/records', { data: {}, dat: {} }],
    says: /key|dat /,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['UpdateIfRev', { collection: 'c', key: 'k', id: noSuchId, data }],
    rest: ['POST', '/v1/c/records', '{"data":'],
    says: /not both|not valid JSON/,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['Insert', { collection: 'c', data, encoding: 7 }],
    rest: ['PUT', `/v1/c/records/${noSuchId}`, { data: {}, mode: 'MERGE' }],
    says: /encoding|contradicts PUT/,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['Insert', { collection: 'c', data, data_json: Buffer.from('{}') }],
    rest: ['PATCH', '/v1/c/keys/k', { data: {}, mode: 'UPDATE_MODE_REPLACE' }],
    says: /not both|contradicts PATCH/,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['Insert', { collection: 'c', data, ttl: { seconds: -1, nanos: 0 } }],
    rest: ['POST', '/v1/c/records', { data: {}, ttl: 5 }],
    says: /ttl/,
  },
  {
    reason: 'BAD_REQUEST',
    rest: ['POST', '/v1/c/records:find', { limit: -1 }],
    says: /limit/,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['Find', { collection: 'c', order_by: [{ field: '' }] }],
    rest: ['POST', '/v1/c/records:find', { order_by: [{ field: 'a', descending: true }] }],
    says: /order/i,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['Aggregate', { collection: 'c', aggregates: [{ name: 'n', op: 'median', field: 'a' }] }],
    rest: ['POST', '/v1/c/records:aggregate', { aggregates: [{ name: 'n', op: 'median' }] }],
    says: /median/,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['Watch', { collection: 'c', heartbeat: { seconds: 0, nanos: 0 } }],
    rest: ['GET', '/v1/c/records:watch?include_initial=maybe'],
    says: /heartbeat|include_initial/,
  },
  {
    reason: 'BAD_REQUEST',
    grpc: ['Backup', { since_seq: 999_999 }],
    rest: ['POST', '/v1/admin:backup', { since_seq: 999_999 }],
    says: /since_seq/,
  },
  {
    reason: 'BAD_COLLECTION',
    grpc: ['Insert', { collection: '1st', data }],
    rest: ['POST', '/v1/1st/records', { data: {} }],
  },
  {
    reason: 'BAD_COLLECTION',
    grpc: ['FindByKey', { collection: '', key: 'k' }],
    rest: ['GET', '/v1/a%20b/keys/k'],
  },
  {
    reason: 'BAD_COLLECTION',
    grpc: ['Find', { collection: 'a/b' }],
    rest: ['POST', `/v1/${'x'.repeat(65)}/records:find`, {}],
  },
  {
    reason: 'BAD_COLLECTION',
    grpc: ['Watch', { collection: '_x' }],
    rest: ['GET', '/v1/_x/records:watch'],
  },
  {
    reason: 'BAD_KEY',
    grpc: ['Upsert', { collection: 'c', key: '', data }],
    rest: ['POST', '/v1/c/keys', { data: {} }],
  },
  {
    reason: 'BAD_KEY',
    grpc: ['FindByKey', { collection: 'c', key: 'é'.repeat(513) }],
    rest: ['GET', `/v1/c/keys/${encodeURIComponent('é'.repeat(513))}`],
  },
  {
    reason: 'BAD_KEY',
    grpc: ['DeleteByKey', { collection: 'c', key: 'a\0b' }],
    rest: ['DELETE', '/v1/c/keys/a%00b'],
  },
  {
    reason: 'BAD_ID',
    grpc: ['Insert', { collection: 'c', id: 'mine', data }],
    rest: ['POST', '/v1/c/records', { data: {}, id: 'mine' }],
  },
  {
    reason: 'BAD_DATA',
    grpc: ['Insert', { collection: 'c' }],
    rest: ['POST', '/v1/c/records', {}],
    says: /missing/,
  },
  {
    reason: 'BAD_DATA',
    grpc: ['Insert', { collection: 'c', data_json: Buffer.from('[1]') }],
    rest: ['POST', '/v1/c/records', { data: [1] }],
  },
  {
    reason: 'BAD_DATA',
    grpc: ['Insert', { collection: 'c', data_json: Buffer.from('{"a":') }],
    rest: ['PUT', '/v1/c/keys/k', { data: null }],
  },
  {
    reason: 'BAD_DATA',
    grpc: ['Insert', { collection: 'c', data: toStruct(tooDeep(33) as object) }],
    rest: ['POST', '/v1/c/records', { data: tooDeep(33) }],
    says: /32/,
  },
  {
    reason: 'BAD_DATA',
    grpc: ['Insert', { collection: 'c', data: toStruct({ n: Number.NaN }) }],
    rest: ['POST', '/v1/c/records', '{"data":{"__proto__":{"a":1}}}'],
  },
  {
    reason: 'RECORD_TOO_LARGE',
    grpc: ['Insert', { collection: 'c', data: toStruct({ large }) }],
    rest: ['POST', '/v1/c/records', { data: { large } }],
  },
  {
    reason: 'BAD_FILTER',
    grpc: ['Find', { collection: 'c', filter: { field: 'a', op: 'like' } }],
    rest: ['POST', '/v1/c/records:find', { filter: { field: 'a', op: 'like', value: 1 } }],
    says: /like/,
  },
  {
    reason: 'BAD_FILTER',
    grpc: ['Watch', { collection: 'c', filter: toFilter({ field: 'a', op: 'regex', value: '(' }) }],
    rest: ['GET', `/v1/c/records:watch?filter=${encodeURIComponent('{"field":"a","op":"in"}')}`],
  },
  {
    reason: 'BAD_FILTER',
    grpc: ['Aggregate', { collection: 'c', filter: toFilter({ field: 'a', op: 'in', value: 1 }) }],
    rest: ['POST', '/v1/c/records:aggregate', { filter: { feild: 'a', op: 'eq', value: 1 } }],
    says: /list|feild/,
  },
  {
    reason: 'BAD_CURSOR',
    grpc: ['Find', { collection: 'c', cursor: 'nonsense' }],
    rest: ['POST', '/v1/c/records:find', { cursor: 'nonsense' }],
  },
  {
    reason: 'BAD_RESUME_TOKEN',
    grpc: ['Watch', { collection: 'c', resume_token: 'nonsense' }],
    rest: ['GET', '/v1/c/records:watch?resume_token=nonsense'],
  },
  {
    reason: 'RECORD_NOT_FOUND',
    grpc: ['FindById', { collection: 'c', id: noSuchId }],
    rest: ['GET', `/v1/c/records/${noSuchId}`],
  },
  {
    reason: 'RECORD_NOT_FOUND',
    grpc: ['Delete', { collection: 'c', id: 'not-an-id' }],
    rest: ['PUT', '/v1/c/records/not-an-id', { data: {} }],
  },
  {
    reason: 'KEY_NOT_FOUND',
    grpc: ['UpdateByKey', { collection: 'c', key: 'nobody', data }],
    rest: ['DELETE', '/v1/c/keys/nobody'],
  },
  {
    reason: 'KEY_NOT_FOUND',
    grpc: ['UpdateIfRev', { collection: 'c', key: 'nobody', expected_rev: 1, data }],
    rest: ['POST', '/v1/c/keys/nobody:updateIfRev', { expected_rev: 1, data: {} }],
  },
  {
    reason: 'INDEX_REQUIRED',
    grpc: [
      'Find',
      {
        collection: 'unique',
        filter: toFilter({ field: 'x', op: 'eq', value: 1 }),
        allow_full_scan: false,
      },
    ],
    rest: [
      'POST',
      '/v1/unique/records:find',
      { filter: { field: 'x', op: 'eq', value: 1 }, allow_full_scan: false },
    ],
  },
  {
    reason: 'TX_NOT_FOUND',
    grpc: ['Insert', { collection: 'c', data, tx_id: noSuchId }],
    rest: ['POST', `/v1/tx/${noSuchId}:commit`],
  },
  {
    reason: 'TX_NOT_FOUND',
    grpc: ['RollbackTx', { tx_id: '' }],
    rest: ['GET', `/v1/c/keys/k?tx_id=${noSuchId}`],
  },
  { reason: 'NO_SUCH_ROUTE', rest: ['GET', '/v2/people'] },
  { reason: 'NO_SUCH_ROUTE', rest: ['GET', '/v1/people/records/'] },
  { reason: 'NO_SUCH_ROUTE', rest: ['POST', '/v1/people/records:count', {}] },
  { reason: 'NO_SUCH_METHOD', rest: ['DELETE', '/v1/people/records'] },
  { reason: 'NO_SUCH_METHOD', rest: ['GET', '/v1/people/records:find'] },
  { reason: 'NO_SUCH_METHOD', rest: ['POST', '/healthz'] },
];

const named = (api: 'grpc' | 'rest') =>
  cases
    .filter((each) => each[api])
    .map(
      (each) =>
        [each.reason, each[api]![0], JSON.stringify(each[api]![1]).slice(0, 70), each] as const,
    );

test.each(named('grpc'))('gRPC refuses %s: %s %s', async (reason, _method, _request, each) => {
  const failure = await both.grpc.refusal(...each.grpc!);
  const { code, metadata = [] } = dbReasons[reason] as { code: string; metadata?: string[] };
  expect(failure).toMatchObject({ code, reason, domain: 'millrace.db' });
  expect(Object.keys(failure.metadata)).toEqual(expect.arrayContaining([...metadata]));
  if (each.says) expect(failure.message).toMatch(each.says);
});

test.each(named('rest'))('REST refuses %s: %s %s', async (reason, _method, _path, each) => {
  const failure = await both.rest.refusal(...each.rest!);
  const {
    code,
    status,
    metadata = [],
  } = dbReasons[reason] as {
    code: keyof typeof grpcCodes;
    status: number;
    metadata?: string[];
  };
  expect(failure).toMatchObject({ status, code: grpcCodes[code], reason });
  expect(failure.details[0]).toMatchObject({
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    domain: 'millrace.db',
  });
  expect(Object.keys(failure.metadata)).toEqual(expect.arrayContaining([...metadata]));
  if (each.says) expect(failure.message).toMatch(each.says);
});

test('refusals: duplicate keys and unique values are ALREADY_EXISTS', async () => {
  const { rest, grpc } = both;
  const collection = freshName();
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'k', data: {} });
  expect(
    await rest.refusal('POST', `/v1/${collection}/keys`, { key: 'k', data: {} }),
  ).toMatchObject({
    status: 409,
    code: 6,
    reason: 'DUPLICATE_KEY',
    metadata: { collection, key: 'k' },
  });
  expect(await grpc.refusal('InsertWithKey', { collection, key: 'k', data })).toMatchObject({
    code: 'ALREADY_EXISTS',
    reason: 'DUPLICATE_KEY',
  });
  const body = { data: { email: 'ada@example.com' } };
  await rest.ok('POST', '/v1/unique/records', body);
  expect(await rest.refusal('POST', '/v1/unique/records', body)).toMatchObject({
    status: 409,
    reason: 'UNIQUE_VIOLATION',
    metadata: { collection: 'unique' },
  });
  const request = { collection: 'unique', data: toStruct(body.data) };
  expect(await grpc.refusal('Insert', request)).toMatchObject({
    code: 'ALREADY_EXISTS',
    reason: 'UNIQUE_VIOLATION',
  });
});

test('refusals: a BadRequest detail names the field, on gRPC and REST', async () => {
  const rest = await both.rest.refusal('POST', '/v1/c/records:find', { limit: 'many' });
  expect(rest.details[1]).toEqual({
    '@type': 'type.googleapis.com/google.rpc.BadRequest',
    field_violations: [
      { field: 'limit', description: expect.stringContaining('whole number') as string },
    ],
  });
  const grpc = await both.grpc.refusal('UpdateIfRev', { collection: 'c', data });
  expect(grpc.details[1]).toMatchObject({
    '@type': 'type.googleapis.com/google.rpc.BadRequest',
    field_violations: [{ field: 'key' }],
  });
});

test('refusals: an unknown field is named with a suggestion', async () => {
  const { rest } = both;
  const refused = await rest.refusal('POST', '/v1/c/records:find', { fliter: {} });
  expect(refused.message).toBe('fliter is not known here; did you mean "filter"?');
  const grpcOnly = await rest.refusal('POST', '/v1/c/records', { data_json: 'e30=' });
  expect(grpcOnly.message).toContain('data_json is supported on gRPC only');
  const query = await rest.refusal('GET', '/v1/c/keys/k?feilds=a');
  expect(query.message).toContain('feilds');
  const inQuery = await rest.refusal('POST', '/v1/c/records:find?limit=5', {});
  expect(inQuery.message).toContain('send it in the body');
  const twice = await rest.refusal('POST', '/v1/c/records', { data: {}, tx_id: 'a', txId: 'b' });
  expect(twice.message).toContain('twice');
});

test('refusals: 405 lists the allowed methods', async () => {
  const { rest } = both;
  const refused = await rest.refusal('DELETE', '/v1/people/records');
  expect(refused.status).toBe(405);
  expect(refused.headers.get('allow')).toBe('POST');
  expect(refused.message).toContain('Use POST');
  const ofKey = await rest.refusal('POST', '/v1/people/keys/k', {});
  expect(ofKey.headers.get('allow')).toBe('DELETE, GET, HEAD, PATCH, PUT');
});

test('HEAD: like GET without the body, except for streams', async () => {
  const { rest } = both;
  const collection = freshName();
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'k', data: {} });
  const path = `/v1/${collection}/keys/k`;
  const [get, head] = [await rest.send('GET', path), await rest.send('HEAD', path)];
  expect([head.status, head.text]).toEqual([200, '']);
  for (const name of ['content-type', 'content-length']) {
    expect(head.headers.get(name)).toBe(get.headers.get(name));
  }
  expect((await rest.send('HEAD', `${path}2`)).status).toBe(404);
  const watch = await rest.send('HEAD', `/v1/${collection}/records:watch`);
  expect([watch.status, watch.headers.get('allow')]).toEqual([405, 'GET, POST']);
});

test('refusals: a GET or DELETE with a body is refused', async () => {
  const { rest } = both;
  const collection = freshName();
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'k', data: {} });
  const path = `/v1/${collection}/keys/k`;
  expect((await rest.refusal('DELETE', path, { return_record: true })).message).toContain('query');
  expect(recordOf(await rest.ok('DELETE', `${path}?returnRecord=1`, {}))['key']).toBe('k');
});

test('refusals: an unknown method is UNIMPLEMENTED', async () => {
  const { Client, credentials } = await import('@grpc/grpc-js');
  const client = new Client(both.server.grpc, credentials.createInsecure());
  const code = await new Promise((resolve) => {
    const asIs = (bytes: Buffer) => bytes;
    const path = '/millrace.db.v1.Database/Truncate';
    client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), (error) => resolve(error?.code));
  });
  client.close();
  expect(code).toBe(grpcCodes.UNIMPLEMENTED);
});
