import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCodec, type StoreCodec } from './codec.js';
import { contentHash } from './content-hash.js';
import { ownDocument, toDocument, type JsonObject } from '../value/documents.js';
import { EncodedDocument, encodeDocument, encodeValue } from './encoded-document.js';
import { fixedLength } from './record.js';

function codecOf(): StoreCodec {
  let stored: Uint8Array | undefined;
  return createCodec({ load: () => stored, save: (shapes) => (stored = shapes) });
}

const names = fc.constantFrom('a', 'b', 'name', 'größe', 'nested', '1', 'hasOwnProperty');
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, false, -0, undefined, 0x7fffffff, -0x80000000, 0xffffffff, 2 ** 53),
    fc.integer(),
    fc.integer({ min: -300, max: 300 }),
    fc.double(),
    fc.string({ maxLength: 110 }),
    fc.string({ unit: 'binary', maxLength: 80 }),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.array(tie('value'), { maxLength: 20 }),
    fc.dictionary(names, tie('value'), { maxKeys: 6 }),
  ),
}));
const documents = fc.dictionary(names, value, { maxKeys: 6 }) as fc.Arbitrary<JsonObject>;

test('packer: makes the bytes of msgpackr and the hash of the content, or gives up', () => {
  const codec = codecOf();
  let packed = 0;
  fc.assert(
    fc.property(documents, (given) => {
      const document = Object.assign({}, given);
      let clean: JsonObject | undefined;
      try {
        clean = ownDocument(document);
      } catch {
        clean = undefined;
      }
      // Teaches the shapes.
      const bytes = clean && codec.encode(clean);
      const row = codec.packer.pack(document, 3);
      if (!row) return;
      packed++;
      expect(clean).toBe(document);
      expect(row.subarray(3)).toEqual(bytes);
      expect(codec.packer.contentHash).toBe(contentHash(document));
    }),
    { numRuns: 3_000 },
  );
  expect(packed).toBeGreaterThan(300);
});

test('packer: packs documents of many shapes, also those whose number takes two bytes', () => {
  const codec = codecOf();
  const shaped = (i: number) => ({
    kind: 'x',
    [`field${i}`]: i,
    inner: { [`inner${i}`]: [i, -1 - i] },
  });
  for (let i = 0; i < 100; i++) codec.encode(shaped(i));
  for (let i = 0; i < 100; i++) {
    const row = codec.packer.pack(shaped(i), 0)!;
    expect(codec.decode(row, 0, row.length)).toEqual(shaped(i));
  }
});

test('packer: leaves an unknown shape to msgpackr, and knows it afterwards', () => {
  const codec = codecOf();
  expect(codec.packer.pack({ a: 1 }, 0)).toBeUndefined();
  codec.encode({ a: 1 });
  expect(codec.packer.pack({ a: 1 }, 0)).toBeDefined();
  expect(codec.packer.pack({ a: 1, b: 2 }, 0)).toBeUndefined();
});

test('packer: gives up on what toDocument changes or refuses', () => {
  const codec = codecOf();
  codec.encode({ a: { a: 1 } });
  const deep = (levels: number): object => (levels === 0 ? { a: 1 } : { a: deep(levels - 1) });
  const loneSurrogate = '\ud800';
  const odd = [undefined, -0, NaN, Infinity, loneSurrogate, loneSurrogate.padEnd(200), 1n, () => 1];
  for (const a of [...odd, new Date(), [undefined], Object.create(null), deep(31), Symbol('a')]) {
    expect(codec.packer.pack({ a }, 0)).toBeUndefined();
  }
  expect(codec.packer.pack({ a: deep(30) }, 0)).toBeDefined();
});

test('packer: does not overwrite documents when a chunk is full', () => {
  const codec = codecOf();
  const text = (i: number) => String(i).padEnd(i * 40, 'é');
  codec.encode({ text: '' });
  const rows: { i: number; row: Buffer }[] = [];
  for (let i = 0; i < 400; i++) {
    const row = codec.packer.pack({ text: text(i) }, fixedLength);
    if (row) rows.push({ i, row: row.fill(0xff, 0, fixedLength) });
  }
  expect(rows.length).toBeGreaterThan(200);
  for (const { i, row } of rows) {
    expect(codec.decode(row, fixedLength, row.length)).toEqual({ text: text(i) });
  }
});

test('encoded document: the same value twice gives records that do not share bytes', () => {
  const codec = codecOf();
  const fields = { rev: 1, createdAt: 1, updatedAt: 1, expiresAt: 0, key: '', contentHash: 7 };
  for (const document of [encodeDocument({ codec }, { a: 1 }), encodeValue({ codec }, { a: 1 })]) {
    const first = document.toRecord({ ...fields, seq: 1 });
    const before = Buffer.from(first);
    const second = document.toRecord({ ...fields, seq: 2 });
    const keyed = document.toRecord({ ...fields, seq: 3, key: 'k' });
    expect(first).toEqual(before);
    expect(second.subarray(fixedLength)).toEqual(before.subarray(fixedLength));
    expect(keyed.subarray(-document.size)).toEqual(before.subarray(fixedLength));
  }
});

test('encoded document: a value that changes afterwards does not change the document', () => {
  const codec = codecOf();
  codec.encode({ a: [1] });
  const value = { a: [1] };
  const document = encodeValue({ codec }, value);
  value.a.push(2);
  expect(document.dataAtHand).toBeUndefined();
  expect(document.data).toEqual({ a: [1] });
  expect(document).toBeInstanceOf(EncodedDocument);
});

test('encoded document: refuses what toDocument refuses', () => {
  const codec = codecOf();
  codec.encode({ a: 1 });
  for (const value of [null, 1, [], 'a', { a: NaN }, { a: () => 1 }, { ['__proto__']: 1 }]) {
    const refusal = (run: () => unknown): unknown => {
      try {
        return run();
      } catch (error) {
        return (error as Error).message;
      }
    };
    const expected = refusal(() => toDocument(value));
    expect(refusal(() => encodeValue({ codec }, value).data)).toEqual(expected);
    expect(refusal(() => encodeValue({ codec }, value, true).data)).toEqual(expected);
  }
});
