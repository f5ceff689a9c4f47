import { expect, test } from 'vitest';
import { freshName, plainRecord, recordOf, useServer } from './support/both.js';
import { fromStruct, toStruct } from './support/proto.js';

const both = useServer();
const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

test("records: gRPC and REST read each other's records", async () => {
  const people = freshName();
  const { rest, grpc } = both;
  const ada = recordOf(await rest.ok('POST', `/v1/${people}/records`, { data: { name: 'Ada' } }));
  expect(ada).toMatchObject({ key: '', rev: 1, data: { name: 'Ada' } });
  expect(ada['id']).toMatch(ulid);
  expect(ada['created_at']).toBe(ada['updated_at']);
  expect(ada).not.toHaveProperty('expires_at');
  const seen = await grpc.call('FindById', { collection: people, id: ada['id'] });
  expect(plainRecord(recordOf(seen))).toEqual(ada);

  const data = toStruct({ name: 'Bob', tags: [1, null, { deep: true }] });
  const bob = recordOf(await grpc.call('Insert', { collection: people, data }));
  expect(await rest.ok('GET', `/v1/${people}/records/${String(bob['id'])}`)).toEqual({
    record: plainRecord(bob),
  });
});

test('records: encoding JSON returns JSON bytes', async () => {
  const collection = freshName();
  const { grpc } = both;
  const request = {
    collection,
    key: 'k',
    data_json: Buffer.from('{"a":[1.5,"é",null]}'),
    encoding: 'DATA_ENCODING_JSON',
  };
  const record = recordOf(await grpc.call('InsertWithKey', request));
  expect(record['data']).toBeNull();
  expect(String(record['data_json'])).toBe('{"a":[1.5,"é",null]}');
  const read = await grpc.call('FindByKey', { collection, key: 'k', encoding: 2 });
  expect(String(recordOf(read)['data_json'])).toBe('{"a":[1.5,"é",null]}');
  const struct = await grpc.call('FindByKey', { collection, key: 'k' });
  expect(fromStruct(recordOf(struct)['data'])).toEqual({ a: [1.5, 'é', null] });
});

test('update: PUT replaces and PATCH merges, like mode', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const { id } = recordOf(
    await rest.ok('POST', `/v1/${collection}/records`, { data: { a: 1, b: { c: 1, d: 2 } } }),
  );
  const path = `/v1/${collection}/records/${String(id)}`;
  const merged = recordOf(await rest.ok('PATCH', path, { data: { b: { c: null, e: 3 } } }));
  expect(merged).toMatchObject({ rev: 2, data: { a: 1, b: { d: 2, e: 3 } } });
  const replaced = recordOf(await rest.ok('PUT', path, { data: { z: true } }));
  expect(replaced).toMatchObject({ rev: 3, data: { z: true } });
  const again = await grpc.call('Update', {
    collection,
    id,
    data: toStruct({ y: 1, z: null }),
    mode: 'UPDATE_MODE_MERGE',
  });
  expect(fromStruct(recordOf(again)['data'])).toEqual({ y: 1 });
  const over = await grpc.call('Update', { collection, id, data: toStruct({}) });
  expect(plainRecord(recordOf(over))).toMatchObject({ rev: 5, data: {} });
});

test('records: write, read, update and delete by key', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const keys = `/v1/${collection}/keys`;
  const inserted = recordOf(await rest.ok('POST', keys, { key: 'ada', data: { n: 1 } }));
  expect(inserted).toMatchObject({ key: 'ada', rev: 1 });
  expect(await rest.ok('GET', `${keys}/ada`)).toEqual({ record: inserted });
  expect(recordOf(await rest.ok('PATCH', `${keys}/ada`, { data: { m: 2 } }))).toMatchObject({
    data: { n: 1, m: 2 },
  });
  const merged = await grpc.call('UpdateByKey', {
    collection,
    key: 'ada',
    data: toStruct({ only: 1 }),
  });
  expect(fromStruct(recordOf(merged)['data'])).toEqual({ only: 1 });
  const gone = await rest.ok('DELETE', `${keys}/ada?return_record=true`);
  expect(gone).toMatchObject({ record: { key: 'ada', rev: 3, data: { only: 1 } } });
  expect(gone['seq']).toBeGreaterThan(Number(recordOf(gone)['seq']));
  expect((await grpc.refusal('FindByKey', { collection, key: 'ada' })).reason).toBe(
    'KEY_NOT_FOUND',
  );
});

test('delete: returns its commit and, on request, the record', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const { id } = recordOf(await rest.ok('POST', `/v1/${collection}/records`, { data: { n: 1 } }));
  const path = `/v1/${collection}/records/${String(id)}`;
  const answer = await rest.ok('DELETE', path);
  expect(Object.keys(answer)).toEqual(['seq']);
  const other = recordOf(await grpc.call('Insert', { collection, data: toStruct({ n: 2 }) }));
  const deleted = await grpc.call('Delete', { collection, id: other['id'], return_record: true });
  expect(fromStruct(recordOf(deleted)['data'])).toEqual({ n: 2 });
  expect((await rest.refusal('GET', path)).reason).toBe('RECORD_NOT_FOUND');
});

test('upsert: reports whether it created the record', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const path = `/v1/${collection}/keys/x:upsert`;
  expect(await rest.ok('POST', path, { data: { a: 1 } })).toMatchObject({ created: true });
  expect(await rest.ok('POST', path, { data: { b: 2 }, mode: 'MERGE' })).toMatchObject({
    created: false,
    record: { data: { a: 1, b: 2 }, rev: 2 },
  });
  const replaced = await grpc.call('Upsert', { collection, key: 'x', data: toStruct({ c: 3 }) });
  expect(replaced['created']).toBe(false);
  expect(fromStruct(recordOf(replaced)['data'])).toEqual({ c: 3 });
});

test('updateIfRev: changes only the given revision; 0 means new', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const path = `/v1/${collection}/keys/x:updateIfRev`;
  const made = recordOf(await rest.ok('POST', path, { expected_rev: 0, data: { n: 1 } }));
  expect(made).toMatchObject({ rev: 1, key: 'x' });
  const byId = `/v1/${collection}/records/${String(made['id'])}:updateIfRev`;
  expect(recordOf(await rest.ok('POST', byId, { expectedRev: 1, data: { n: 2 } }))).toMatchObject({
    rev: 2,
  });
  const refused = await rest.refusal('POST', path, { expected_rev: 1, data: {} });
  expect(refused).toMatchObject({ status: 409, code: 10, reason: 'REV_MISMATCH' });
  expect(refused.metadata).toEqual({ current_rev: '2' });
  const request = { collection, key: 'x', expected_rev: 2, data: toStruct({ n: 3 }) };
  expect(recordOf(await grpc.call('UpdateIfRev', request))['rev']).toBe(3);
  expect(await grpc.refusal('UpdateIfRev', request)).toMatchObject({
    code: 'ABORTED',
    metadata: { current_rev: '3' },
  });
});

test('keys: any characters work when percent-encoded', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const keys = ['a:b', 'a/b', 'x:upsert', 'é ü', '100%', 'a?b#c', '%3A'];
  for (const key of keys) {
    const path = `/v1/${collection}/keys/${encodeURIComponent(key)}`;
    const made = await rest.ok('POST', `${path}:upsert`, { data: { key } });
    expect(recordOf(made)['key']).toBe(key);
    expect(recordOf(await rest.ok('GET', path))['data']).toEqual({ key });
    const seen = await grpc.call('FindByKey', { collection, key });
    expect(recordOf(seen)['key']).toBe(key);
  }
});

test('keys: an unencoded ":" starts a verb, and the error says so', async () => {
  const refused = await both.rest.refusal('GET', `/v1/${freshName()}/keys/user:1`);
  expect(refused).toMatchObject({ status: 404, reason: 'NO_SUCH_ROUTE' });
  expect(refused.message).toContain('%3A');
});

test('ttl: a record shows expires_at and then expires', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const path = `/v1/${collection}/keys/t`;
  const made = recordOf(await rest.ok('POST', `${path}:upsert`, { data: {}, ttl: '0.150s' }));
  const livesMs = Date.parse(String(made['expires_at'])) - Date.parse(String(made['created_at']));
  expect(livesMs).toBe(150);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect((await rest.refusal('GET', path)).status).toBe(404);
  const unexpired = await grpc.call('Upsert', {
    collection,
    key: 'k',
    data: toStruct({}),
    ttl: { seconds: 3, nanos: 500_000_000 },
  });
  expect(recordOf(unexpired)['expires_at']).not.toBeNull();
  const forever = recordOf(
    await rest.ok('PUT', `/v1/${collection}/keys/k`, { data: {}, ttl: '0s' }),
  );
  expect(forever).not.toHaveProperty('expires_at');
});

test('fields: return only the given paths', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const data = { a: { b: 1, c: 2 }, d: [{ e: 1, f: 2 }], g: 3 };
  await rest.ok('POST', `/v1/${collection}/keys/x:upsert`, { data });
  const wanted = { a: { b: 1 }, d: [{ e: 1 }] };
  const path = `/v1/${collection}/keys/x`;
  expect(recordOf(await rest.ok('GET', `${path}?fields=a.b&fields=d.e`))['data']).toEqual(wanted);
  expect(recordOf(await rest.ok('GET', `${path}?fields=a.b,d.e`))['data']).toEqual(wanted);
  const read = await grpc.call('FindByKey', { collection, key: 'x', fields: ['a.b', 'd.e'] });
  expect(fromStruct(recordOf(read)['data'])).toEqual(wanted);
});

test('request_id: a repeated write is applied once', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const body = { data: { n: 1 }, request_id: `once-${collection}` };
  const first = await rest.ok('POST', `/v1/${collection}/records`, body);
  expect(await rest.ok('POST', `/v1/${collection}/records`, body)).toEqual(first);
  const overGrpc = await grpc.call('Insert', {
    collection,
    data: toStruct({ n: 1 }),
    request_id: `once-${collection}`,
  });
  expect(recordOf(overGrpc)['id']).toBe(recordOf(first)['id']);
  const other = { ...body, data: { n: 2 } };
  expect(await rest.refusal('POST', `/v1/${collection}/records`, other)).toMatchObject({
    status: 400,
    reason: 'REQUEST_ID_REUSED',
  });
  const count = await rest.ok('POST', `/v1/${collection}/records:find`, { count_only: true });
  expect(count).toMatchObject({ count: 1, records: [] });
});

test('insert: accepts a ULID as id', async () => {
  const collection = freshName();
  const id = '01JCZ8Q4V7W3S1N6K2M5T9X0AB';
  const { rest, grpc } = both;
  expect(recordOf(await rest.ok('POST', `/v1/${collection}/records`, { data: {}, id }))['id']).toBe(
    id,
  );
  const again = await grpc.refusal('Insert', { collection, id, data: toStruct({}) });
  expect(again).toMatchObject({ code: 'ALREADY_EXISTS', reason: 'DUPLICATE_ID' });
  const bad = await rest.refusal('POST', `/v1/${collection}/records`, { data: {}, id: 'mine' });
  expect(bad).toMatchObject({ status: 400, reason: 'BAD_ID' });
});

test('min_seq: waits for the commit or refuses REPLICA_BEHIND', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const made = recordOf(await rest.ok('POST', `/v1/${collection}/keys`, { key: 'k', data: {} }));
  const seq = Number(made['seq']);
  expect(await rest.ok('GET', `/v1/${collection}/keys/k?min_seq=${seq}`)).toEqual({ record: made });
  const late = await grpc.refusal(
    'FindByKey',
    { collection, key: 'k', min_seq: seq + 1_000 },
    { timeoutMs: 5_000 },
  );
  expect(late).toMatchObject({ code: 'UNAVAILABLE', reason: 'REPLICA_BEHIND' });
  expect(late.metadata).toMatchObject({ min_seq: String(seq + 1_000) });
  const waiting = grpc.call('FindByKey', { collection, key: 'k', min_seq: seq + 1 });
  await rest.ok('POST', `/v1/${collection}/records`, { data: {} });
  expect(recordOf(await waiting)['key']).toBe('k');
});

test('deadline: REST accepts Grpc-Timeout', async () => {
  const collection = freshName();
  const path = `/v1/${collection}/records/01JCZ8Q4V7W3S1N6K2M5T9X0AB?min_seq=99999999`;
  const behind = await both.rest.refusal('GET', path, undefined, { 'grpc-timeout': '5S' });
  expect(behind).toMatchObject({ status: 503, reason: 'REPLICA_BEHIND' });
  expect(behind.headers.get('retry-after')).toBe('1');
  const nonsense = await both.rest.refusal('GET', path, undefined, { 'grpc-timeout': 'soon' });
  expect(nonsense).toMatchObject({ status: 400, reason: 'BAD_REQUEST' });
});
