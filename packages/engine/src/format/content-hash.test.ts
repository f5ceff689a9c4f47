import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { contentHash } from './document-writer.js';
import type { Json, JsonObject } from '../value/documents.js';
import * as arbitrary from '../query/arbitraries.test-support.js';

const copyOf = (data: Json) => JSON.parse(JSON.stringify(data)) as JsonObject;

describe('the hash of a document', () => {
  test('is the same for the same content', () => {
    fc.assert(
      fc.property(arbitrary.document, (data) => {
        expect(contentHash(copyOf(data))).toBe(contentHash(data as JsonObject));
      }),
    );
  });

  test('is 32 bits', () => {
    for (const text of ['', 'a', 'é'.repeat(40), 'long '.repeat(100)]) {
      const hash = contentHash({ text });
      expect(hash).toBe(hash >>> 0);
    }
  });

  test('differs when one character of a text or a name does, short or long', () => {
    for (const length of [1, 5, 95, 96, 97, 5_000]) {
      const text = 'x'.repeat(length);
      for (let at = 0; at < length; at += Math.ceil(length / 10)) {
        const other = `${text.slice(0, at)}y${text.slice(at + 1)}`;
        expect(contentHash({ text })).not.toBe(contentHash({ text: other }));
        expect(contentHash({ [text]: 1 })).not.toBe(contentHash({ [other]: 1 }));
      }
    }
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['a number and its text', { a: 1 }, { a: '1' }],
    ['null and no field', { a: null }, {}],
    ['false and null', { a: false }, { a: null }],
    ['an array and its element', { a: [1] }, { a: 1 }],
    ['an empty array and an empty object', { a: [] }, { a: {} }],
    ['nested and flat', { a: { b: 1 } }, { a: {}, b: 1 }],
    ['where an array ends', { a: [[1], 2] }, { a: [[1, 2]] }],
    ['neighbouring fractions', { a: 0.1 + 0.2 }, { a: 0.3 }],
    ['large whole numbers', { a: 2 ** 53 - 1 }, { a: 2 ** 53 - 2 }],
    ['a whole number and its wrapped twin', { a: 2 ** 32 }, { a: 0 }],
    ['texts split elsewhere', { a: 'xy', b: 'z' }, { a: 'x', b: 'yz' }],
    ['fields in another order', { a: 1, b: 2 }, { b: 2, a: 1 }],
  ])('tells apart %s', (_title, left, right) => {
    expect(contentHash(left)).not.toBe(contentHash(right));
  });

  test('rarely meets itself', () => {
    const seen = new Set<number>();
    for (let i = 0; i < 20_000; i++) seen.add(contentHash({ name: `Person ${i}`, age: i % 90 }));
    // Of 20,000 random numbers of 32 bits, 0.05 pairs are the same.
    expect(seen.size).toBeGreaterThanOrEqual(19_998);
  });
});
