/** Requests as bytes: load tools send them as they are, and neither side may profit from a client. */
import { create, toBinary } from '@bufbuild/protobuf';
import * as db from '@millrace/contract/db';

/** About 300 bytes of JSON, with its number in front so that records differ. */
export function document(number) {
  return {
    number,
    city: `Port ${String(number % 1_000).padStart(3, '0')}`,
    name: `Person Number ${number}`,
    score: (number % 1_000) / 10,
    address: { street: `Old Station Road ${number % 200}`, zip: '59374', country: 'NL' },
    tags: ['flour', 'barge', 'timber'],
    note: 'Prefers deliveries before noon; leave at the loading dock.',
    at: 0,
  };
}

/** A gRPC message: not compressed, its length, its bytes. */
export function frame(bytes) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

const json = (value) => Buffer.from(JSON.stringify(value));
const encoding = db.DataEncoding.JSON;

function call(method, schema, value) {
  const bytes = toBinary(schema, create(schema, value));
  return { path: `/millrace.db.v1.Database/${method}`, body: frame(Buffer.from(bytes)) };
}

/** The same calls on both servers: `people` has an index on `city`, `keyed` has keys. */
export const millraceCalls = {
  insert: (number) =>
    call('Insert', db.InsertRequestSchema, {
      collection: 'writes',
      dataJson: json(document(number)),
      encoding,
    }),
  read: (key) =>
    call('FindByKey', db.FindByKeyRequestSchema, { collection: 'keyed', key, encoding }),
  find: (city) =>
    call('Find', db.FindRequestSchema, {
      collection: 'people',
      filter: { field: 'city', op: 'eq', value: { kind: { case: 'stringValue', value: city } } },
      limit: 100,
      encoding,
    }),
  stream: () => call('Find', db.FindRequestSchema, { collection: 'people', encoding }),
  scan: () =>
    call('Find', db.FindRequestSchema, {
      collection: 'people',
      filter: {
        field: 'note',
        op: 'contains',
        value: { kind: { case: 'stringValue', value: '#' } },
      },
      encoding,
    }),
};

export const etcdCalls = {
  insert: (number) => etcd('Put', [bytesField(1, 'write'), bytesField(2, json(document(number)))]),
  read: (key) => etcd('Range', [bytesField(1, key)]),
  // The keys of one city, as an index on etcd is made by hand.
  find: (city) => etcd('Range', [bytesField(1, `${city}/`), bytesField(2, `${city}0`), limit(100)]),
  stream: () => etcd('Range', [bytesField(1, 'Port '), bytesField(2, 'Port!')]),
};

export const etcdPut = (key, value) =>
  Buffer.concat([bytesField(1, key), bytesField(2, Buffer.from(value))]);

/** What opens a watch of all that `writeOf` writes. On etcd a watch may be told more later. */
export function watchOf(kind) {
  if (kind === 'millrace') {
    return call('Watch', db.WatchRequestSchema, { collection: 'fanout', encoding });
  }
  const range = Buffer.concat([bytesField(1, 'fanout'), bytesField(2, 'fanouu')]);
  const body = frame(bytesField(1, range));
  return { path: '/etcdserverpb.Watch/Watch', body, isOpen: true };
}

export function writeOf(kind, text) {
  if (kind === 'etcd') return etcd('Put', [bytesField(1, 'fanout'), bytesField(2, text)]);
  const dataJson = Buffer.from(text);
  return call('Insert', db.InsertRequestSchema, { collection: 'fanout', dataJson, encoding });
}

function etcd(method, fields) {
  return { path: `/etcdserverpb.KV/${method}`, body: frame(Buffer.concat(fields)) };
}

function bytesField(number, value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

function limit(count) {
  return Buffer.concat([varint((3 << 3) | 0), varint(count)]);
}

function varint(value) {
  const bytes = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}
