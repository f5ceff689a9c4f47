import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { refusalOf, useScratch } from '../../test/scratch.test-support.js';
import { date, mergePatch, ownDocument, toDocument, type JsonObject } from './documents.js';

const scratch = useScratch();

function nested(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
}
const inObject = (inner: unknown) => ({ a: inner });
const inArray = (inner: unknown) => [inner];

class Money {
  amount = 5;
}

describe('a document', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['an array', []],
    ['a string', 'text'],
    ['a number', 5],
    ['NaN', { a: NaN }],
    ['Infinity', { a: [Infinity] }],
    ['a bigint', { a: 5n }],
    ['a function', { a: () => 1 }],
    ['a symbol', { a: Symbol('x') }],
    ['an invalid Date', { when: new Date(NaN) }],
    ['a vector with NaN', { a: new Float32Array([NaN]) }],
    ['a Map', { a: new Map() }],
    ['a Set', { a: new Set() }],
    ['an instance of a class', { a: new Money() }],
    ['a boxed string', { a: new String('x') }],
    ['a field __proto__', JSON.parse('{"__proto__": 1}')],
    ['a field __proto__ further in', JSON.parse('{"a": [{"__proto__": {"b": 1}}]}')],
    ['text with a lone surrogate', { a: 'x\ud800' }],
    ['a name with a lone surrogate', { '\udc00': 1 }],
    ['33 levels of objects', nested(33, inObject)],
    ['33 levels of objects and arrays', inObject(nested(32, inArray))],
  ])('is not %s', (_what, value) => {
    expect(() => toDocument(value)).toThrow(/^BAD_DATA: /);
    expect(() => ownDocument(value)).toThrow(/^BAD_DATA: /);
  });

  test('that contains itself is refused, not followed', () => {
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    expect(() => toDocument(loop)).toThrow('deeper than 32 levels');
    expect(() => ownDocument(loop)).toThrow('deeper than 32 levels');
  });

  test('says where the trouble is', () => {
    expect(() => toDocument({ a: { list: [1, NaN] } })).toThrow('JSON has no NaN (at "a.list.1")');
    expect(() => toDocument({ a: { when: new Map() } })).toThrow('data at "a.when" is a Map');
  });

  test('takes a Date as RFC 3339, bytes as base64 and a vector as an array', () => {
    const given = { at: new Date(0), raw: Buffer.from('hi'), v: [new Float32Array([0.5, 2])] };
    const stored = { at: '1970-01-01T00:00:00.000Z', raw: { $bytes: 'aGk=' }, v: [[0.5, 2]] };
    expect(toDocument(given)).toEqual(stored);
    expect(ownDocument(given)).toEqual(stored);
    expect(date(new Date(0))).toBe(stored.at);
    expect(() => date('soon')).toThrow('is not a time');
  });

  test.each<[string, unknown]>([
    ['nothing at all', {}],
    ['32 levels of objects', nested(32, inObject)],
    ['32 levels of objects and arrays', inObject(nested(31, inArray))],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 })],
    ['names that objects inherit', { constructor: 1, toString: 2, hasOwnProperty: null }],
    ['names like numbers', { 2: 'b', 1: 'a', '01': 'c' }],
    ['an empty name', { '': { '': 1 } }],
    ['text with NUL and beyond the first plane', { a: '\0\u{1F600}' }],
    ['the largest and smallest numbers', { a: [2 ** 53, -1e308, 5e-324, 0.1, 2 ** 32, -129] }],
  ])('may hold %s', async (_what, value) => {
    const db = await scratch.open();
    const { id } = await db.collection('docs').insert(value as JsonObject);
    const again = await scratch.reopen(db);
    const read = await again.collection('docs').findById(id);
    expect(JSON.stringify(read?.data)).toBe(JSON.stringify(value));
  });

  test('loses undefined as JSON does', () => {
    const sparse = [1, undefined, 3];
    delete sparse[0];
    expect(toDocument({ a: undefined, b: sparse })).toEqual({ b: [null, null, 3] });
  });

  test('may take 2 MiB and not a byte more', async () => {
    const db = await scratch.open();
    const docs = db.collection('docs');
    const most = 2 * 1024 * 1024;
    const overhead = db.core.codec.encode({ text: 'x'.repeat(70_000) }).length - 70_000;
    const fits = await docs.insert({ text: 'x'.repeat(most - overhead) });
    expect((await docs.findById(fits.id))?.data['text']).toHaveLength(most - overhead);
    const tooLarge = docs.insert({ text: 'x'.repeat(most - overhead + 1) });
    expect((await refusalOf(tooLarge)).code).toBe('RECORD_TOO_LARGE');
    const merged = docs.merge(fits.id, { more: 'x' });
    expect((await refusalOf(merged)).code).toBe('RECORD_TOO_LARGE');
    expect((await docs.findById(fits.id))?.rev).toBe(1);
  });
});

const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    fc.constant(null),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('json'), { maxLength: 5 }),
    fc.dictionary(
      fc.oneof(
        fc.string({ unit: 'grapheme', maxLength: 5 }),
        fc.constantFrom('a', 'b', 'c', 'constructor', 'toString', 'length', '0', ''),
      ),
      tie('json'),
      { maxKeys: 6 },
    ),
  ),
}));
const document = fc
  .dictionary(fc.string({ unit: 'grapheme', maxLength: 4 }), json, { maxKeys: 8 })
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject)
  .filter((value) => !/__proto__|^\{"\$|[,{]"\$/.test(JSON.stringify(value)));

test('a document that nobody else holds is taken as it is, and what is not clean is copied', () => {
  fc.assert(
    fc.property(document, (value) => {
      expect(ownDocument(value)).toBe(value);
      expect(toDocument(value)).not.toBe(value);
    }),
  );
  for (const value of [
    { a: [{ b: -0 }] },
    { a: undefined, b: 1 },
    { a: [undefined] },
    Object.assign(Object.create(null) as object, { a: 1 }),
  ]) {
    const owned = ownDocument(value);
    expect(owned).not.toBe(value);
    expect(owned).toStrictEqual(toDocument(value));
  }
});

test('documents of any number of shapes come back as they were, also after a reopen', async () => {
  let db = await scratch.open();
  const stored = new Map<string, string>();
  await fc.assert(
    fc.asyncProperty(fc.array(document, { minLength: 1, maxLength: 40 }), async (documents) => {
      const docs = db.collection('docs');
      const made = await Promise.all(documents.map((each) => docs.insert(each)));
      for (const [i, { id }] of made.entries()) stored.set(id, JSON.stringify(documents[i]));
      const one = made[0]!;
      expect(JSON.stringify((await docs.findById(one.id))?.data)).toBe(stored.get(one.id));
    }),
    { numRuns: 40 },
  );
  for (let round = 0; round < 2; round++) {
    for (const [id, text] of stored) {
      const read = await db.collection('docs').findById(id);
      expect(JSON.stringify(read?.data)).toBe(text);
    }
    db = await scratch.reopen(db);
  }
});

test('the first record that is looked at in place after an open is read right', async () => {
  let db = await scratch.open();
  const docs = db.collection('docs');
  const made = await Promise.all(
    [0, 1, 2].map((n) => docs.insertWithKey(`k${n}`, { n, [`field${n}`]: n })),
  );
  db = await scratch.reopen(db);
  const view = db.core.snapshot();
  const seen: unknown[] = [];
  const scanned = view.scan(1, {}, ({ data, id, key, rev, seq }) => {
    seen.push({ data, id, key, rev, seq });
    return true;
  });
  const stored = Array.from(scanned, ({ data, id, key, rev, seq }) => ({
    data,
    id,
    key,
    rev,
    seq,
  }));
  view.done();
  const expected = made.map(({ data, id, key, rev, seq }) => ({ data, id, key, rev, seq }));
  expect(seen).toEqual(expected);
  expect(stored).toEqual(expected);
});

test('a merge does what RFC 7396 says', () => {
  // The examples of its appendix A whose target and patch are objects.
  const cases: [JsonObject, JsonObject, JsonObject][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, result] of cases) expect(mergePatch(target, patch)).toEqual(result);
});
