import { expect, test } from 'vitest';
import { useScratch } from '../../test/scratch.test-support.js';
import type { VisibleChange } from './message.js';
import { next, settle, take } from './watch.test-support.js';

const scratch = useScratch();

async function openWatched() {
  const db = await scratch.open();
  let shows = 0;
  const open = (shareKey?: string, startSeq = 0) =>
    db.watches.open<string>({
      collection: 'items',
      shareKey,
      startSeq,
      show: ({ id }: VisibleChange) => `${++shows} ${id}`,
    });
  return { db, open, items: db.collection('items'), shown: () => shows };
}

test('watches of one look are given the same messages, each made once', async () => {
  const { open, items, shown } = await openWatched();
  const [a, b, c] = [open('x'), open('x'), open('x')];
  for (let n = 0; n < 5; n++) await items.insert({ n });
  const messages = await take(a, 5);
  const again = await take(b, 5);
  expect(shown()).toBe(5);
  again.forEach((message, i) => expect(message).toBe(messages[i]));
  expect(await next(c)).toBe(messages[0]);
  await Promise.all([a, b, c].map((watch) => watch.return()));
});

test('another shareKey, or none, is shown for itself', async () => {
  const { open, items, shown } = await openWatched();
  const watches = [open('x'), open('x'), open('y'), open('y'), open(), open()];
  await items.insert({});
  for (const watch of watches) await next(watch);
  expect(shown()).toBe(4);
  await Promise.all(watches.map((watch) => watch.return()));
});

test('one watch alone keeps nothing', async () => {
  const { open, items, shown } = await openWatched();
  const alone = open('x');
  await items.insert({});
  await next(alone);
  const late = open('x');
  await items.insert({});
  await take(alone, 1);
  await take(late, 1);
  expect(shown()).toBe(2);
  await Promise.all([alone.return(), late.return()]);
});

test('a watch far behind the others makes its messages itself', async () => {
  const { open, items, shown } = await openWatched();
  const [quick, slow] = [open('x'), open('x')];
  for (let n = 0; n < 600; n++) {
    await items.insert({ n });
    await next(quick);
  }
  expect((await take(slow, 600)).map(({ seq }) => seq)).toEqual(
    Array.from({ length: 600 }, (_, n) => n + 1),
  );
  expect(shown()).toBeGreaterThan(600);
  await Promise.all([quick.return(), slow.return()]);
});

test('messages that all watches have delivered are dropped, others are not', async () => {
  const { open, items, shown } = await openWatched();
  const [a, b] = [open('x'), open('x')];
  for (const watch of [a, b]) watch.pushTo({ hasRoom: () => true, take: () => undefined });
  const waiting = [a.next(), b.next()];
  for (let n = 0; n < 3; n++) await items.insert({ n });
  await settle();
  expect([a.position, b.position, shown()]).toEqual([3, 3, 3]);
  const late = open('x', 1);
  expect(await take(late, 2)).toHaveLength(2);
  expect(shown()).toBe(5);
  await items.insert({ n: 3 });
  await settle();
  const last = open('x', 4);
  expect([(await take(late, 2)).at(-1)!.seq, (await next(last)).seq]).toEqual([4, 4]);
  expect(shown()).toBe(7);
  await Promise.all([a, b, late, last].map((watch) => watch.return()));
  await Promise.all(waiting);
});

test('commits that were rolled back are not delivered for those with their numbers', async () => {
  const { db, open, items } = await openWatched();
  const [a, b] = [open('x'), open('x')];
  await items.insert({ n: 1 });
  const first = await next(a);
  // As after a fail-over: the log has forgotten what it had read.
  db.watches.historyCut();
  const second = await next(b);
  expect(second).not.toBe(first);
  expect(second.seq).toBe(first.seq);
  await Promise.all([a.return(), b.return()]);
});

test('what is there can be had without waiting', async () => {
  const { open, items } = await openWatched();
  const watch = open();
  expect(watch.poll()).toBeUndefined();
  await items.insert({});
  await items.insert({});
  expect(watch.poll()).toMatchObject({ kind: 'changes', seq: 1 });
  expect(await next(watch)).toMatchObject({ kind: 'changes', seq: 2 });
  expect(watch.poll()).toBeUndefined();
  await items.insert({});
  await watch.return();
  expect(watch.poll()).toBeUndefined();
});
