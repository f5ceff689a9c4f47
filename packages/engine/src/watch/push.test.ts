import { expect, test } from 'vitest';
import { useScratch } from '../../test/scratch.test-support.js';
import type { VisibleChange, WatchMessage } from './message.js';
import type { Watch, WatchSink } from './watch.js';
import { next, settle } from './watch.test-support.js';
import type { WatchOptions } from './watches.js';

const scratch = useScratch();

type Shown = string;

class Taken implements WatchSink<Shown> {
  rows: (readonly WatchMessage<Shown>[])[] = [];
  isOpen = true;

  get seqs(): number[] {
    return this.rows.flat().map(({ seq }) => seq);
  }

  hasRoom(): boolean {
    return this.isOpen;
  }

  take(messages: readonly WatchMessage<Shown>[]): void {
    this.rows.push(messages);
  }
}

async function openPushed() {
  const db = await scratch.open();
  const open = (options: WatchOptions<Shown> = {}) => {
    const show = ({ after }: VisibleChange) => JSON.stringify(after?.data);
    const watch = db.watches.open<Shown>({ collection: 'items', show, ...options });
    const sink = new Taken();
    watch.pushTo(sink);
    return { watch, sink };
  };
  return { db, open, items: db.collection('items') };
}

/** Asks for the next message, as a reader does who has had all there is. */
function wait(watch: Watch<Shown>) {
  const waiting = { isOver: false, step: watch.next() };
  void waiting.step.then(
    () => (waiting.isOver = true),
    () => (waiting.isOver = true),
  );
  return waiting;
}

test('what is committed while the reader waits goes to the sink, and the reader waits on', async () => {
  const { open, items } = await openPushed();
  const { watch, sink } = open();
  const waiting = wait(watch);
  await settle();
  for (let n = 1; n <= 3; n++) await items.insert({ n });
  await settle();
  expect(sink.seqs).toEqual([1, 2, 3]);
  expect(sink.rows.flat().map(({ changes }) => changes)).toEqual([
    ['{"n":1}'],
    ['{"n":2}'],
    ['{"n":3}'],
  ]);
  expect(watch.position).toBe(3);
  expect(waiting.isOver).toBe(false);
  await watch.return();
  expect(await waiting.step).toMatchObject({ done: true });
  await items.insert({ n: 4 });
  expect(sink.seqs).toEqual([1, 2, 3]);
});

test('nothing is pushed before the reader has had what is before it', async () => {
  const { open, items } = await openPushed();
  await items.insert({ n: 1 });
  const { watch, sink } = open({ includeInitial: true });
  expect(await next(watch)).toMatchObject({ kind: 'initial', changes: ['{"n":1}'] });
  await items.insert({ n: 2 });
  await settle();
  expect(sink.rows).toEqual([]);
  expect(await next(watch)).toMatchObject({ kind: 'initial_end', seq: 1 });
  expect(await next(watch)).toMatchObject({ kind: 'changes', seq: 2 });
  const waiting = wait(watch);
  await settle();
  await items.insert({ n: 3 });
  await settle();
  expect(sink.seqs).toEqual([3]);
  await watch.return();
  await waiting.step;
});

test('a sink without room is given nothing, and the reader goes on from there', async () => {
  const { open, items } = await openPushed();
  const { watch, sink } = open();
  const waiting = wait(watch);
  await settle();
  await items.insert({ n: 1 });
  await settle();
  sink.isOpen = false;
  await items.insert({ n: 2 });
  expect((await waiting.step).value).toMatchObject({ seq: 2 });
  await items.insert({ n: 3 });
  await settle();
  expect(await next(watch)).toMatchObject({ seq: 3 });
  sink.isOpen = true;
  const again = wait(watch);
  await settle();
  await items.insert({ n: 4 });
  await settle();
  expect(sink.seqs).toEqual([1, 4]);
  expect(again.isOver).toBe(false);
  await watch.return();
});

test('watches of one look are given the same messages, in the same rows', async () => {
  const { open, items } = await openPushed();
  const [a, b, other] = [open({ shareKey: 'x' }), open({ shareKey: 'x' }), open({ shareKey: 'y' })];
  for (const { watch } of [a, b, other]) wait(watch);
  await settle();
  await Promise.all([items.insert({ n: 1 }), items.insert({ n: 2 })]);
  await items.insert({ n: 3 });
  await settle();
  expect(a.sink.seqs).toEqual([1, 2, 3]);
  a.sink.rows.forEach((row, i) => expect(b.sink.rows[i]).toBe(row));
  expect(other.sink.rows).toEqual(a.sink.rows);
  other.sink.rows.forEach((row, i) => expect(row).not.toBe(a.sink.rows[i]));
  await Promise.all([a, b, other].map(({ watch }) => watch.return()));
});

test('rows of commits that were rolled back are not delivered for those with their numbers', async () => {
  const { db, open, items } = await openPushed();
  const [busy, idle] = [open({ shareKey: 'x' }), open({ shareKey: 'x' })];
  const waiting = wait(busy.watch);
  await settle();
  await items.insert({ n: 1 });
  await items.insert({ n: 2 });
  await expect.poll(() => busy.sink.seqs).toEqual([1, 2]);
  await db.cutTail(1);
  await expect(waiting.step).rejects.toMatchObject({ code: 'BAD_RESUME_TOKEN' });
  const fresh = open({ shareKey: 'x' });
  wait(fresh.watch);
  await settle();
  await items.insert({ n: 'another' });
  await settle();
  expect(fresh.sink.rows).toMatchObject([[{ seq: 2, changes: ['{"n":"another"}'] }]]);
  await Promise.all([idle, fresh].map(({ watch }) => watch.return()));
});

test('a commit that shows nothing moves the watch on in silence', async () => {
  const { db, open } = await openPushed();
  const { watch, sink } = open();
  const waiting = wait(watch);
  await settle();
  await db.collection('others').insert({});
  await settle();
  expect(watch.position).toBe(1);
  expect(sink.rows).toEqual([]);
  expect(waiting.isOver).toBe(false);
  await watch.return();
});

test('what is pushed puts the next bookmark off, which the reader is given', async () => {
  const { open, items } = await openPushed();
  const { watch, sink } = open({ heartbeatMs: 1_000 });
  const waiting = wait(watch);
  await settle();
  scratch.clock.advance(600);
  await items.insert({ n: 1 });
  await settle();
  expect(sink.seqs).toEqual([1]);
  scratch.clock.advance(600);
  await settle();
  expect(waiting.isOver).toBe(false);
  scratch.clock.advance(400);
  expect((await waiting.step).value).toMatchObject({ kind: 'bookmark', seq: 1 });
  await watch.return();
});

test('a sink that fails ends its own watch, with its error, and no other', async () => {
  const { open, items } = await openPushed();
  const [bad, good] = [open(), open()];
  bad.sink.take = () => {
    throw new Error('no way out');
  };
  const ended = wait(bad.watch);
  wait(good.watch);
  await settle();
  await items.insert({ n: 1 });
  await expect(ended.step).rejects.toThrow('no way out');
  await settle();
  expect(good.sink.seqs).toEqual([1]);
  await good.watch.return();
});

test('many large commits are delivered in several rows', async () => {
  const { open, items } = await openPushed();
  const [a, b] = [open({ shareKey: 'x' }), open({ shareKey: 'x' })];
  for (const { watch } of [a, b]) wait(watch);
  await settle();
  const text = 'x'.repeat(30_000);
  await Promise.all(Array.from({ length: 20 }, (_, n) => items.insert({ n, text })));
  await settle();
  const all = Array.from({ length: 20 }, (_, n) => n + 1);
  for (const { watch, sink } of [a, b]) {
    expect(sink.seqs).toEqual(all);
    for (const row of sink.rows) expect(row.length).toBeLessThanOrEqual(3);
    await watch.return();
  }
});

test('the reader is notified of the end of the database', async () => {
  const { db, open } = await openPushed();
  const { watch } = open();
  const waiting = wait(watch);
  await settle();
  await db.close();
  await expect(waiting.step).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
});
