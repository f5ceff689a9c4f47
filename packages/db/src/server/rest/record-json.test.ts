import fc from 'fast-check';
import { documentValue } from '../document.test-support.js';
import { expect, test } from 'vitest';
import { StoreCodec } from '@millrace/engine/format/codec';
import type { JsonObject } from '@millrace/engine/value/documents';
import { encodeRecord, RecordImage, type RecordFields } from '@millrace/engine/format/record';
import { ShownRecord } from '../service/records.js';
import { JsonRecordWriter, recordText } from './json-out.js';

const codec = new StoreCodec({ load: () => undefined, save: () => undefined });
const id = '01JD0000000000000000000000';
const frame = (before: string, between: string, after: string) => ({
  before: Buffer.from(before),
  between: Buffer.from(between),
  after: Buffer.from(after),
});
const page = frame('', ',', '');
const lines = frame('{"record":', '', '}\n');

interface Case {
  data: JsonObject;
  fields: Partial<RecordFields>;
  parts: JsonObject | undefined;
  commit: number;
}

function imageOf({ data, fields }: Case): RecordImage {
  const times = { createdAt: 1_700_000_000_123, updatedAt: 1_700_000_000_124, expiresAt: 0 };
  const all = { rev: 1, seq: 9, key: '', contentHash: 7, ...times, ...fields };
  const bytes = encodeRecord(all, codec.encode(data));
  return new RecordImage(id, bytes, bytes.length, codec);
}

/** The same by way of the decoded document. */
function expected(one: Case): string {
  const image = imageOf(one);
  const time = (ms: number) => new Date(ms).toISOString();
  return JSON.stringify({
    id,
    key: image.key,
    rev: image.rev,
    data: one.parts ?? image.data,
    created_at: time(image.createdAt),
    updated_at: time(image.updatedAt),
    seq: one.commit,
    expires_at: image.expiresAt ? time(image.expiresAt) : undefined,
  });
}

const key = fc.oneof(fc.constant(''), fc.string({ unit: 'grapheme', maxLength: 40 }));
const time = fc.integer({ min: 0, max: 253_402_300_799_999 });
// Stored documents have no -0, because JSON drops its sign.
const document = fc
  .dictionary(fc.constantFrom('a', 'b', 'ü"'), documentValue, { noNullPrototype: true })
  .map((data) => JSON.parse(JSON.stringify(data)) as JsonObject);
const cases: fc.Arbitrary<Case> = fc.record({
  data: document,
  fields: fc.record({ key, createdAt: time, updatedAt: time, expiresAt: time, rev: fc.nat() }),
  parts: fc.option(document, { nil: undefined }),
  commit: fc.nat(),
});

test('record JSON: stored bytes become the text of the decoded record', () => {
  fc.assert(
    fc.property(cases, (one) => {
      const shown = new ShownRecord(imageOf(one), one.parts, one.commit);
      expect(recordText(shown)).toBe(expected(one));
    }),
  );
});

test('record JSON: batches of a page and of lines, also from writers in turns', () => {
  fc.assert(
    fc.property(fc.array(cases), fc.array(cases), (first, second) => {
      const [pages, rows] = [new JsonRecordWriter(page), new JsonRecordWriter(lines)];
      for (const batch of [first, second]) {
        for (const one of batch) {
          for (const writer of [pages, rows]) writer.add(imageOf(one), one.parts, one.commit);
        }
        const texts = batch.map(expected);
        expect(pages.take().bytes.toString()).toBe(texts.join(','));
        const rowTexts = texts.map((text) => `{"record":${text}}\n`);
        expect(rows.take().bytes.toString()).toBe(rowTexts.join(''));
      }
    }),
  );
});

test('record JSON: a record larger than the buffer', () => {
  const data = { text: 'ä"\n'.repeat(100_000) };
  const one = { data, fields: { key: 'ключ' }, parts: undefined, commit: 3 };
  const writer = new JsonRecordWriter(page);
  writer.add(imageOf(one), undefined, 3);
  expect(writer.take().bytes.toString()).toBe(expected(one));
});
