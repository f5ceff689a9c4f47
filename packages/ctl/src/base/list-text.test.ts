import { expect, test } from 'vitest';
import { plain } from '../render/paint.js';
import { yieldingColumn } from './list-text.js';

const columns = [{ title: 'ID' }, { title: 'WORDS' }, { title: 'N' }];
const rows = [['0123456789', 'a text that is rather long', 7]];
const at = (width: number) => yieldingColumn(1, columns, rows, { columns: width, paint: plain });

test('one column is cut to what the others leave', () => {
  expect(at(80)).toEqual(rows);
  expect(at(30)).toEqual([['0123456789', 'a text that is…', 7]]);
  expect(at(Infinity)).toEqual(rows);
});

test('it keeps a few letters, its tone, and shows no control character', () => {
  expect(at(5)).toEqual([['0123456789', 'a text …', 7]]);
  const painted = [['x', { text: 'abc\u001Bdefghijkl', tone: 'bad' as const }, 1]];
  expect(yieldingColumn(1, columns, painted, { columns: 5, paint: plain })).toEqual([
    ['x', { text: 'abc␛def…', tone: 'bad' }, 1],
  ]);
});
