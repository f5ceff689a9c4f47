import { expect, test } from 'vitest';
import { dataText, differing, readData } from './data.js';

test('what is shown is read back as it was', () => {
  const data = { name: 'Ada', tags: ['a'], deep: { x: null } };
  expect(readData(dataText(data))).toEqual({ data });
});

test.each(['', '{', '{"a":1,}'])('%s is not JSON', (text) => {
  expect(readData(text)).toEqual({ error: expect.stringContaining('not JSON') });
});

test.each(['1', '"text"', 'null', '[{}]'])('%s is no record', (text) => {
  expect(readData(text)).toEqual({ error: expect.stringContaining('an object') });
});

test('the fields that differ are named, those that only one has included', () => {
  const theirs = { same: { x: 1 }, changed: 1, theirs: true };
  expect(differing(theirs, '{"same":{"x":1},"changed":2,"mine":null}')).toEqual([
    'changed',
    'theirs',
    'mine',
  ]);
  expect(differing(theirs, 'no JSON')).toEqual([]);
});
