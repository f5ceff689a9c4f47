import { create, fromBinary, toBinary, type DescMessage, type Message } from '@bufbuild/protobuf';
import {
  Database as Api,
  ChangeOp,
  FindResponseSchema,
  RecordSchema,
  WatchKind,
  WatchResponseSchema,
} from '@millrace/contract/db';
import fc from 'fast-check';
import { documentValue } from '../document.test-support.js';
import { expect, test } from 'vitest';
import { StoreCodec } from '@millrace/engine/format/codec';
import type { JsonObject } from '@millrace/engine/value/documents';
import { encodeRecord, RecordImage } from '@millrace/engine/format/record';
import { ShownRecord } from '../service/records.js';
import { encodeDirectly, MessageEncoder } from '../../codec/encoder.js';
import { recordBytes } from './codec.js';

encodeDirectly(ShownRecord, recordBytes);

/** Encodes with the library. */
function expectSame(desc: DescMessage, message: Message): void {
  const bytes = MessageEncoder.of(desc).encode(message);
  expect(bytes.equals(toBinary(desc, message))).toBe(true);
}

const time = fc.record({
  seconds: fc.bigInt({ min: -(2n ** 40n), max: 2n ** 40n }),
  nanos: fc.nat({ max: 999_999_999 }),
});
const uint64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.bigInt(0n, 300n));
const text = fc.string({ unit: 'binary', maxLength: 300 });
const record = fc.record(
  {
    id: text,
    key: text,
    rev: uint64,
    data: fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.constant(null))),
    dataJson: fc.uint8Array({ maxLength: 300 }),
    createdAt: time,
    updatedAt: time,
    seq: uint64,
    expiresAt: time,
  },
  { requiredKeys: [] },
);

test('encoder: encodes records like the library', () => {
  fc.assert(
    fc.property(record, (init) => expectSame(RecordSchema, create(RecordSchema, init))),
    { numRuns: 300 },
  );
});

test('encoder: encodes pages with zero counts like the library', () => {
  const page = fc.record(
    {
      records: fc.array(record, { maxLength: 10 }),
      nextCursor: text,
      readSeq: uint64,
      plan: fc.record({
        index: text,
        rowsScanned: uint64,
        fullScan: fc.boolean(),
        elapsedMs: fc.double({ noNaN: true, min: 0 }),
      }),
      count: uint64,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(page, (init) => expectSame(FindResponseSchema, create(FindResponseSchema, init))),
  );
});

test('encoder: encodes changes like the library', () => {
  const change = fc.record(
    {
      op: fc.constantFrom(ChangeOp.INSERT, ChangeOp.UPDATE, ChangeOp.DELETE),
      collection: text,
      record,
      before: record,
      entered: fc.boolean(),
      left: fc.boolean(),
    },
    { requiredKeys: [] },
  );
  const message = fc.record(
    {
      kind: fc.constantFrom(WatchKind.CHANGES, WatchKind.BOOKMARK),
      seq: uint64,
      epoch: uint64,
      committedAt: time,
      changes: fc.array(change, { maxLength: 5 }),
      resumeToken: text,
      leaderSeq: uint64,
      chainHash: uint64,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(message, (init) =>
      expectSame(WatchResponseSchema, create(WatchResponseSchema, init)),
    ),
  );
});

test('encoder: decoded responses encode to the same bytes', () => {
  for (const { output } of Api.methods) {
    expectSame(output, create(output));
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(bytes, (random) => {
        let message: Message;
        try {
          message = fromBinary(output, random);
        } catch {
          return;
        }
        expectSame(output, message);
      }),
    );
  }
});

test('encoder: a message larger than the buffer is complete', () => {
  const dataJson = Buffer.alloc(3_000_000, 'j');
  const records = Array.from({ length: 3 }, (_, n) => ({ id: `r${n}`, dataJson }));
  expectSame(FindResponseSchema, create(FindResponseSchema, { records }));
  expectSame(FindResponseSchema, create(FindResponseSchema, { nextCursor: 'next' }));
});

test('encoder: a failed message does not affect the next one', () => {
  const broken = create(FindResponseSchema, { records: [{ id: 'r' }], nextCursor: 'c' });
  (broken as { nextCursor: unknown }).nextCursor = 7;
  expect(() => MessageEncoder.of(FindResponseSchema).encode(broken)).toThrow();
  expectSame(RecordSchema, create(RecordSchema, { id: 'next' }));
});

test('encoder: stored bytes encode like the record message', () => {
  const codec = new StoreCodec({ load: () => undefined, save: () => undefined });
  const ms = fc.oneof(fc.integer({ min: 0, max: 2 ** 43 }), fc.constantFrom(0, 1, 999, 1_000));
  const stored = fc.record({
    fields: fc.record({
      rev: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
      seq: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
      createdAt: ms,
      updatedAt: ms,
      expiresAt: ms,
      key: fc.string({ unit: 'grapheme', maxLength: 40 }),
      contentHash: fc.constant(7),
    }),
    data: fc.dictionary(fc.constantFrom('a', 'b', 'ü"'), documentValue, {
      noNullPrototype: true,
    }),
    parts: fc.option(fc.constant({ a: 1 }), { nil: undefined }),
    commit: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
  });
  fc.assert(
    fc.property(stored, ({ fields, data, parts, commit }) => {
      // Stored documents have no -0, because JSON drops its sign.
      const document = JSON.parse(JSON.stringify(data)) as JsonObject;
      const bytes = encodeRecord(fields, codec.encode(document));
      const image = new RecordImage('01JD0000000000000000000000', bytes, bytes.length, codec);
      const shown = new ShownRecord(image, parts, commit);
      const { id, key, rev, dataJson, createdAt, updatedAt, seq, expiresAt } = shown;
      expect(Buffer.from(dataJson).toString()).toBe(JSON.stringify(parts ?? document));
      const init = { id, key, rev, dataJson, createdAt, updatedAt, seq };
      const message = create(RecordSchema, expiresAt ? { ...init, expiresAt } : init);
      const written = MessageEncoder.of(RecordSchema).encode(shown);
      expect(written.equals(toBinary(RecordSchema, message))).toBe(true);
      const page = create(FindResponseSchema, { records: [message, message], readSeq: 3n });
      const many = MessageEncoder.of(FindResponseSchema).encode({
        ...page,
        records: [shown, shown],
      } as unknown as Message);
      expect(many.equals(toBinary(FindResponseSchema, page))).toBe(true);
    }),
    { numRuns: 300 },
  );
});
