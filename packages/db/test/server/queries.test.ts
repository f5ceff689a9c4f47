import { beforeAll, expect, test } from 'vitest';
import { freshName, plainRecord, useServer } from './support/both.js';
import { fromStruct, toFilter, toStruct, type Message } from './support/proto.js';

const both = useServer({
  collections: '{people: {indexes: [{fields: [age]}, {fields: [city, age]}]}}',
  slow_query_ms: '0',
});
const total = 700;

beforeAll(async () => {
  const { writes } = both.server.database;
  const cities = ['Oslo', 'Rome', 'Bern'];
  await Promise.all(
    Array.from({ length: total }, (_, n) =>
      writes.insert('people', { n, age: n % 50, city: cities[n % 3], name: `p${n}` }),
    ),
  );
});

const adults = { field: 'age', op: 'gte', value: 48 };

test('find: a REST page has 100 records by default', async () => {
  const { rest } = both;
  const found = await rest.ok('POST', '/v1/people/records:find', { filter: adults });
  expect(found['records']).toHaveLength(28);
  expect(found).toMatchObject({ next_cursor: '', read_seq: total });
  const all = await rest.ok('POST', '/v1/people/records:find');
  expect(all['records']).toHaveLength(100);
  expect(all['next_cursor']).not.toBe('');
  const many = await rest.ok('POST', '/v1/people/records:find', { limit: 50_000 });
  expect(many['records']).toHaveLength(total);
});

test('find: the page limit is clamped, not refused', async () => {
  const collection = freshName();
  const { writes } = both.server.database;
  const { rest } = both;
  for (let round = 0; round < 11; round++) {
    await Promise.all(Array.from({ length: 1_000 }, () => writes.insert(collection, {})));
  }
  const path = `/v1/${collection}/records:find`;
  const page = await rest.ok('POST', path, { limit: 4_000_000_000 });
  expect(page['records']).toHaveLength(10_000);
  const rest1k = await rest.ok('POST', path, { limit: 20_000, cursor: page['next_cursor'] });
  expect(rest1k['records']).toHaveLength(1_000);
  expect(rest1k['next_cursor']).toBe('');
});

test('find: cursors return all records once and in order', async () => {
  const { rest } = both;
  const orderBy = [{ field: 'age', desc: true }, { field: 'n' }];
  const seen: number[] = [];
  let cursor = '';
  do {
    const page = await rest.ok('POST', '/v1/people/records:find', { orderBy, limit: 99, cursor });
    for (const record of page['records'] as Message[])
      seen.push(Number((record['data'] as Message)['n']));
    cursor = String(page['next_cursor']);
  } while (cursor !== '');
  const expected = Array.from({ length: total }, (_, n) => n).sort(
    (a, b) => (b % 50) - (a % 50) || a - b,
  );
  expect(seen).toEqual(expected);
});

test('find: gRPC batches have at most 256 records, the last has the cursor', async () => {
  const { grpc } = both;
  const batches = await grpc.collect('Find', { collection: 'people' });
  const sizes = batches.map((batch) => (batch['records'] as Message[]).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(total);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(256);
  expect(batches.map((batch) => batch['next_cursor'])).toEqual(batches.map(() => ''));
  const some = await grpc.collect('Find', { collection: 'people', limit: 300 });
  expect(some.at(-1)!['next_cursor']).not.toBe('');
  expect(some.slice(0, -1).map((batch) => batch['next_cursor'])).toEqual(
    some.slice(1).map(() => ''),
  );
  expect(new Set(batches.map((batch) => batch['read_seq'])).size).toBe(1);
});

test('find: large records make small batches', async () => {
  const collection = freshName();
  const { writes } = both.server.database;
  const text = 'x'.repeat(100_000);
  await Promise.all(Array.from({ length: 10 }, (_, n) => writes.insert(collection, { n, text })));
  const batches = await both.grpc.collect('Find', { collection, encoding: 'DATA_ENCODING_JSON' });
  for (const batch of batches) {
    expect((batch['records'] as Message[]).length).toBeLessThanOrEqual(2);
  }
});

test('find: a page of several megabytes is complete', async () => {
  const collection = freshName();
  const { writes } = both.server.database;
  const text = 'é'.repeat(100_000);
  await Promise.all(Array.from({ length: 30 }, (_, n) => writes.insert(collection, { n, text })));
  const answer = await both.rest.send('POST', `/v1/${collection}/records:find`, { limit: 29 });
  expect(answer.headers.get('transfer-encoding')).toBe('chunked');
  const records = answer.body['records'] as { data: { n: number; text: string } }[];
  expect(records.map(({ data }) => data.n)).toEqual(Array.from({ length: 29 }, (_, n) => n));
  expect(records.every(({ data }) => data.text === text)).toBe(true);
  expect(answer.body['next_cursor']).not.toBe('');
});

test('find: NDJSON has one record per line, then the cursor', async () => {
  const { rest } = both;
  const answer = await rest.send(
    'POST',
    '/v1/people/records:find',
    {},
    { accept: 'application/x-ndjson' },
  );
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  const lines = answer.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Message);
  expect(lines).toHaveLength(total + 1);
  expect(Object.keys(lines[0]!)).toEqual(['record']);
  expect(lines.at(-1)).toEqual({ next_cursor: '', read_seq: expect.any(Number) as number });
  const limited = await rest.send(
    'POST',
    '/v1/people/records:find',
    { limit: 3 },
    { accept: 'text/html, application/x-ndjson;q=0.9' },
  );
  const some = limited.text.trimEnd().split('\n');
  expect(some).toHaveLength(4);
  expect(JSON.parse(some[3]!)).not.toMatchObject({ next_cursor: '' });
});

test('find: explain returns the plan on gRPC and REST', async () => {
  const { rest, grpc } = both;
  const query = { filter: adults, explain: true };
  const page = await rest.ok('POST', '/v1/people/records:find', query);
  expect(page['plan']).toMatchObject({
    index: 'age',
    rows_scanned: 28,
    rows_returned: 28,
    full_scan: false,
  });
  const scan = await rest.ok('POST', '/v1/people/records:find', {
    filter: { field: 'name', op: 'regex', value: '^p1.$' },
    explain: true,
  });
  expect(scan['plan']).toMatchObject({ index: '', rows_scanned: total, full_scan: true });
  const batches = await grpc.collect('Find', {
    collection: 'people',
    filter: toFilter(adults),
    explain: true,
  });
  expect(batches.at(-1)!['plan']).toMatchObject({ index: 'age', rows_scanned: 28 });
  expect(await rest.ok('POST', '/v1/people/records:find', { filter: adults })).not.toHaveProperty(
    'plan',
  );
});

test('find: count_only returns no records', async () => {
  const { rest, grpc } = both;
  expect(
    await rest.ok('POST', '/v1/people/records:find', { filter: adults, countOnly: true }),
  ).toMatchObject({ count: 28, records: [] });
  const request = { collection: 'people', count_only: true };
  const [only] = await grpc.collect('Find', request);
  expect(only).toMatchObject({ records: [], count: total });
  const [none] = await grpc.collect('Find', { collection: freshName(), count_only: true });
  expect(none).toMatchObject({ count: 0 });
});

test('find: skip, fields and allow_full_scan', async () => {
  const { rest } = both;
  const page = await rest.ok('POST', '/v1/people/records:find', {
    filter: adults,
    order_by: [{ field: 'age' }],
    skip: 20,
    fields: ['age'],
    allow_full_scan: false,
  });
  expect(page['records']).toHaveLength(8);
  expect((page['records'] as Message[])[7]!['data']).toEqual({ age: 49 });
});

test('find: an unknown collection is empty', async () => {
  const collection = freshName();
  expect(await both.rest.ok('POST', `/v1/${collection}/records:find`)).toMatchObject({
    records: [],
    next_cursor: '',
  });
  expect(await both.grpc.collect('Find', { collection })).toHaveLength(1);
});

test('aggregate: same groups on gRPC and REST', async () => {
  const { rest, grpc } = both;
  const aggregates = [
    { name: 'oldest', op: 'max', field: 'age' },
    { name: 'sum', op: 'sum', field: 'age' },
  ];
  const query = {
    filter: { field: 'n', op: 'lt', value: 6 },
    group_by: ['city'],
    aggregates,
    having: { field: 'oldest', op: 'gt', value: 3 },
    order_by: [{ field: 'oldest', desc: true }],
  };
  const answer = await rest.ok('POST', '/v1/people/records:aggregate', { ...query, explain: true });
  expect(answer['groups']).toEqual([
    { key: { city: 'Bern' }, count: 2, values: { oldest: 5, sum: 7 } },
    { key: { city: 'Rome' }, count: 2, values: { oldest: 4, sum: 5 } },
  ]);
  expect(answer['plan']).toMatchObject({ rows_returned: 2 });
  const messages = await grpc.collect('Aggregate', {
    collection: 'people',
    ...query,
    filter: toFilter(query.filter),
    having: toFilter(query.having),
  });
  const groups = messages.flatMap((message) => message['groups'] as Message[]);
  expect(
    groups.map(({ key, count, values }) => ({
      key: fromStruct(key),
      count,
      values: fromStruct(values),
    })),
  ).toEqual(answer['groups']);
});

test('aggregate: no records make one group', async () => {
  const answer = await both.rest.ok('POST', `/v1/${freshName()}/records:aggregate`, {
    aggregates: [
      { name: 'n', op: 'count' },
      { name: 's', op: 'sum', field: 'a' },
      { name: 'a', op: 'avg', field: 'a' },
    ],
  });
  expect(answer).toMatchObject({
    groups: [{ key: {}, count: 0, values: { n: 0, s: 0, a: null } }],
  });
});

test('aggregate: JSON groups come in batches', async () => {
  const messages = await both.grpc.collect('Aggregate', {
    collection: 'people',
    group_by: ['n'],
    encoding: 'DATA_ENCODING_JSON',
  });
  expect(messages.map((message) => (message['groups'] as Message[]).length)).toEqual([
    256, 256, 188,
  ]);
  const [first] = messages[0]!['groups'] as Message[];
  expect(String(first!['key_json'])).toBe('{"n":0}');
  expect(first!['key']).toBeNull();
});

test('find: a transaction sees its own writes without a seq', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'old', data: { n: 1 } });
  const { tx_id: txId } = await rest.ok('POST', '/v1/tx:begin');
  await grpc.call('InsertWithKey', {
    collection,
    key: 'new',
    data: toStruct({ n: 2 }),
    tx_id: txId,
  });
  const [batch] = await grpc.collect('Find', { collection, tx_id: txId });
  const records = (batch!['records'] as Message[]).map(plainRecord);
  expect(records.map(({ key, seq }) => [key, Number(seq) > 0])).toEqual([
    ['old', true],
    ['new', false],
  ]);
  const outside = await rest.ok('POST', `/v1/${collection}/records:find`, {});
  expect(outside['records']).toHaveLength(1);
  const counted = await rest.ok('POST', `/v1/${collection}/records:aggregate`, { tx_id: txId });
  expect(counted['groups']).toMatchObject([{ count: 2 }]);
  await rest.ok('POST', `/v1/tx/${String(txId)}:rollback`);
});

test('cancel: a caller that disconnects ends its call, on gRPC and REST', async () => {
  const { rest, grpc, server } = both;
  const cancelled = async (api: string) => {
    const { text } = await rest.send('GET', '/metrics');
    const line = `millrace_db_calls_total{method="Find",face="${api}",code="CANCELLED"} `;
    return Number(
      text
        .split('\n')
        .find((each) => each.startsWith(line))
        ?.slice(line.length) ?? 0,
    );
  };
  // Waits for a commit that is never written.
  const request = { collection: 'people', min_seq: 99_999_999 };
  const stream = grpc.stream('Find', request);
  const ended = new Promise((resolve) => stream.on('error', resolve));
  const abort = new AbortController();
  const call = fetch(`${server.http}/v1/people/records:find`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ min_seq: request.min_seq }),
    signal: abort.signal,
  });
  const gone = expect(call).rejects.toThrow('aborted');
  const metrics = async () => (await rest.send('GET', '/metrics')).text;
  await expect.poll(metrics).toContain('millrace_db_calls_in_flight 2\n');
  stream.cancel();
  abort.abort();
  await Promise.all([ended, gone]);
  await expect.poll(() => cancelled('grpc')).toBe(1);
  await expect.poll(() => cancelled('rest')).toBe(1);
});

test('REST: vectors, words and lookups', async () => {
  const { rest } = both;
  const [name, authors] = [freshName(), freshName()];
  const find = (query: object) => rest.ok('POST', `/v1/${name}/records:find`, query);
  const keysOf = (found: Message) =>
    (found['records'] as Message[]).map(({ key }) => String(key)).join('');
  const docs = { a: [1, 0], b: [0.8, 0.6], c: [0, 1] };
  for (const [key, v] of Object.entries(docs)) {
    const data = { v, title: `Durable ${key} queues`, by: key === 'c' ? 'eve' : 'ada' };
    await rest.ok('POST', `/v1/${name}/keys`, { key, data });
  }
  await rest.ok('POST', `/v1/${authors}/keys`, { key: 'x', data: { nick: 'ada' } });
  const indexes = `/v1/admin/collections/${name}/indexes`;
  await rest.ok('POST', indexes, { vector: 'v', dims: 2, metric: 'cosine' });
  await rest.ok('POST', indexes, { search: ['title'], language: 'en' });
  const near = { field: 'v', vector: [1, 0], k: 2 };
  await expect
    .poll(async () => (await rest.send('POST', `/v1/${name}/records:find`, { near })).status, {
      timeout: 60_000,
    })
    .toBe(200);
  const nearest = await find({ near, explain: true });
  expect(keysOf(nearest)).toBe('ab');
  expect(nearest['plan']).toMatchObject({
    index: 'vector:v',
    note: expect.stringMatching('recall'),
  });
  expect((nearest['records'] as Message[])[1]).toMatchObject({ score: expect.closeTo(0.8, 5) });
  const filter = { field: 'by', op: 'eq', value: 'eve' };
  expect(keysOf(await find({ near, filter }))).toBe('c');
  await expect
    .poll(
      async () => (await rest.send('POST', `/v1/${name}/records:find`, { search: 'x' })).status,
      {
        timeout: 60_000,
      },
    )
    .toBe(200);
  expect(keysOf(await find({ search: 'queue durable', near }))).toBe('abc');
  const refused: [query: object, reason: string][] = [
    [{ near: { ...near, vector: [1] } }, 'BAD_REQUEST'],
    [{ near: { ...near, vector: [1e39, 1] } }, 'BAD_REQUEST'],
    [{ near: { ...near, k: 1001 } }, 'BAD_REQUEST'],
    [{ near: { ...near, field: 'w' } }, 'INDEX_REQUIRED'],
    [{ search: { text: 'x', fields: ['none'] } }, 'INDEX_REQUIRED'],
    [{ lookup: [{ from: authors, local: 'by', as: 'author' }] }, 'BAD_REQUEST'],
  ];
  for (const [query, reason] of refused) {
    const { status, body } = await rest.send('POST', `/v1/${name}/records:find`, query);
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(reason)]);
  }
  const lookup = [{ from: authors, local: 'by', foreign: 'nick', as: 'author' }];
  const joined = (await find({ lookup, fields: ['by'] }))['records'] as Message[];
  expect(joined.map(({ data }) => data)).toEqual([
    { by: 'ada', author: [{ nick: 'ada' }] },
    { by: 'ada', author: [{ nick: 'ada' }] },
    { by: 'eve', author: [] },
  ]);
  const wrong = await rest.send('POST', `/v1/${name}/records`, { data: { v: [1, 2, 3] } });
  expect([wrong.status, JSON.stringify(wrong.body)]).toEqual([
    400,
    expect.stringContaining('"v\\" must be a vector of 2 numbers, not a list of 3.'),
  ]);
});
