import { systemClock } from '@millrace/kit/clock';
import { expect, test } from 'vitest';
import { Cursors, type CursorScope } from './cursors.js';

const day = 86_400_000;
let now = 1_000_000;
const clock = { ...systemClock, now: () => now };
const cursors = new Cursors(new Uint8Array(32).fill(7), clock);
const scope: CursorScope = { list: 'dlq', filter: { queue: 'mail' }, incarnation: 'a' };
const place = [5, '01JD3Z8Q4M7X2N5V9RTBKWCH6E'];

test('a cursor restores its position, also on another server with the same key', () => {
  const cursor = cursors.seal(scope, place);
  expect(cursors.open(scope, cursor)).toEqual(place);
  expect(new Cursors(new Uint8Array(32).fill(7), clock).open(scope, cursor)).toEqual(place);
  expect(cursor).toMatch(/^c1\.[\w-]+\.[\w-]+$/);
});

test('a cursor is good for its list, filter, queue and life of the queue alone', () => {
  const cursor = cursors.seal(scope, place);
  const others: CursorScope[] = [
    { ...scope, list: 'audit' },
    { ...scope, incarnation: 'b' },
    { ...scope, incarnation: undefined },
    { ...scope, filter: { queue: 'other' } },
    { ...scope, filter: { queue: 'mail', errorType: 'X' } },
    { ...scope, filter: {} },
  ];
  for (const other of others) expect(cursors.open(other, cursor)).toBeUndefined();
});

test('what is left out of a filter and what is undefined in it are the same, in any order', () => {
  const cursor = cursors.seal({ list: 'dlq', filter: { a: 1, b: undefined, c: 2 } }, place);
  expect(cursors.open({ list: 'dlq', filter: { c: 2, a: 1 } }, cursor)).toEqual(place);
  expect(cursors.open({ list: 'dlq', filter: { c: '2', a: 1 } }, cursor)).toBeUndefined();
});

test('a cursor is good for a day', () => {
  const cursor = cursors.seal(scope, place);
  now += day;
  expect(cursors.open(scope, cursor)).toEqual(place);
  now += 1;
  expect(cursors.open(scope, cursor)).toBeUndefined();
});

test('no change of a single character goes unnoticed', () => {
  const cursor = cursors.seal(scope, place);
  for (let at = 0; at < cursor.length; at++) {
    for (const letter of ['A', 'B', '=', '.', ' ']) {
      const changed = cursor.slice(0, at) + letter + cursor.slice(at + 1);
      if (changed !== cursor) expect(cursors.open(scope, changed)).toBeUndefined();
    }
  }
  for (const other of ['', '.', '..', `${cursor}=`, `${cursor} `, cursor.slice(0, -1)]) {
    expect(cursors.open(scope, other)).toBeUndefined();
  }
});

test('another key opens nothing', () => {
  const cursor = cursors.seal(scope, place);
  expect(new Cursors(new Uint8Array(32).fill(8), clock).open(scope, cursor)).toBeUndefined();
});
