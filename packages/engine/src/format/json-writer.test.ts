import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { expect, test } from 'vitest';
import { createCodec, type Codec } from './codec.js';
import type { JsonObject } from '../value/documents.js';
import { GrowingBytes } from '../value/growing-bytes.js';
import { JsonWriter } from './json-writer.js';

function codec(): Codec {
  let stored: Uint8Array | undefined;
  return createCodec({ load: () => stored, save: (shapes) => (stored = shapes) });
}

const names = ['a', 'b', '', '7', '12', 'constructor', 'ümlaut', 'q"\\\n', 'long'.repeat(20)];
const name = fc.oneof(fc.constantFrom(...names), fc.string({ unit: 'grapheme', maxLength: 8 }));
const special = [
  'a',
  '"',
  '\\',
  '/',
  '\b',
  '\f',
  '\n',
  '\r',
  '\t',
  '\0',
  '\u0001',
  '\u001f',
].concat(['\u007f', '\u2028', 'é', '€', '😀']);
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.string({ unit: fc.constantFrom(...special) }),
);
const edges = [0, -1, 31, -32, -33, 63, 64, 127, 128, -128, -129, 255, 256, 32_767, -32_768];
const beyond = [-32_769, 65_535, 65_536, 2 ** 31, -(2 ** 31), 2 ** 32 - 1, 2 ** 32, 2 ** 53, 1e21];
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false, ...edges, ...beyond, 5e-324, 1.5, 0.1, -1e-7),
    // JSON has no -0, and neither have documents.
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
    fc.integer(),
    text,
    fc.array(tie('tree'), { maxLength: 20 }),
    fc.dictionary(name, tie('tree'), { maxKeys: 5, noNullPrototype: true }),
  ),
}));
const document = fc.dictionary(name, tree, { maxKeys: 6, noNullPrototype: true });

function check({ encode, decode, json }: Codec, each: JsonObject): void {
  // Records stand behind a head, so the document does not begin at 0.
  const bytes = Buffer.concat([Buffer.alloc(7), encode(each), Buffer.alloc(3)]);
  const end = bytes.length - 3;
  expect(json(bytes, 7, end).toString()).toBe(JSON.stringify(decode(bytes, 7, end)));
  expect(json(bytes, 7, end).toString()).toBe(JSON.stringify(each));
}

test('the text made of the bytes is the text of the decoded document', () => {
  fc.assert(
    fc.property(fc.array(document, { minLength: 1, maxLength: 8 }), (documents) => {
      const one = codec();
      for (const each of documents as JsonObject[]) check(one, each);
    }),
    { numRuns: 600 },
  );
});

test('documents of more shapes than are kept have their text too', () => {
  const one = codec();
  for (let i = 0; i < 600; i++) check(one, { [`f${i}`]: { deep: [i, {}] }, n: i, s: `text ${i}` });
});

test('a document that takes more than the room there is has its text too', () => {
  const one = codec();
  check(one, { text: '\u0001'.repeat(700_000), list: Array.from({ length: 70_000 }, (_, i) => i) });
  check(one, { wide: Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`n${i}`, i])) });
  check(one, { small: 1 });
});

test('text keeps what is not ASCII as it is, in texts longer than short ones as well', () => {
  const one = codec();
  for (const length of [1, 31, 32, 255, 256, 65_535, 65_536]) check(one, { t: 'é'.repeat(length) });
});

test('what no JSON document holds is left to the decoder', () => {
  const writer = new JsonWriter(() => []);
  const write = (bytes: Uint8Array, end: number): string | undefined => {
    const to = new GrowingBytes(1);
    const isWritten = writer.write(to, bytes, 0, end);
    if (!isWritten) expect(to.at).toBe(0);
    return isWritten ? to.bytes.toString('utf8', 0, to.at) : undefined;
  };
  const plain = new Packr({ useRecords: false });
  const others = [new Date(0), 2n ** 60n, undefined, Number.NaN, new Map([[1, 2]]), Buffer.of(1)];
  for (const value of others) {
    const bytes = plain.pack({ value });
    expect(write(bytes, bytes.length)).toBeUndefined();
  }
  const bytes = plain.pack({ value: [1] });
  expect(write(bytes, bytes.length)).toBe('{"value":[1]}');
  // Bytes behind or short of the document are no document.
  expect(write(bytes, bytes.length - 1)).toBeUndefined();
  expect(write(Buffer.concat([bytes, bytes]), 2 * bytes.length)).toBeUndefined();
});
