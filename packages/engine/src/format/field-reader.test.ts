import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCodec, type Codec } from './codec.js';
import type { JsonObject } from '../value/documents.js';
import { undecided } from './field-reader.js';

function codec(): Codec {
  let stored: Uint8Array | undefined;
  return createCodec({ load: () => stored, save: (shapes) => (stored = shapes) });
}

const name = fc.constantFrom('a', 'b', 'name', 'constructor', 'ümlaut', 'long'.repeat(20));
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false, 0, -1, 63, 64, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32),
    // JSON has no -0, and neither have documents.
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
    fc.integer(),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.array(tie('tree'), { maxLength: 20 }),
    fc.dictionary(name, tie('tree'), { maxKeys: 5, noNullPrototype: true }),
  ),
}));
const document = fc.dictionary(name, tree, { maxKeys: 6, noNullPrototype: true });

test('one field read alone is the field of the decoded document', () => {
  let decided = 0;
  fc.assert(
    fc.property(fc.array(document, { minLength: 1, maxLength: 8 }), name, (documents, wanted) => {
      const { encode, decode, field } = codec();
      for (const each of documents as JsonObject[]) {
        // Records stand behind a head, so the document does not begin at 0.
        const bytes = Buffer.concat([Buffer.alloc(7), encode(each), Buffer.alloc(3)]);
        const end = bytes.length - 3;
        const whole = decode(bytes, 7, end);
        expect(whole).toEqual(each);
        const alone = field(bytes, 7, end, wanted);
        if (alone === undecided) continue;
        decided++;
        expect(alone).toEqual(Object.hasOwn(whole, wanted) ? whole[wanted] : undefined);
      }
    }),
    { numRuns: 500 },
  );
  expect(decided).toBeGreaterThan(500);
});

test('a field is recognised as text without being read', () => {
  const near = fc.constantFrom('', 'a', 'ü', 'é'.repeat(40), 'x'.repeat(300), 'y'.repeat(70_000));
  const others = fc.constantFrom<unknown>(null, true, 1, 2 ** 40, ['a'], { a: 'a' });
  const value = fc.oneof(near, others, fc.string({ unit: 'grapheme', maxLength: 40 }));
  const pair = fc.record({ a: value, b: value });
  fc.assert(
    fc.property(pair, near, fc.constantFrom('a', 'b', 'c'), (each, text, wanted) => {
      const { encode, isText } = codec();
      const bytes = Buffer.concat([Buffer.alloc(7), encode(each as JsonObject), Buffer.alloc(3)]);
      const is = isText(bytes, 7, bytes.length - 3, wanted, Buffer.from(text));
      expect(is).toBe((each as Record<string, unknown>)[wanted] === text);
    }),
    { numRuns: 500 },
  );
});

test('documents of more shapes than one byte can name are read alone too', () => {
  const { encode, field } = codec();
  for (let i = 0; i < 300; i++) {
    const bytes = encode({ [`f${i}`]: { deep: [i] }, n: i, s: `text ${i}` });
    const alone = field(bytes, 0, bytes.length, 's');
    if (i < 120) expect(alone).toBe(`text ${i}`);
    else expect([`text ${i}`, undecided]).toContain(alone);
  }
});

test('what one codec wrote, another reads with the stored shapes', () => {
  let stored: Uint8Array | undefined;
  const store = { load: () => stored, save: (shapes: Uint8Array) => void (stored = shapes) };
  const first = createCodec(store);
  const written = Array.from({ length: 400 }, (_, i) =>
    first.encode({ [`f${i % 300}`]: i, x: [{ y: i }] }),
  );
  const second = createCodec(store);
  written.forEach((bytes, i) => {
    expect(second.decode(bytes, 0, bytes.length)).toEqual({ [`f${i % 300}`]: i, x: [{ y: i }] });
  });
});
