import {
  AggregateRequestSchema,
  FindByIdRequestSchema,
  FindRequestSchema,
  InsertRequestSchema,
  UpdateIfRevRequestSchema,
  UpdateMode,
  UpsertRequestSchema,
  WatchRequestSchema,
} from '@millrace/contract/db';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { RequestReader } from './json-in.js';

const find = new RequestReader(FindRequestSchema);
const insert = new RequestReader(InsertRequestSchema);

test('json request: an empty request is the empty message', () => {
  for (const schema of [FindRequestSchema, InsertRequestSchema, WatchRequestSchema]) {
    const request = new RequestReader(schema).fromBody({}, {});
    expect(request).toEqual({ ...create(schema), ...request });
    expect(toBinary(schema, request as never)).toHaveLength(0);
  }
});

test('json request: accepts both spellings of a name', () => {
  const snake = find.fromBody({ collection: 'c' }, { order_by: [{ field: 'a' }], min_seq: 5 });
  const camel = find.fromBody({ collection: 'c' }, { orderBy: [{ field: 'a' }], minSeq: '5' });
  expect(camel).toEqual(snake);
  expect(snake).toMatchObject({
    collection: 'c',
    minSeq: 5n,
    orderBy: [{ field: 'a', desc: false }],
  });
});

test('json request: accepts enum values as short names, long names and numbers', () => {
  const reader = new RequestReader(UpsertRequestSchema);
  for (const mode of ['MERGE', 'UPDATE_MODE_MERGE', 2]) {
    expect(reader.fromBody({}, { mode })).toMatchObject({ mode: UpdateMode.MERGE });
  }
  for (const mode of ['merge', 'BOTH', 3, true]) {
    expect(() => reader.fromBody({}, { mode })).toThrow('mode must be one of REPLACE, MERGE');
  }
});

test('json request: durations are seconds', () => {
  const ttl = (text: unknown) => insert.fromBody({}, { ttl: text })['ttl'];
  expect(ttl('3.5s')).toMatchObject({ seconds: 3n, nanos: 500_000_000 });
  expect(ttl('0s')).toMatchObject({ seconds: 0n, nanos: 0 });
  expect(ttl('0.000000001s')).toMatchObject({ seconds: 0n, nanos: 1 });
  for (const wrong of ['3.5', '5m', '-1s', 's', '1.0000000001s', 3.5, {}]) {
    expect(() => ttl(wrong)).toThrow('ttl must be seconds such as "3.5s"');
  }
});

test('json request: null means unset', () => {
  expect(find.fromBody({}, { limit: null, filter: null, order_by: null })).toEqual(
    find.fromBody({}, {}),
  );
});

test('json request: documents and filters pass unchanged', () => {
  const data = { a: [1, { b: null }] };
  expect(insert.fromBody({}, { data })['data']).toBe(data);
  const filter = { field: 'a', op: 'eq', value: null };
  expect(find.fromBody({}, { filter })['filter']).toBe(filter);
});

test('json request: errors name the full path of a nested field', () => {
  const aggregate = new RequestReader(AggregateRequestSchema);
  expect(() => aggregate.fromBody({}, { aggregates: [{}, { nmae: 'x' }] })).toThrow(
    'aggregates[1].nmae is not known here; did you mean "name"?',
  );
  expect(() => find.fromBody({}, { orderBy: [{ desc: 'yes' }] })).toThrow(
    'orderBy[0].desc must be true or false, not a text',
  );
  expect(() => find.fromBody({}, { orderBy: {} })).toThrow('orderBy must be a list, not an object');
});

test('json request: numbers are whole and within range', () => {
  const rev = new RequestReader(UpdateIfRevRequestSchema);
  for (const wrong of [-1, 1.5, '1.5', 'x', 2 ** 53, true, '']) {
    expect(() => rev.fromBody({}, { expected_rev: wrong })).toThrow('expected_rev must be a whole');
  }
  expect(() => find.fromBody({}, { limit: 2 ** 32 })).toThrow('from 0 to 4294967295');
});

test('json request: a path field may be repeated in the body with the same value', () => {
  expect(insert.fromBody({ collection: 'c' }, { collection: 'c' })).toMatchObject({
    collection: 'c',
  });
  expect(() => insert.fromBody({ collection: 'c' }, { collection: 'd' })).toThrow(
    'collection is "d" in the body and different in the path',
  );
});

test('json request: a query carries lists, numbers, flags and filters', () => {
  const byId = new RequestReader(FindByIdRequestSchema);
  const known = ['fields', 'tx_id', 'min_seq'];
  const query: [string, string][] = [
    ['fields', 'a.b,c'],
    ['fields', 'd'],
    ['minSeq', '7'],
  ];
  expect(byId.fromQuery({ collection: 'c', id: 'x' }, query, known)).toMatchObject({
    collection: 'c',
    id: 'x',
    fields: ['a.b', 'c', 'd'],
    minSeq: 7n,
  });
  const watch = new RequestReader(WatchRequestSchema);
  const flags: [string, string][] = [
    ['filter', '{"field":"a","op":"gt","value":1}'],
    ['include_initial', 'true'],
    ['includeBefore', '0'],
    ['heartbeat', '2s'],
  ];
  const names = ['filter', 'include_initial', 'include_before', 'heartbeat'];
  expect(watch.fromQuery({}, flags, names)).toMatchObject({
    filter: { field: 'a', op: 'gt', value: 1 },
    includeInitial: true,
    includeBefore: false,
    heartbeat: { seconds: 2n },
  });
  const wrong: [query: [string, string][], text: string][] = [
    [[['filter', '{']], 'filter must be JSON'],
    [[['include_initial', 'yes']], 'include_initial must be true or false'],
    [
      [
        ['heartbeat', '2s'],
        ['heartbeat', '3s'],
      ],
      'heartbeat is given twice',
    ],
    [[['collection', 'c']], 'collection is not known here'],
    [[['encoding', 'JSON']], 'encoding is supported on gRPC only'],
  ];
  for (const [each, text] of wrong) expect(() => watch.fromQuery({}, each, names)).toThrow(text);
});
