import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { expect, test } from 'vitest';
import { DocumentReader } from './document-reader.js';
import type { JsonObject } from '../value/documents.js';

/** As codec.ts makes it. */
function codec() {
  let stored: string[][] = [];
  const packr = new Packr({
    getStructures: () => stored,
    saveStructures: (shapes) => void (stored = Array.from(shapes as unknown as string[][])),
    maxSharedStructures: 256,
    moreTypes: false,
  });
  const shapes = () => (packr as unknown as { structures: string[][] }).structures;
  return { packr, reader: new DocumentReader(shapes) };
}

const name = fc.constantFrom('a', 'b', 'name', 'constructor', 'ümlaut', '7', 'long'.repeat(20));
const numbers = [
  0,
  -1,
  -32,
  -33,
  -128,
  -129,
  -32_768,
  -32_769,
  -(2 ** 31),
  63,
  64,
  127,
  128,
  255,
  256,
  65_535,
  65_536,
  2 ** 32,
  0.1,
];
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false, ...numbers),
    fc.integer(),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.string({ unit: 'grapheme-ascii', maxLength: 300 }),
    fc.array(tie('tree'), { maxLength: 20 }),
    fc.dictionary(name, tie('tree'), { maxKeys: 5, noNullPrototype: true }),
  ),
}));
const document = fc.dictionary(name, tree, { maxKeys: 6, noNullPrototype: true });

test('document reader: a decoded document is the one that was encoded', () => {
  let decided = 0;
  fc.assert(
    fc.property(fc.array(document, { minLength: 1, maxLength: 4 }), (documents) => {
      const { packr, reader } = codec();
      for (const each of documents) {
        // Records stand behind a head, so the document does not begin at 0.
        const bytes = Buffer.concat([Buffer.alloc(7), packr.pack(each), Buffer.alloc(3)]);
        const value = reader.read(bytes, 7, bytes.length - 3);
        if (value === undefined) continue;
        decided++;
        expect(JSON.stringify(value)).toBe(JSON.stringify(each));
      }
    }),
    { numRuns: 300 },
  );
  expect(decided).toBeGreaterThan(500);
});

test('document reader: leaves documents that are cut off to msgpackr', () => {
  const { packr, reader } = codec();
  const data: JsonObject = { a: 'text', b: 0.1, c: [1, 300, 70_000], d: { a: 'é', b: 'x' } };
  const whole = Buffer.from(packr.pack(data));
  expect(reader.read(whole, 0, whole.length)).toEqual(data);
  for (let end = 1; end < whole.length; end++) {
    expect(reader.read(whole, 0, end)).toBeUndefined();
    expect(reader.read(Buffer.from(whole.subarray(0, end)), 0, end)).toBeUndefined();
  }
});

test('document reader: leaves long documents and unknown forms to msgpackr', () => {
  const { packr, reader } = codec();
  const long = Buffer.from(packr.pack({ text: 'x'.repeat(5_000) }));
  expect(reader.read(long, 0, long.length)).toBeUndefined();
  const map = Buffer.from(new Packr({ useRecords: false }).pack({ a: 1 }));
  expect(reader.read(map, 0, map.length)).toBeUndefined();
});
