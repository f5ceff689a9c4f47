import { expect, test } from 'vitest';
import { freshName, plainRecord, recordOf, timeText, useServer } from './support/both.js';
import { toStruct } from './support/proto.js';

const both = useServer();
const begin = (body?: object) => both.rest.ok('POST', '/v1/tx:begin', body);
const commit = (txId: unknown) => both.rest.ok('POST', `/v1/tx/${String(txId)}:commit`);

test('transaction: spans gRPC and REST and is visible after the commit', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const { tx_id: txId, read_seq: readSeq, expires_at: expiresAt } = await begin();
  expect(Date.parse(String(expiresAt)) - Date.now()).toBeGreaterThan(50_000);
  const insert = { collection, key: 'a', data: toStruct({ n: 1 }), tx_id: txId };
  const inserted = recordOf(await grpc.call('InsertWithKey', insert));
  expect(inserted).toMatchObject({ rev: 1, seq: 0 });
  const path = `/v1/${collection}/keys/a`;
  const patched = await rest.ok('PATCH', path, { data: { m: 2 }, tx_id: txId });
  expect(recordOf(patched)).toMatchObject({ data: { n: 1, m: 2 }, seq: 0 });
  expect(recordOf(await rest.ok('GET', `${path}?tx_id=${String(txId)}`))).toMatchObject({
    data: { n: 1, m: 2 },
    seq: 0,
  });
  expect((await rest.refusal('GET', path)).status).toBe(404);
  const done = await commit(txId);
  expect(done).toMatchObject({ seq: Number(readSeq) + 1, operations: 2 });
  expect(recordOf(await rest.ok('GET', path))).toMatchObject({ seq: done['seq'], rev: 1 });
});

test('transaction: a repeated commit returns the same result', async () => {
  const collection = freshName();
  const { grpc } = both;
  const { tx_id: txId } = await grpc.call('BeginTx');
  await grpc.call('Insert', { collection, data: toStruct({}), tx_id: txId });
  const first = await grpc.call('CommitTx', { tx_id: txId });
  expect(await grpc.call('CommitTx', { tx_id: txId })).toEqual(first);
  const overRest = await commit(txId);
  expect(overRest).toEqual({
    seq: first['seq'],
    operations: 1,
    committed_at: timeText(first['committed_at']),
  });
  const closed = await grpc.refusal('Insert', { collection, data: toStruct({}), tx_id: txId });
  expect(closed).toMatchObject({ code: 'FAILED_PRECONDITION', reason: 'TX_CLOSED' });
});

test('transaction: a changed read is a conflict', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const path = `/v1/${collection}/keys/a`;
  await rest.ok('POST', `${path}:upsert`, { data: { n: 1 } });
  const { tx_id: txId } = await begin();
  await rest.ok('GET', `${path}?tx_id=${String(txId)}`);
  await rest.ok('POST', `/v1/${collection}/keys/b:upsert`, { data: {}, tx_id: txId });
  await rest.ok('PATCH', path, { data: { n: 2 } });
  const conflict = { status: 409, code: 10, reason: 'TX_CONFLICT', metadata: { tx_id: txId } };
  expect(await rest.refusal('POST', `/v1/tx/${String(txId)}:commit`)).toMatchObject(conflict);
  expect((await grpc.refusal('CommitTx', { tx_id: txId })).code).toBe('ABORTED');
  expect((await rest.refusal('GET', `/v1/${collection}/keys/b`)).reason).toBe('KEY_NOT_FOUND');
});

test('transaction: a changed query result is a conflict', async () => {
  const collection = freshName();
  const { rest } = both;
  const filter = { field: 'age', op: 'gt', value: 18 };
  const { tx_id: txId } = await begin();
  const find = { filter, tx_id: txId };
  expect((await rest.ok('POST', `/v1/${collection}/records:find`, find))['records']).toEqual([]);
  await rest.ok('POST', `/v1/${collection}/records`, { data: { none: true }, tx_id: txId });
  await rest.ok('POST', `/v1/${collection}/records`, { data: { age: 20 } });
  expect((await rest.refusal('POST', `/v1/tx/${String(txId)}:commit`)).reason).toBe('TX_CONFLICT');
});

test('transaction: survives a failed operation; rollback discards all writes', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const { tx_id: txId } = await grpc.call('BeginTx');
  const insert = { collection, key: 'a', data: toStruct({}), tx_id: txId };
  await grpc.call('InsertWithKey', insert);
  expect((await grpc.refusal('InsertWithKey', insert)).reason).toBe('DUPLICATE_KEY');
  await grpc.call('InsertWithKey', { ...insert, key: 'b' });
  const removed = await grpc.call('DeleteByKey', { collection, key: 'b', tx_id: txId });
  expect(removed['seq']).toBe(0);
  expect(await rest.ok('POST', `/v1/tx/${String(txId)}:rollback`, {})).toEqual({});
  expect((await rest.refusal('GET', `/v1/${collection}/keys/a`)).status).toBe(404);
  expect((await grpc.refusal('CommitTx', { tx_id: txId })).reason).toBe('TX_CLOSED');
});

test('transaction: read-only reads one snapshot and refuses writes', async () => {
  const collection = freshName();
  const { rest } = both;
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'a', data: { n: 1 } });
  const { tx_id: txId } = await begin({ readOnly: true });
  await rest.ok('PUT', `/v1/${collection}/keys/a`, { data: { n: 2 } });
  const path = `/v1/${collection}/keys/a?tx_id=${String(txId)}`;
  expect(recordOf(await rest.ok('GET', path))['data']).toEqual({ n: 1 });
  const refused = await rest.refusal('POST', `/v1/${collection}/records`, {
    data: {},
    tx_id: txId,
  });
  expect(refused).toMatchObject({ status: 400, code: 9, reason: 'TX_READ_ONLY' });
  expect(await commit(txId)).toMatchObject({ operations: 0 });
});

test('transaction: an expired transaction is ABORTED', async () => {
  const { rest, grpc } = both;
  const { tx_id: txId } = await begin({ timeout: '0.050s' });
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(await rest.refusal('POST', `/v1/tx/${String(txId)}:commit`)).toMatchObject({
    status: 409,
    reason: 'TX_EXPIRED',
  });
  const late = await grpc.refusal('FindByKey', { collection: 'c', key: 'k', tx_id: txId });
  expect(late).toMatchObject({ code: 'ABORTED', reason: 'TX_EXPIRED' });
});

test('transaction: BeginTx with a request_id begins once', async () => {
  const body = { request_id: freshName(), read_only: true };
  const first = await begin(body);
  expect(await begin(body)).toEqual(first);
  const other = await both.rest.refusal('POST', '/v1/tx:begin', { ...body, read_only: false });
  expect(other).toMatchObject({ status: 400, reason: 'REQUEST_ID_REUSED' });
  const long = await both.rest.refusal('POST', '/v1/tx:begin', { request_id: 'x'.repeat(129) });
  expect(long.reason).toBe('BAD_REQUEST');
});

test('transaction: at most a thousand operations', async () => {
  const collection = freshName();
  const { database } = both.server;
  const { tx_id: txId } = await begin();
  const transaction = database.transactions.use(String(txId));
  for (let n = 0; n < 1_000; n++) await database.writes.insert(collection, { n }, { transaction });
  const refused = await both.rest.refusal('POST', `/v1/${collection}/records`, {
    data: {},
    tx_id: txId,
  });
  expect(refused).toMatchObject({ status: 429, code: 8, reason: 'TX_LIMIT' });
  expect(await commit(txId)).toMatchObject({ operations: 1_000 });
});

test('transaction: limits the number of open transactions', async () => {
  const { rest, server } = both;
  const { transactions } = server.database;
  const begun = [];
  while (transactions.size < 256) begun.push(transactions.begin({ readOnly: true }));
  expect(await rest.refusal('POST', '/v1/tx:begin')).toMatchObject({ reason: 'TX_LIMIT' });
  for (const transaction of begun) transaction.rollback();
  expect(await begin()).toHaveProperty('tx_id');
});

test('transaction: min_seq beyond its snapshot is refused', async () => {
  const collection = freshName();
  const { rest } = both;
  const made = recordOf(await rest.ok('POST', `/v1/${collection}/keys`, { key: 'a', data: {} }));
  const { tx_id: txId, read_seq: readSeq } = await begin({ min_seq: made['seq'] });
  expect(Number(readSeq)).toBeGreaterThanOrEqual(Number(made['seq']));
  const path = `/v1/${collection}/keys/a?tx_id=${String(txId)}`;
  expect(await rest.ok('GET', `${path}&min_seq=${Number(readSeq)}`)).toHaveProperty('record');
  expect((await rest.refusal('GET', `${path}&min_seq=${Number(readSeq) + 1}`)).reason).toBe(
    'REPLICA_BEHIND',
  );
});

test('transaction: its own writes have no seq', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const made = recordOf(await rest.ok('POST', `/v1/${collection}/keys`, { key: 'a', data: {} }));
  const { tx_id: txId } = await begin();
  const read = () => grpc.call('FindByKey', { collection, key: 'a', tx_id: txId });
  expect(plainRecord(recordOf(await read()))).toEqual(made);
  await rest.ok('PUT', `/v1/${collection}/keys/a`, { data: { n: 1 }, tx_id: txId });
  expect(recordOf(await read())).toMatchObject({ rev: 2, seq: 0 });
});
