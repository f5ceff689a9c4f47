import { expect, test } from 'vitest';
import { useServer } from './support/both.js';
import type { Message } from './support/proto.js';

// Every query that lasts a millisecond counts as slow.
const both = useServer({
  'slow-query-ms': '1',
  collections: '{declared: {indexes: [{fields: [n]}]}}',
});
const base = '/v1/admin/collections';

test('catalog: REST creates and drops indexes', async () => {
  const { rest } = both;
  await rest.ok('POST', '/v1/cats/keys', { key: 'tom', data: { lives: 9 } });
  const created = await rest.ok('POST', `${base}/cats/indexes`, { fields: ['lives'] });
  expect(created).toMatchObject({
    index: { name: 'lives', fields: ['lives'], unique: false, sparse: false },
    seq: expect.any(Number),
  });
  expect(await rest.ok('POST', `${base}/cats/indexes`, { fields: ['lives'] })).toMatchObject({
    seq: 0,
  });
  expect(await rest.ok('DELETE', `${base}/cats/indexes/lives`)).toEqual({
    seq: (created['seq'] as number) + 1,
  });
  expect(await rest.refusal('DELETE', `${base}/cats/indexes/lives`)).toMatchObject({
    status: 404,
    reason: 'INDEX_NOT_FOUND',
  });
  expect(await rest.refusal('DELETE', `${base}/declared/indexes/n`)).toMatchObject({
    status: 400,
    reason: 'DECLARED_IN_SETTINGS',
  });
  expect(await rest.refusal('POST', `${base}/cats/indexes`, { fields: [] })).toMatchObject({
    reason: 'BAD_REQUEST',
  });
});

test('catalog: REST renames and drops collections', async () => {
  const { rest } = both;
  await rest.ok('POST', '/v1/dogs/keys', { key: 'rex', data: {} });
  const renamed = await rest.ok('POST', `${base}/dogs:rename`, { new_name: 'hounds' });
  expect(renamed).toMatchObject({ moved: 1 });
  expect(await rest.ok('GET', '/v1/hounds/keys/rex')).toMatchObject({ record: { rev: 1 } });
  expect(await rest.refusal('POST', `${base}/dogs:rename`, { new_name: 'x' })).toMatchObject({
    status: 404,
    reason: 'COLLECTION_NOT_FOUND',
  });
  const taken = await rest.refusal('POST', `${base}/hounds:rename`, { new_name: 'cats' });
  expect(taken).toMatchObject({ status: 409, reason: 'COLLECTION_EXISTS' });
  expect(await rest.ok('DELETE', `${base}/hounds`)).toMatchObject({ deleted: 1 });
  const status = await rest.ok('GET', '/v1/admin/replication?include_collections=true');
  const names = (status['collections'] as Message[]).map(({ name }) => name);
  expect(names).toEqual(['cats', 'declared']);
  expect(await rest.refusal('DELETE', `${base}/declared`)).toMatchObject({
    reason: 'DECLARED_IN_SETTINGS',
  });
});

test('catalog: slow queries lead to advice until the index is there', async () => {
  const { rest, grpc } = both;
  const operations = Array.from({ length: 5_000 }, (_, n) => ({
    insert: { data: { city: `c${n % 50}`, age: n, pad: 'x'.repeat(100) } },
  }));
  await rest.ok('POST', '/v1/people/records:bulk', { operations });
  const filter = { field: 'city', op: 'eq', value: 'c7' };
  const query = { filter, order_by: [{ field: 'age' }] };
  const find = () => rest.ok('POST', '/v1/people/records:find', query);
  await expect
    .poll(async () => {
      await find();
      const { advice } = (await rest.ok('GET', '/v1/admin/index-advice')) as { advice: Message[] };
      return advice;
    })
    .toMatchObject([
      {
        collection: 'people',
        fields: ['city', 'age'],
        query_count: expect.any(Number),
        filter: 'city eq, order by age',
        last_at: expect.any(String),
      },
    ]);
  const { index } = await grpc.call('CreateIndex', {
    collection: 'people',
    fields: ['city', 'age'],
  });
  expect(index).toMatchObject({ name: 'city,age' });
  expect(await rest.ok('GET', '/v1/admin/index-advice')).toEqual({ advice: [] });
});
