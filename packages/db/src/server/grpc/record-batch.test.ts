import { create, toBinary } from '@bufbuild/protobuf';
import { FindResponseSchema, RecordSchema } from '@millrace/contract/db';
import fc from 'fast-check';
import { documentValue } from '../document.test-support.js';
import { expect, test } from 'vitest';
import { StoreCodec } from '@millrace/engine/format/codec';
import type { JsonObject } from '@millrace/engine/value/documents';
import { encodeRecord, RecordImage } from '@millrace/engine/format/record';
import { MethodCodec, RecordBatchWriter } from './codec.js';

const codec = new StoreCodec({ load: () => undefined, save: () => undefined });
const find = new MethodCodec('Find');
const first = '01JD0000000000000000000000';

function imageOf(data: JsonObject, more: Partial<Parameters<typeof encodeRecord>[0]> = {}) {
  const times = { createdAt: 1_700_000_000_123, updatedAt: 1_700_000_000_124, expiresAt: 0 };
  const fields = { rev: 1, seq: 9, key: '', contentHash: 7, ...times, ...more };
  const bytes = encodeRecord(fields, codec.encode(data));
  return new RecordImage(first, bytes, bytes.length, codec);
}

/** The same records encoded by the library. */
function expected(shown: { image: RecordImage; parts?: JsonObject }[], nextCursor: string) {
  const time = (ms: number) => ({
    seconds: BigInt(Math.floor(ms / 1000)),
    nanos: (ms % 1000) * 1_000_000,
  });
  const records = shown.map(({ image, parts }) =>
    create(RecordSchema, {
      id: image.id,
      key: image.key,
      rev: BigInt(image.rev),
      dataJson: Buffer.from(JSON.stringify(parts ?? image.data)),
      createdAt: time(image.createdAt),
      updatedAt: time(image.updatedAt),
      seq: BigInt(image.seq),
      ...(image.expiresAt && { expiresAt: time(image.expiresAt) }),
    }),
  );
  return Buffer.from(
    toBinary(FindResponseSchema, create(FindResponseSchema, { records, nextCursor, readSeq: 3n })),
  );
}

function framed(pile: RecordBatchWriter, nextCursor: string): Buffer {
  const message = { ...create(FindResponseSchema, { nextCursor, readSeq: 3n }) };
  return find.frame(Object.assign(message, { written: pile.take() }));
}

function expectSame(
  shown: { image: RecordImage; parts?: JsonObject }[],
  pile = new RecordBatchWriter(),
) {
  for (const { image, parts } of shown) pile.add(image, parts, image.seq);
  const frame = framed(pile, 'next');
  const message = expected(shown, 'next');
  expect(frame[0]).toBe(0);
  expect(frame.readUInt32BE(1)).toBe(message.length);
  expect(frame.subarray(5).equals(message)).toBe(true);
}

test('record batch: encodes records like the library', () => {
  const ms = fc.oneof(fc.integer({ min: 0, max: 2 ** 43 }), fc.constantFrom(0, 1, 999, 1_000));
  const record = fc.record({
    data: fc.dictionary(fc.constantFrom('a', 'b', 'ü"'), documentValue, { noNullPrototype: true }),
    parts: fc.option(fc.constant({ a: 1 }), { nil: undefined }),
    fields: fc.record({
      rev: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
      seq: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
      key: fc.string({ unit: 'grapheme', maxLength: 40 }),
      createdAt: ms,
      updatedAt: ms,
      expiresAt: ms,
    }),
  });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 8 }), (records) =>
      expectSame(
        records.map(({ data, parts, fields }) => {
          // Stored documents have no -0, because JSON drops its sign.
          const image = imageOf(JSON.parse(JSON.stringify(data)) as JsonObject, fields);
          return parts ? { image, parts } : { image };
        }),
      ),
    ),
    { numRuns: 300 },
  );
});

test('record batch: lengths of one, two and more bytes are correct', () => {
  const edges = [0, 20, 60, 119, 120, 127, 128, 16_300, 16_375, 16_383, 16_384, 2 ** 21, 3_000_000];
  const pile = new RecordBatchWriter();
  for (const length of edges) {
    const around = [-2, -1, 0, 1, 2].map((more) => ({
      image: imageOf({ t: 'x'.repeat(Math.max(0, length + more)) }),
    }));
    expectSame([...around, { image: imageOf({ behind: true }, { key: 'k'.repeat(1024) }) }], pile);
  }
});

test('record batch: a taken batch does not change', () => {
  const pile = new RecordBatchWriter();
  const image = imageOf({ text: 'y'.repeat(2_000) });
  for (let i = 0; i < 100; i++) pile.add(image, undefined, image.seq);
  const before = framed(pile, '');
  const copy = Buffer.from(before);
  for (let i = 0; i < 300; i++) pile.add(image, undefined, image.seq);
  framed(pile, '');
  expect(before.equals(copy)).toBe(true);
});

test('record batch: a small batch does not retain a large buffer', () => {
  const pile = new RecordBatchWriter();
  pile.add(imageOf({ a: 1 }), undefined, 9);
  expect(framed(pile, '').buffer.byteLength).toBeLessThan(16 * 1024);
});
