import { expect, test } from 'vitest';
import { Overlay, PendingWrites, nameOf } from './overlay.js';

function batchOf(rows: Record<string, string | undefined>): PendingWrites {
  const writes = new PendingWrites();
  for (const [key, value] of Object.entries(rows)) {
    writes.set('rows', Buffer.from(key), value === undefined ? value : Buffer.from(value));
  }
  return writes;
}

function read(overlay: Overlay, lsn: number): Record<string, string | undefined> {
  const found: Record<string, string | undefined> = {};
  for (const layer of overlay.layers.toReversed()) {
    for (const { key, value } of layer.range('rows', {}, lsn)) {
      found[key.toString()] = value?.toString();
    }
  }
  return found;
}

test('overlay: readers of an earlier batch see its rows after later batches of the same layer', () => {
  const overlay = new Overlay();
  overlay.add(batchOf({ a: '1', b: '1' }), 1, -1);
  overlay.add(batchOf({ b: '2', c: '2' }), 2, 1);
  overlay.add(batchOf({ a: undefined, c: '3' }), 3, 2);
  expect(overlay.layers).toHaveLength(1);
  expect(overlay.layers[0]).toMatchObject({ rows: 3, lastLsn: 3 });
  expect(read(overlay, 1)).toEqual({ a: '1', b: '1' });
  expect(read(overlay, 2)).toEqual({ a: '1', b: '2', c: '2' });
  expect(read(overlay, 3)).toEqual({ a: undefined, b: '2', c: '3' });
  expect(overlay.find('rows', nameOf(Buffer.from('b')))?.value?.toString()).toBe('2');
});

test('overlay: a full layer is followed by another, and takes no more rows', () => {
  const overlay = new Overlay();
  const many = Array.from({ length: 1_000 }, (_, i) => [`key ${i}`, 'first']);
  overlay.add(batchOf(Object.fromEntries(many) as Record<string, string>), 1, -1);
  overlay.add(batchOf({ 'key 0': 'second' }), 2, -1);
  expect(overlay.layers.map(({ rows, isSealed }) => ({ rows, isSealed }))).toEqual([
    { rows: 1, isSealed: false },
    { rows: 1_000, isSealed: true },
  ]);
  expect(read(overlay, 1)['key 0']).toBe('first');
  expect(read(overlay, 2)['key 0']).toBe('second');
});
