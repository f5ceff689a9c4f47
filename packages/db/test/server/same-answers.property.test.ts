import { dbReasons, grpcCodes, type DbReason } from '@millrace/contract/db';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { freshName, plainRecord, useServer } from './support/both.js';
import { failureOf } from './support/grpc.js';
import { fromStruct, toFilter, toStruct, type Message } from './support/proto.js';
import { restFailure } from './support/rest.js';

const both = useServer();

/** One call, independent of the API. */
interface Operation {
  rpc: string;
  fields: Message;
}

const keys = ['k', 'a:b', 'é/ü', '%', ''];
const ids = ['01JCZ8Q4V7W3S1N6K2M5T9X0AA', '01JCZ8Q4V7W3S1N6K2M5T9X0AB', 'nonsense'];
const fieldLists = [[], [], ['n'], ['deep.n', 'x'], ['x.']];
const key = fc.constantFrom(...keys);
const pathKey = fc.constantFrom(...keys.filter((each) => each !== ''));
const id = fc.constantFrom(...ids);
const number = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const text = fc.oneof(fc.constantFrom('', 'a', 'é'), fc.string({ unit: 'grapheme', maxLength: 5 }));
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constant(null),
    fc.boolean(),
    number,
    text,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('n', 'x', 'deep'), tie('value'), { maxKeys: 3 }),
  ),
})).value;
const data = fc.dictionary(fc.constantFrom('n', 'x', 'deep', '__proto_'), json, { maxKeys: 4 });
const mode = fc.constantFrom('UPDATE_MODE_REPLACE', 'UPDATE_MODE_MERGE');
const filter: fc.Arbitrary<Message> = fc.letrec<{ filter: Message }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small' },
    fc.record({
      field: fc.constantFrom('n', 'x', 'deep.n', '$key', '$rev', '$nothing'),
      op: fc.constantFrom(
        'eq',
        'ne',
        'gt',
        'lte',
        'in',
        'exists',
        'contains',
        'prefix',
        'regex',
        'like',
      ),
      value: json,
    }),
    fc.record({ and: fc.array(tie('filter'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ or: fc.array(tie('filter'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ not: tie('filter') }),
  ),
})).filter;

const operation = fc.oneof(
  fc.record({ data, id }).map((fields) => ({ rpc: 'Insert', fields })),
  fc.record({ data, key, id }).map((fields) => ({ rpc: 'InsertWithKey', fields })),
  fc.record({ key: pathKey }).map((fields) => ({ rpc: 'FindByKey', fields })),
  fc
    .record({ id, fields: fc.constantFrom(...fieldLists) })
    .map((fields) => ({ rpc: 'FindById', fields })),
  fc.record({ id, data, mode }).map((fields) => ({ rpc: 'Update', fields })),
  fc.record({ key: pathKey, data, mode }).map((fields) => ({ rpc: 'UpdateByKey', fields })),
  fc.record({ key: pathKey, data, mode }).map((fields) => ({ rpc: 'Upsert', fields })),
  fc
    .record({ key: pathKey, data, expected_rev: fc.integer({ min: 0, max: 3 }) })
    .map((fields) => ({ rpc: 'UpdateIfRev', fields })),
  fc.record({ id, return_record: fc.boolean() }).map((fields) => ({ rpc: 'Delete', fields })),
  fc
    .record({ key: pathKey, return_record: fc.boolean() })
    .map((fields) => ({ rpc: 'DeleteByKey', fields })),
  fc
    .record({
      filter,
      order_by: fc.array(
        fc.record({ field: fc.constantFrom('n', 'x', '$key', ''), desc: fc.boolean() }),
        {
          maxLength: 2,
        },
      ),
      limit: fc.integer({ min: 1, max: 3 }),
      skip: fc.integer({ min: 0, max: 2 }),
      count_only: fc.boolean(),
      allow_full_scan: fc.boolean(),
    })
    .map((fields) => ({ rpc: 'Find', fields })),
  fc
    .record({
      filter,
      group_by: fc.subarray(['n', 'x']),
      aggregates: fc.array(
        fc.record({
          name: fc.constantFrom('a', 'b', ''),
          op: fc.constantFrom('count', 'sum', 'avg', 'min', 'first', 'median'),
          field: fc.constantFrom('n', 'deep.n'),
        }),
        { maxLength: 2 },
      ),
    })
    .map((fields) => ({ rpc: 'Aggregate', fields })),
);

/** What gRPC and REST must agree on: everything except collection, commit and time. */
function comparable(answer: unknown, collection: string): unknown {
  return JSON.parse(
    JSON.stringify(answer, (name, value: unknown) => {
      if (['seq', 'read_seq', 'created_at', 'updated_at', 'elapsed_ms'].includes(name)) return 0;
      if (name === 'id' && typeof value === 'string' && !ids.includes(value)) return 'made';
      return value;
    }).replaceAll(collection, 'collection'),
  ) as unknown;
}

const bindings: Record<
  string,
  (fields: Message) => [method: string, path: string, leave: string[]]
> = {
  Insert: () => ['POST', 'records', []],
  InsertWithKey: () => ['POST', 'keys', []],
  FindByKey: (fields) => ['GET', `keys/${segment(fields['key'])}`, ['key']],
  FindById: (fields) => [
    'GET',
    `records/${segment(fields['id'])}${fieldsQuery(fields)}`,
    ['id', 'fields'],
  ],
  Update: (fields) => [verb(fields), `records/${segment(fields['id'])}`, ['id']],
  UpdateByKey: (fields) => [verb(fields), `keys/${segment(fields['key'])}`, ['key']],
  Upsert: (fields) => ['POST', `keys/${segment(fields['key'])}:upsert`, ['key']],
  UpdateIfRev: (fields) => ['POST', `keys/${segment(fields['key'])}:updateIfRev`, ['key']],
  Delete: (fields) => [
    'DELETE',
    `records/${segment(fields['id'])}${returnQuery(fields)}`,
    ['id', 'return_record'],
  ],
  DeleteByKey: (fields) => [
    'DELETE',
    `keys/${segment(fields['key'])}${returnQuery(fields)}`,
    ['key', 'return_record'],
  ],
  Find: () => ['POST', 'records:find', []],
  Aggregate: () => ['POST', 'records:aggregate', []],
};
const segment = (value: unknown) => encodeURIComponent(String(value));
const verb = (fields: Message) => (fields['mode'] === 'UPDATE_MODE_MERGE' ? 'PATCH' : 'PUT');
const returnQuery = (fields: Message) => `?return_record=${String(fields['return_record'])}`;
const fieldsQuery = (fields: Message) => {
  const list = fields['fields'] as string[];
  return list.length === 0 ? '' : `?${list.map((each) => `fields=${each}`).join('&')}`;
};

async function overRest({ rpc, fields }: Operation, collection: string): Promise<unknown> {
  const [method, path, left] = bindings[rpc]!(fields);
  const body = Object.fromEntries(Object.entries(fields).filter(([name]) => !left.includes(name)));
  const hasBody = method !== 'GET' && method !== 'DELETE';
  const answer = await both.rest.send(
    method,
    `/v1/${collection}/${path}`,
    hasBody ? body : undefined,
  );
  if (answer.status === 200) return answer.body;
  const { code, message, reason, metadata } = restFailure(answer);
  return { code, message, reason, metadata };
}

async function overGrpc({ rpc, fields }: Operation, collection: string): Promise<unknown> {
  const request: Message = { ...fields, collection };
  if ('data' in fields) request['data'] = toStruct(fields['data'] as object);
  if ('filter' in fields) request['filter'] = toFilter(fields['filter'] as Message);
  try {
    if (rpc === 'Find') return findAnswer(await both.grpc.collect(rpc, request));
    if (rpc === 'Aggregate') return groupsAnswer(await both.grpc.collect(rpc, request));
    const { record, ...rest } = await both.grpc.call(rpc, request);
    return { ...(record ? { record: plainRecord(record as Message) } : {}), ...rest };
  } catch (error) {
    const { code, message, reason, metadata } = failureOf(error);
    expect(code).toBe(dbReasons[reason as DbReason].code);
    return { code: grpcCodes[code as keyof typeof grpcCodes], message, reason, metadata };
  }
}

function findAnswer(batches: Message[]): Message {
  const last = batches.at(-1)!;
  const records = batches.flatMap((batch) => (batch['records'] as Message[]).map(plainRecord));
  const { next_cursor: cursor, read_seq: seq, count } = last;
  const counted = 'count' in last && last['_count'] === 'count' ? { count } : {};
  return { records, next_cursor: cursor, read_seq: seq, ...counted };
}

function groupsAnswer(batches: Message[]): Message {
  const groups = batches.flatMap((batch) =>
    (batch['groups'] as Message[]).map(({ key: group, count, values }) => ({
      key: fromStruct(group),
      count,
      values: fromStruct(values),
    })),
  );
  return { groups, read_seq: batches.at(-1)!['read_seq'] };
}

/** Cursors are bound to their collection. */
function withoutCursor(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('next_cursor' in answer)) return answer;
  return { ...answer, next_cursor: answer.next_cursor === '' ? '' : 'more' };
}

test('REST and gRPC return the same results', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 12 }), async (operations) => {
      const name = freshName();
      const [left, right] = [`${name}restside`, `${name}grpcside`];
      const { writes } = both.server.database;
      for (const collection of [left, right]) {
        await writes.insert(collection, { n: 1, x: 'a' }, { key: 'k', id: ids[0] });
        await writes.insert(collection, { n: 2, deep: { n: [1, 2] } }, { key: 'a:b' });
        await writes.insert(collection, { n: null, x: 'é' }, {});
      }
      for (const each of operations) {
        const rest = withoutCursor(comparable(await overRest(each, left), left));
        const grpc = withoutCursor(comparable(await overGrpc(each, right), right));
        expect(grpc, JSON.stringify(each)).toEqual(rest);
      }
    }),
    { numRuns: campaignSize({ quick: 25, full: 60 }) },
  );
}, 400_000);
