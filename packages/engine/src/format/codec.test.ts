import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { expect, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { ownDocument, toDocument, type JsonObject } from '../value/documents.js';
import { GrowingBytes } from '../value/bytes.js';
import { StoreCodec, JsonWriter } from './codec.js';
import { contentHash, Shapes } from './document-writer.js';
import { EncodedDocument, encodeDocument, encodeValue, fixedLength } from './record.js';

class Store {
  stored: Uint8Array | undefined;
  readonly load = () => this.stored;
  readonly save = (shapes: Uint8Array) => void (this.stored = Buffer.from(shapes));
}

/** msgpackr as versions up to 0.1.0 used it: the format must stay the one that it wrote. */
function msgpackrWith(store: Store): Packr {
  const plain = new Packr({ useRecords: false });
  return new Packr({
    getStructures: () => (store.stored ? (plain.unpack(store.stored) as object[]) : []),
    saveStructures: (shapes) => {
      store.save(plain.pack(Array.from(shapes as unknown as object[])));
    },
    maxSharedStructures: 256,
    moreTypes: false,
  });
}

const edges = [0, -1, 31, -32, -33, 63, 64, 127, 128, -128, -129, 255, 256, 32_767, -32_768];
const beyond = [-32_769, 65_535, 65_536, 2 ** 31, -(2 ** 31), 2 ** 32 - 1, 2 ** 32, 2 ** 53, 1e21];
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
const names = ['a', 'b', '', '7', '12', 'constructor', 'ümlaut', 'q"\\\n', 'long'.repeat(20)];
const name = fc
  .oneof(fc.constantFrom(...names), fc.string({ unit: 'grapheme', maxLength: 8 }))
  .filter((each) => each !== '__proto__');
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false, ...edges, ...beyond, 5e-324, 1.5, 0.1, -1e-7),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
    fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
    fc.integer(),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.string({ unit: 'grapheme-ascii', maxLength: 300 }),
    fc.string({ unit: fc.constantFrom(...special) }),
    fc.array(tie('tree'), { maxLength: 20 }),
    fc.dictionary(name, tie('tree'), { maxKeys: 5, noNullPrototype: true }),
  ),
}));
const document = fc.dictionary(name, tree, { maxKeys: 6, noNullPrototype: true });
const documents = fc.array(document as fc.Arbitrary<JsonObject>, { minLength: 1, maxLength: 8 });

/** A document inside a record: it does not begin at 0, nor end with the bytes. */
function inside(bytes: Uint8Array): { bytes: Buffer; start: number; end: number } {
  const all = Buffer.concat([Buffer.alloc(7, 0xff), bytes, Buffer.alloc(3, 0xff)]);
  return { bytes: all, start: 7, end: all.length - 3 };
}

/** Everything that can be read of a document, held against the document. */
function checkReads(codec: StoreCodec, encoded: Uint8Array, data: JsonObject): void {
  const { bytes, start, end } = inside(encoded);
  const text = JSON.stringify(data);
  expect(JSON.stringify(codec.decode(bytes, start, end))).toBe(text);
  expect(codec.json(bytes, start, end).toString()).toBe(text);
  for (const field of ['a', 'none', ...Object.keys(data)]) {
    const value = Object.hasOwn(data, field) ? data[field] : undefined;
    expect(codec.field(bytes, start, end, field)).toEqual(value);
    for (const other of ['', 'a', typeof value === 'string' ? value : 'b']) {
      const utf8 = Buffer.from(other);
      expect(codec.isText(bytes, start, end, field, other, utf8)).toBe(value === other);
    }
  }
}

test('codec: a document read, also by field and as JSON, is the one that was written', () => {
  fc.assert(
    fc.property(documents, (all) => {
      const codec = new StoreCodec(new Store());
      for (const data of all) checkReads(codec, codec.encode(data), data);
    }),
    { numRuns: campaignSize({ quick: 100, full: 600 }) },
  );
});

/** Whether there is a number in it that takes five bytes. */
function hasFloat32(value: unknown): boolean {
  if (typeof value === 'number') {
    const isWhole = value >>> 0 === value || value >> 0 === value;
    return !isWhole && Math.fround(value) === value;
  }
  return typeof value === 'object' && value !== null && Object.values(value).some(hasFloat32);
}

test('codec: a vector takes five bytes for each number', () => {
  const codec = new StoreCodec(new Store());
  const vector = Array.from(Float32Array.from({ length: 384 }, (_, i) => Math.sin(i + 1)));
  const encoded = codec.encode({ vector });
  expect(encoded.length).toBe(1 + 3 + 384 * 5);
  checkReads(codec, encoded, { vector });
});

test('codec: reads what msgpackr wrote, and msgpackr reads what it wrote', () => {
  fc.assert(
    fc.property(documents, (all) => {
      const old = new Store();
      const before = msgpackrWith(old);
      const written = all.map((data) => Buffer.from(before.pack(data)));
      const codec = new StoreCodec(old);
      all.forEach((data, i) => checkReads(codec, written[i]!, data));
      // The same bytes, with shapes of the same numbers; msgpackr wrote all fractions as doubles.
      all.forEach((data, i) => {
        const encoded = codec.encode(data);
        if (!hasFloat32(data)) expect(encoded).toEqual(written[i]);
        else expect(encoded.length).toBeLessThan(written[i]!.length);
      });
      const store = new Store();
      const fresh = new StoreCodec(store);
      const rows = all.map((data) => Buffer.from(fresh.encode(data)));
      const after = msgpackrWith(store);
      all.forEach((data, i) => expect(after.unpack(rows[i]!)).toEqual(data));
    }),
    { numRuns: campaignSize({ quick: 60, full: 300 }) },
  );
});

test('codec: reads the shapes that documents of msgpackr define themselves', () => {
  const store = new Store();
  const before = msgpackrWith(store);
  const all = Array.from({ length: 700 }, (_, i) => ({
    [`f${i}`]: { deep: [i, {}], [`g${i}`]: 1 },
    n: i,
    again: [{ [`f${i}`]: 1 }, { [`f${i}`]: 2 }],
    s: `text ${i}`,
  }));
  const written = all.map((data) => Buffer.from(before.pack(data)));
  const codec = new StoreCodec(store);
  all.forEach((data, i) => checkReads(codec, written[i]!, data));
});

test('codec: another one reads what was written, with the stored shapes', () => {
  const store = new Store();
  const first = new StoreCodec(store);
  const data = (i: number) => ({ [`f${i % 300}`]: i, x: [{ y: i }] });
  const written = Array.from({ length: 400 }, (_, i) => Buffer.from(first.encode(data(i))));
  const second = new StoreCodec(store);
  written.forEach((bytes, i) => checkReads(second, bytes, data(i)));
});

test('codec: writes objects of more shapes than are stored, and dictionaries, with their names', () => {
  const store = new Store();
  const codec = new StoreCodec(store);
  for (let i = 0; i < 600; i++) {
    const data = { [`f${i}`]: { deep: [i, {}] }, n: i, s: `text ${i}` };
    checkReads(codec, codec.encode(data), data);
  }
  const wide = Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`n${i}`, i]));
  const fresh = new StoreCodec(store);
  const encoded = inside(fresh.encode({ wide }));
  expect(fresh.decode(encoded.bytes, encoded.start, encoded.end)).toEqual({ wide });
  expect(store.stored!.length).toBeLessThan(20_000);
});

test('codec: writes long texts, arrays and documents', () => {
  const codec = new StoreCodec(new Store());
  for (const length of [1, 31, 32, 63, 64, 255, 256, 65_535, 65_536, 400_000]) {
    for (const unit of ['x', 'é']) {
      const data = { t: unit.repeat(length), after: 1 };
      checkReads(codec, codec.encode(data), data);
    }
  }
  const long = {
    text: '\u0001'.repeat(700_000),
    list: Array.from({ length: 70_000 }, (_, i) => i),
  };
  checkReads(codec, codec.encode(long), long);
  checkReads(codec, codec.encode({ small: 1 }), { small: 1 });
});

test('codec: does not overwrite documents when a chunk is full', () => {
  const codec = new StoreCodec(new Store());
  const text = (i: number) => String(i).padEnd(i * 40, 'é');
  const rows = Array.from({ length: 400 }, (_, i) =>
    codec.writer.write({ text: text(i) }, fixedLength)!.fill(0xff, 0, fixedLength),
  );
  rows.forEach((row, i) => {
    expect(codec.decode(row, fixedLength, row.length)).toEqual({ text: text(i) });
  });
});

const anyValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, -0, undefined, 0x7fffffff, -0x80000000, Number.NaN, 2 ** 53),
    fc.integer(),
    fc.double(),
    fc.string({ unit: 'binary', maxLength: 80 }),
    fc.string({ maxLength: 110 }),
    fc.array(tie('value'), { maxLength: 20 }),
    fc.dictionary(fc.constantFrom('a', 'b', '\ud800', '__proto__'), tie('value'), { maxKeys: 4 }),
  ),
})).value;

test('writer: takes the documents that are clean, and hashes their content', () => {
  const codec = new StoreCodec(new Store());
  const runs = campaignSize({ quick: 600, full: 3_000 });
  let written = 0;
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c'), anyValue), (given) => {
      const value = { ...given };
      let isClean: boolean;
      try {
        isClean = ownDocument(value) === value;
      } catch {
        isClean = false;
      }
      const row = codec.writer.write(value, 3);
      expect(row !== undefined).toBe(isClean);
      if (!row) return;
      written++;
      expect(codec.writer.contentHash).toBe(contentHash(value as JsonObject));
      expect(JSON.stringify(codec.decode(row, 3, row.length))).toBe(JSON.stringify(value));
    }),
    { numRuns: runs },
  );
  expect(written).toBeGreaterThan(runs / 10);
});

test('writer: hashes the content of objects that carry their names', () => {
  const codec = new StoreCodec(new Store());
  for (let i = 0; i < 400; i++) {
    const data = { [`f${i}`]: [{ [`g${i}`]: `text ${i}` }], n: { b: null } };
    expect(codec.writer.write(data, 0)).toBeDefined();
    expect(codec.writer.contentHash).toBe(contentHash(data));
  }
});

test('writer: a document that is not clean leaves no shapes behind', () => {
  const store = new Store();
  const codec = new StoreCodec(store);
  expect(codec.writer.write({ x: { y: 1 }, z: undefined }, 0)).toBeUndefined();
  expect(store.stored).toBeUndefined();
  const data = { x: { y: 1 }, w: 2 };
  const encoded = codec.encode({ y: 1 });
  checkReads(new StoreCodec(store), encoded, { y: 1 });
  checkReads(codec, codec.encode(data), data);
});

test('reader: refuses documents that are cut off or damaged', () => {
  const codec = new StoreCodec(new Store());
  const data = { a: 'text', b: 0.1, c: [1, 300, 70_000], d: { a: 'é', b: 'x'.repeat(50) } };
  const whole = Buffer.from(codec.encode(data));
  for (let end = 0; end < whole.length; end++) {
    const cut = Buffer.from(whole.subarray(0, end));
    expect(() => codec.decode(cut, 0, end)).toThrow('damaged');
    expect(() => codec.decode(whole, 0, end)).toThrow('damaged');
    expect(() => codec.json(whole, 0, end)).toThrow('damaged');
  }
  for (const bytes of [[0xc1], [0x7f, 0xff], [0xd4, 0x01, 0x40], [0x81, 0x01, 0x01], [0xdd, 255]]) {
    expect(() => codec.decode(Buffer.from(bytes), 0, bytes.length)).toThrow('damaged');
  }
});

test('json writer: writes nothing of what is no JSON document', () => {
  const writer = new JsonWriter(new Shapes([]));
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

test('encoded document: the same value twice gives records that do not share bytes', () => {
  const codec = new StoreCodec(new Store());
  const fields = { rev: 1, createdAt: 1, updatedAt: 1, expiresAt: 0, key: '', contentHash: 7 };
  for (const encoded of [encodeDocument({ codec }, { a: 1 }), encodeValue({ codec }, { a: 1 })]) {
    const first = encoded.toRecord({ ...fields, seq: 1 });
    const before = Buffer.from(first);
    const second = encoded.toRecord({ ...fields, seq: 2 });
    const keyed = encoded.toRecord({ ...fields, seq: 3, key: 'k' });
    expect(first).toEqual(before);
    expect(second.subarray(fixedLength)).toEqual(before.subarray(fixedLength));
    expect(keyed.subarray(-encoded.size)).toEqual(before.subarray(fixedLength));
  }
});

test('encoded document: a value that changes afterwards does not change the document', () => {
  const codec = new StoreCodec(new Store());
  const value = { a: [1] };
  const encoded = encodeValue({ codec }, value);
  value.a.push(2);
  expect(encoded.decodedData).toBeUndefined();
  expect(encoded.data).toEqual({ a: [1] });
  expect(encoded).toBeInstanceOf(EncodedDocument);
});

test('encoded document: refuses what toDocument refuses', () => {
  const codec = new StoreCodec(new Store());
  for (const value of [null, 1, [], 'a', { a: Number.NaN }, { a: () => 1 }, { ['__proto__']: 1 }]) {
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
