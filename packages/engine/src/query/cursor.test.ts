import { expect, test } from 'vitest';
import { cursorLifetimeMs, fingerprintOf, readCursor, writeCursor } from './page.js';
import { checkFind, type FindQuery } from './query.js';
import { idOf } from './memory-view.test-support.js';

const query: FindQuery = {
  filter: { field: 'a', op: 'gt', value: 1 },
  orderBy: [{ field: 'a' }, { field: 'b', desc: true }],
};
const { condition, order } = checkFind(query);
const fingerprint = fingerprintOf('things', condition, order);
const position = { keys: [{ x: ['é\u{1F600}', null] }, undefined], id: idOf(7) };
const now = 1_000_000_000_000;
const cursor = writeCursor(position, fingerprint, now);
const read = (text: string, at = now) => readCursor(text, fingerprint, order, at);

test('a cursor brings back the position it was made of', () => {
  expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
  expect(read(cursor)).toEqual(position);
});

test('a cursor serves for 24 hours', () => {
  expect(read(cursor, now + cursorLifetimeMs)).toEqual(position);
  expect(() => read(cursor, now + cursorLifetimeMs + 1)).toThrow('CURSOR_EXPIRED');
});

test('a cursor of another collection, filter or order is refused', () => {
  const other = (change: FindQuery, name = 'things') => {
    const checked = checkFind({ ...query, ...change });
    return fingerprintOf(name, checked.condition, checked.order);
  };
  const others = [
    other({}, 'others'),
    other({ filter: { field: 'a', op: 'gte', value: 1 } }),
    other({ filter: { field: 'a', op: 'gt', value: '1' } }),
    other({ orderBy: [{ field: 'a' }] }),
    other({ orderBy: [{ field: 'a' }, { field: 'b' }] }),
    other({ orderBy: [...query.orderBy!, { field: '$id', desc: true }] }),
  ];
  expect(new Set([...others, fingerprint]).size).toBe(others.length + 1);
  for (const each of others) {
    expect(() => readCursor(cursor, each, order, now)).toThrow('BAD_CURSOR: The cursor belongs to');
  }
  expect(other({ limit: 5, fields: ['a'] })).toBe(fingerprint);
});

test('what is no cursor is refused', () => {
  const made = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
  const deep = JSON.parse('['.repeat(50) + ']'.repeat(50));
  const texts = [
    'x',
    '!!!',
    Buffer.from('{}').toString('base64url'),
    cursor.slice(0, -8),
    made(),
    made(2, now, fingerprint, [[1], []], idOf(7)),
    made(1, 'now', fingerprint, [[1], []], idOf(7)),
    made(1, now, 5, [[1], []], idOf(7)),
    made(1, now, fingerprint, 'keys', idOf(7)),
    made(1, now, fingerprint, [1, 2], idOf(7)),
    made(1, now, fingerprint, [[1, 2], []], idOf(7)),
    made(1, now, fingerprint, [[1], []], 'id'),
    made(1, now, fingerprint, [[deep], []], idOf(7)),
    made(1, now, fingerprint, [[1]], idOf(7)),
  ];
  for (const text of texts) expect(() => read(text), text.slice(0, 40)).toThrow('BAD_CURSOR');
});
