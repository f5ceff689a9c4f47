import { create, fromBinary, fromJson, toBinary, type DescMessage } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  Database as Api,
  FilterSchema,
  FindByKeyRequestSchema,
  FindRequestSchema,
  InsertRequestSchema,
  type Filter,
} from '@millrace/contract/db';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plainFilter } from './codec.js';
import { PlainDecoder } from '../../codec/decoder.js';

/** Whether the decoder handled the bytes; if so, checks the result against the library. */
function readsAlike(desc: DescMessage, bytes: Uint8Array): boolean {
  const read = new PlainDecoder(desc).decode(Buffer.from(bytes));
  if (!read) return false;
  const known = fromBinary(desc, Buffer.from(bytes), { readUnknownFields: false });
  const expected: Record<string, unknown> = { ...known };
  for (const { message, localName } of desc.fields) {
    const part = expected[localName];
    if (part && message === FilterSchema) expected[localName] = plainFilter(part as Filter);
  }
  expect({ ...read }).toStrictEqual(expected);
  return true;
}

const text = fc.oneof(
  { arbitrary: fc.string({ maxLength: 200 }), weight: 20 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 200 }), weight: 1 },
);
const uint64 = fc.oneof(
  { arbitrary: fc.bigInt(0n, 100_000n), weight: 5 },
  { arbitrary: fc.bigInt(0n, 2n ** 64n - 1n), weight: 1 },
);
const duration = fc.record({ seconds: fc.bigInt(0n, 99n), nanos: fc.nat(999_999_999) });
const insert = fc.record(
  {
    collection: text,
    dataJson: fc.uint8Array({ maxLength: 400 }),
    id: text,
    ttl: fc.option(duration, { nil: undefined, freq: 5 }),
    txId: text,
    requestId: text,
    encoding: fc.nat({ max: 300 }),
  },
  { requiredKeys: [] },
);
const json = fc.oneof(
  fc.constantFrom(null, true, false, 0, -0, 1.5, '', 'Port 001', 'ü'),
  fc.double(),
  text,
  fc.array(fc.constantFrom(1, 'a', null, [2]), { maxLength: 4 }),
  fc.constant({ a: 1 }),
);
const leaf = {
  field: text,
  op: fc.constantFrom('eq', 'in', 'no such op'),
  value: json.map((value) => fromJson(ValueSchema, value)),
};
const { filter } = fc.letrec<{ filter: object }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 2 },
    fc.record(leaf, { requiredKeys: [] }),
    fc.record(
      {
        ...leaf,
        and: fc.array(tie('filter'), { maxLength: 2 }),
        or: fc.array(tie('filter'), { maxLength: 2 }),
        not: tie('filter'),
      },
      { requiredKeys: [] },
    ),
  ),
}));
const find = fc.record(
  {
    collection: text,
    fields: fc.array(text, { maxLength: 4 }),
    limit: fc.oneof(fc.nat({ max: 100_000 }), fc.nat({ max: 2 ** 32 - 1 })),
    skip: fc.nat({ max: 1_000 }),
    minSeq: uint64,
    explain: fc.boolean(),
    allowFullScan: fc.boolean(),
    filter: fc.option(filter, { nil: undefined, freq: 5 }),
  },
  { requiredKeys: [] },
);

test('decoder: decodes simple fields like the library', () => {
  let count = 0;
  fc.assert(
    fc.property(insert, find, (one, other) => {
      const a = create(InsertRequestSchema, one as object);
      const b = create(FindRequestSchema, other as object);
      if (readsAlike(InsertRequestSchema, toBinary(InsertRequestSchema, a))) count++;
      if (readsAlike(FindRequestSchema, toBinary(FindRequestSchema, b))) count++;
    }),
    { numRuns: 1_000 },
  );
  expect(count).toBeGreaterThan(100);
});

test('decoder: handles the most frequent calls', () => {
  const dataJson = Buffer.from('{"a":1}');
  const write = create(InsertRequestSchema, { collection: 'c', dataJson, encoding: 2 });
  expect(readsAlike(InsertRequestSchema, toBinary(InsertRequestSchema, write))).toBe(true);
  const read = create(FindByKeyRequestSchema, { collection: 'c', key: 'k', minSeq: 7n });
  expect(readsAlike(FindByKeyRequestSchema, toBinary(FindByKeyRequestSchema, read))).toBe(true);
  const value = fromJson(ValueSchema, 'Port 001');
  const filter = {
    and: [{ field: 'city', op: 'eq', value }, { not: { field: 'b', op: 'exists' } }],
  };
  const query = create(FindRequestSchema, { collection: 'c', filter, limit: 100 });
  expect(readsAlike(FindRequestSchema, toBinary(FindRequestSchema, query))).toBe(true);
});

test('decoder: any bytes decode like in the library', () => {
  // Few field numbers and lengths, so that many inputs are almost valid.
  const piece = fc.oneof(
    fc.nat({ max: 255 }),
    fc.constantFrom(
      0,
      1,
      2,
      3,
      8,
      10,
      16,
      18,
      24,
      26,
      34,
      40,
      48,
      64,
      0x80,
      0xff,
      0xef,
      0xbb,
      0xbf,
    ),
  );
  const bytes = fc.array(piece, { maxLength: 24 }).map((list) => Uint8Array.from(list));
  fc.assert(
    fc.property(bytes, (sent) => {
      for (const { input } of Api.methods) readsAlike(input, sent);
    }),
    { numRuns: 2_000 },
  );
});
