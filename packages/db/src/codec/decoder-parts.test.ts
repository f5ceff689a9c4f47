import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampDate, type Timestamp } from '@bufbuild/protobuf/wkt';
import {
  BulkWriteResponseSchema,
  FindResponseSchema,
  InsertResponseSchema,
  type Record as RecordMessage,
} from '@millrace/contract/db';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PlainDecoder } from './decoder.js';
import { noBytes } from './encoder.js';

// Mostly what servers send, and sometimes what is left to the library.
const time = fc.record({
  seconds: fc.oneof(
    { arbitrary: fc.bigInt(0n, 2n ** 33n), weight: 50 },
    { arbitrary: fc.bigInt(-(2n ** 40n), -1n), weight: 1 },
  ),
  nanos: fc.nat({ max: 999_999_999 }),
});
const uint64 = fc.oneof(
  { arbitrary: fc.bigInt(0n, 300n), weight: 25 },
  { arbitrary: fc.bigInt(0n, 2n ** 49n - 1n), weight: 25 },
  { arbitrary: fc.bigInt(0n, 2n ** 64n - 1n), weight: 1 },
);
const text = fc.oneof(
  { arbitrary: fc.string(), weight: 50 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 20 }), weight: 1 },
);
const record = fc.record(
  {
    id: fc.string(),
    key: text,
    rev: uint64,
    dataJson: fc.uint8Array({ maxLength: 300 }),
    createdAt: time,
    updatedAt: time,
    seq: uint64,
    expiresAt: time,
  },
  { requiredKeys: [] },
);

test('decoder: messages inside messages are decoded like by the library, or left to it', () => {
  const decoder = new PlainDecoder(FindResponseSchema, { parts: true });
  let count = 0;
  fc.assert(
    fc.property(
      fc.array(record, { maxLength: 4 }),
      uint64,
      fc.string(),
      (records, readSeq, cursor) => {
        const message = create(FindResponseSchema, { records, readSeq, nextCursor: cursor });
        const bytes = Buffer.from(toBinary(FindResponseSchema, message));
        const read = decoder.decode(bytes);
        if (!read) return;
        count++;
        const { records: found, ...rest } = fromBinary(FindResponseSchema, bytes);
        expect(read).toMatchObject(rest);
        expect((read['records'] as object[]).map(plain)).toEqual(found.map(plain));
      },
    ),
    { numRuns: 500 },
  );
  expect(count).toBeGreaterThan(150);
});

/** Bytes may be of any class. */
function plain(value: object): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, part: unknown) => {
      if (typeof part === 'bigint') return `${part}n`;
      return part instanceof Uint8Array ? Buffer.from(part).toString('hex') : part;
    }),
  );
}

test('decoder: stored records are the records of the library, or left to it', () => {
  const decoder = new PlainDecoder(FindResponseSchema, { parts: true, storedRecords: true });
  const withJson = fc
    .tuple(record, fc.option(fc.json(), { nil: undefined }))
    .map(([given, json]) => ({ ...given, dataJson: Buffer.from(json ?? '') }));
  let count = 0;
  fc.assert(
    fc.property(fc.array(withJson, { maxLength: 4 }), (records) => {
      const message = create(FindResponseSchema, { records });
      const bytes = Buffer.from(toBinary(FindResponseSchema, message));
      const read = decoder.decode(bytes);
      if (!read) return;
      count++;
      expect(read['records']).toEqual(fromBinary(FindResponseSchema, bytes).records.map(stored));
    }),
    { numRuns: 500 },
  );
  expect(count).toBeGreaterThan(150);
});

test('decoder: a cut or mutated record is a record of the library, or left to it', () => {
  const decoder = new PlainDecoder(InsertResponseSchema, { parts: true, storedRecords: true });
  fc.assert(
    fc.property(record, fc.nat(), fc.nat(255), fc.nat(), (given, at, value, cut) => {
      const message = create(InsertResponseSchema, { record: { ...given, dataJson: noBytes } });
      const bytes = Buffer.from(toBinary(InsertResponseSchema, message));
      if (bytes.length > 0) bytes[at % bytes.length] = value;
      const some = bytes.subarray(0, cut % (bytes.length + 1));
      const read = unlessNotJson(() => decoder.decode(some));
      if (!read) return;
      const { record: known } = fromBinary(InsertResponseSchema, some);
      expect(read['record']).toEqual(known && stored(known));
    }),
    { numRuns: 2_000 },
  );
});

/** A mutated tag may turn any field into data. */
function unlessNotJson<Result>(decode: () => Result): Result | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function stored(message: RecordMessage): object {
  const { id, key, rev, dataJson, createdAt, updatedAt, seq, expiresAt } = message;
  const text = Buffer.from(dataJson).toString();
  const dateOf = (time: Timestamp | undefined) => (time ? timestampDate(time) : new Date(0));
  const data: unknown = text === '' ? undefined : JSON.parse(text);
  const times = { createdAt: dateOf(createdAt), updatedAt: dateOf(updatedAt) };
  const record = { id, key, rev: Number(rev), data, ...times, seq: Number(seq) };
  return expiresAt ? { ...record, expiresAt: timestampDate(expiresAt) } : record;
}

test('decoder: cut or mutated bytes are decoded like by the library, or left to it', () => {
  const decoder = new PlainDecoder(InsertResponseSchema, { parts: true });
  fc.assert(
    fc.property(record, fc.nat(), fc.nat(255), fc.nat(), (given, at, value, cut) => {
      const message = create(InsertResponseSchema, { record: given });
      const bytes = Buffer.from(toBinary(InsertResponseSchema, message));
      if (bytes.length > 0) bytes[at % bytes.length] = value;
      const some = bytes.subarray(0, cut % (bytes.length + 1));
      const read = decoder.decode(some);
      if (!read) return;
      const { record: known } = fromBinary(InsertResponseSchema, some, {
        readUnknownFields: false,
      });
      expect(plain({ ...read })).toEqual(plain({ $typeName: read['$typeName'], record: known }));
    }),
    { numRuns: 2_000 },
  );
});

test('decoder: a bulk response has results with errors and records', () => {
  const message = create(BulkWriteResponseSchema, {
    seq: 2n ** 40n,
    results: [{ status: 'OK', id: 'a', created: true }, { error: { reason: 'X', message: 'no' } }],
  });
  const bytes = Buffer.from(toBinary(BulkWriteResponseSchema, message));
  const read = new PlainDecoder(BulkWriteResponseSchema, { parts: true }).decode(bytes);
  expect(plain(read!)).toEqual(plain(fromBinary(BulkWriteResponseSchema, bytes)));
});

test('decoder: decodes keys in UTF-8, and leaves a byte order mark to the library', () => {
  const decoder = new PlainDecoder(FindResponseSchema, { parts: true, storedRecords: true });
  const keyOf = (key: string) => {
    const message = create(FindResponseSchema, { records: [{ key }] });
    const read = decoder.decode(Buffer.from(toBinary(FindResponseSchema, message)));
    return (read?.['records'] as { key: string }[] | undefined)?.[0]?.key;
  };
  expect(keyOf('Zürich 🏔')).toBe('Zürich 🏔');
  expect(keyOf('\uFEFFa')).toBeUndefined();
});
