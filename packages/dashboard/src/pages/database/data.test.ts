import { expect, test } from 'vitest';
import { dataText, differing, readData } from './data.js';

test('readData: round-trips dataText', () => {
  const data = { name: 'Ada', tags: ['a'], deep: { x: null } };
  expect(readData(dataText(data))).toEqual({ data });
});

test.each(['', '{', '{"a":1,}'])('readData: %s is invalid JSON', (text) => {
  expect(readData(text)).toEqual({ error: expect.stringContaining('Invalid JSON') });
});

test.each(['1', '"text"', 'null', '[{}]'])('readData: %s is not an object', (text) => {
  expect(readData(text)).toEqual({ error: expect.stringContaining('JSON object') });
});

test('differing: lists changed, added and removed fields', () => {
  const theirs = { same: { x: 1 }, changed: 1, theirs: true };
  expect(differing(theirs, '{"same":{"x":1},"changed":2,"mine":null}')).toEqual([
    'changed',
    'theirs',
    'mine',
  ]);
  expect(differing(theirs, 'no JSON')).toEqual([]);
});
