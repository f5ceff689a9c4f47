import { expect, test } from 'vitest';
import { PendingWrites } from '../overlay/overlay.js';
import { encodeFrame, frameRows, isSound, sealFrame } from './segment.js';
import type { CommitRow } from '../../format/record.js';

/** A commit of two bytes and these images. */
function commitOf(seq: number, images: readonly Buffer[]): CommitRow {
  const pairs: CommitRow['images'][number][] = [];
  let at = 2;
  for (const image of images) {
    pairs.push(image, at);
    at += image.length;
  }
  return { seq, bytes: Buffer.concat([Buffer.from('--'), ...images]), images: pairs };
}

test('frame: rows refer to the images of their commits, also of records written twice', () => {
  const [a1, b1, a2, c1] = ['a one', 'b one', 'a two!', 'c one'].map((text) => Buffer.from(text));
  const writes = new PendingWrites();
  const put = (key: string, value: Buffer) => writes.set('records', Buffer.from(key), value);
  put('a', a1!);
  put('b', b1!);
  writes.set('index', Buffer.from('entry'), Buffer.alloc(0));
  put('a', a2!);
  put('c', c1!);
  put('d', Buffer.from('of no commit'));
  writes.set('records', Buffer.from('e'), undefined);
  const commits = [commitOf(7, [a1!, b1!]), commitOf(8, [a2!, c1!])];
  const frame = encodeFrame({ lsn: 3, at: 5, epoch: 1, commits, writes });
  sealFrame(frame, 11);
  expect(isSound(frame, 11)).toBe(true);
  const rows = [...frameRows(frame)].map(({ table, key, value }) => [
    table,
    key.toString(),
    value?.toString(),
  ]);
  expect(rows).toEqual([
    ['records', 'a', 'a two!'],
    ['records', 'b', 'b one'],
    ['records', 'c', 'c one'],
    ['records', 'd', 'of no commit'],
    ['records', 'e', undefined],
    ['index', 'entry', ''],
  ]);
  // An image is in the frame once.
  expect(frame.toString('latin1').split('b one')).toHaveLength(2);
});
