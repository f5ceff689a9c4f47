import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { useScratch } from '../../test/scratch.test-support.js';
import { next, settle, take, summaryOf, type Item, type Message } from './watch.test-support.js';

const scratch = useScratch();

async function openItems(count = 0) {
  const db = await scratch.open();
  const items = db.collection<Item>('items');
  await Promise.all(
    Array.from({ length: count }, (_, n) =>
      items.insertWithKey(`k${n}`, { n, group: `g${n % 3}` }),
    ),
  );
  return { db, items };
}

/** Everything up to and with `initial_end`. */
async function readInitial(watch: AsyncIterator<Message>): Promise<Message[]> {
  const messages: Message[] = [];
  while (messages.at(-1)?.kind !== 'initial_end') messages.push(await next(watch));
  return messages;
}

describe('include_initial', () => {
  test('delivers the records that match now, then the end, then the changes', async () => {
    const { items } = await openItems(3);
    const watch = items.watch({ includeInitial: true });
    await items.insertWithKey('new', { n: 9 });
    expect((await take(watch, 2)).map(summaryOf)).toEqual([
      'initial insert k0, insert k1, insert k2, insert new',
      'initial_end',
    ]);
    await items.deleteByKey('k0');
    expect(summaryOf(await next(watch))).toBe('5 delete k0');
    await watch.return?.();
  });

  test('of an empty or unknown collection is only the end', async () => {
    const { db } = await openItems(2);
    const watch = db.collection<Item>('nothing').watch({ includeInitial: true });
    expect(await next(watch)).toMatchObject({ kind: 'initial_end', seq: 2, changes: [] });
    await watch.return?.();
  });

  test('shows only what matches the filter, with the fields asked for', async () => {
    const { items } = await openItems(6);
    const watch = items.watch({
      includeInitial: true,
      filter: { field: 'group', op: 'eq', value: 'g1' },
      fields: ['n'],
    });
    const { changes } = await next(watch);
    expect(changes.map(({ op, record }) => [op, 'data' in record && record.data])).toEqual([
      ['insert', { n: 1 }],
      ['insert', { n: 4 }],
    ]);
    await watch.return?.();
  });

  test('comes in batches of 256 records or 256 KiB, all at one commit', async () => {
    const { items } = await openItems(600);
    const watch = items.watch({ includeInitial: true });
    const messages = await readInitial(watch);
    expect(messages.map(({ changes }) => changes.length)).toEqual([256, 256, 88, 0]);
    expect(new Set(messages.map(({ seq }) => seq))).toEqual(new Set([600]));
    await watch.return?.();
    const { items: large } = await openItems();
    await Promise.all(
      Array.from({ length: 10 }, () => large.insert({ name: 'x'.repeat(100_000) })),
    );
    const other = large.watch({ includeInitial: true });
    expect((await readInitial(other)).map(({ changes }) => changes.length)).toEqual([
      3, 3, 3, 1, 0,
    ]);
    await other.return?.();
  });

  test('gives no token before its end, for there is no way back into the middle', async () => {
    const { items } = await openItems(300);
    const watch = items.watch({ includeInitial: true });
    const messages = await readInitial(watch);
    expect(messages.map(({ resumeToken }) => resumeToken !== '')).toEqual([false, false, true]);
    await watch.return?.();
  });

  test('of the whole database tells every collection', async () => {
    const { db } = await openItems(2);
    await db.collection('others').insertWithKey('o', {});
    const watch = db.watches.open({ includeInitial: true });
    const [first, second, end] = await take(watch, 3);
    expect([first, second].map((each) => each?.changes[0]?.collection)).toEqual([
      'items',
      'others',
    ]);
    expect(end).toMatchObject({ kind: 'initial_end', seq: 3 });
    await watch.return();
  });

  test('leaves out what is past its expiry', async () => {
    const { items } = await openItems(1);
    await items.insertWithKey('gone', {}, { ttlMs: 10 });
    scratch.clock.skip(11);
    const watch = items.watch({ includeInitial: true });
    expect(summaryOf(await next(watch))).toBe('initial insert k0');
    await watch.return?.();
  });

  test('together with start_seq is refused', async () => {
    const { items } = await openItems(1);
    expect(() => items.watch({ includeInitial: true, startSeq: 1 })).toThrow('BAD_REQUEST');
  });

  test('gives its snapshot back, also when its reader has gone away', async () => {
    const { db, items } = await openItems(600);
    const watch = items.watch({ includeInitial: true });
    await next(watch);
    expect(db.core.snapshots.size).toBe(1);
    await watch.return?.();
    expect(db.core.snapshots.size).toBe(0);
    const other = items.watch({ includeInitial: true });
    await readInitial(other);
    expect(db.core.snapshots.size).toBe(0);
    await other.return?.();
  });

  test('is ended by the database being closed', async () => {
    const { db, items } = await openItems(600);
    const watch = items.watch({ includeInitial: true });
    await next(watch);
    await db.close();
    await expect(next(watch)).rejects.toThrow('SHUTTING_DOWN');
  });
});

test('under concurrent writes the start and the changes are the whole story, once', async () => {
  const write = fc.record({
    key: fc.integer({ min: 0, max: 40 }).map((n) => `k${n}`),
    act: fc.constantFrom('upsert', 'delete'),
    pause: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(write, { maxLength: 120 }),
      fc.integer({ max: 60 }),
      async (writes, at) => {
        const { db, items } = await openItems(20);
        let watch: AsyncIterableIterator<Message> | undefined;
        const running: Promise<unknown>[] = [];
        for (const [i, { key, act, pause }] of writes.entries()) {
          if (i === at) watch = items.watch({ includeInitial: true });
          const written =
            act === 'upsert'
              ? items.upsert(key, { n: i })
              : items.deleteByKey(key).catch(() => undefined);
          running.push(written);
          if (pause) await settle();
        }
        watch ??= items.watch({ includeInitial: true });
        const reading = replay(watch, () => db.core.durable.seq);
        await Promise.all(running);
        await items.upsert('last', { n: -1 });
        const state = await reading;
        const stored = await items.find({ limit: 10_000 });
        expect(state).toEqual(new Map(stored.records.map(({ key, rev }) => [key, rev])));
        await watch.return?.();
        await db.close();
      },
    ),
    { numRuns: 15 },
  );
});

/** Plays the messages back until the record `last` comes; fails on a gap or a duplicate. */
async function replay(
  watch: AsyncIterator<Message>,
  lastSeq: () => number,
): Promise<Map<string, number>> {
  const state = new Map<string, number>();
  let seq: number | undefined;
  for (;;) {
    const message = await next(watch);
    expect(message.seq).toBeLessThanOrEqual(lastSeq());
    if (message.kind === 'changes') {
      expect(message.seq).toBe(seq! + 1);
      seq = message.seq;
    } else seq = message.seq;
    for (const { op, record } of message.changes) {
      if (op === 'delete') expect(state.delete(record.key)).toBe(true);
      else {
        expect(state.get(record.key)).toBe(op === 'insert' ? undefined : record.rev - 1);
        state.set(record.key, record.rev);
      }
    }
    if (state.has('last')) return state;
  }
}
