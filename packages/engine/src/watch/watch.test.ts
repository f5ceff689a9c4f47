import { describe, expect, test } from 'vitest';
import { chainAfter, decodeCommit } from '../format/record.js';
import { emptyHash } from '../value/bytes.js';
import { refusalOf, useScratch } from '../../test/scratch.test-support.js';
import { rewriteCommit } from '../storage/log/rewrite.test-support.js';
import { next, settle, take, takeUntil, summaryOf, type Item } from './watch.test-support.js';

const scratch = useScratch();

async function openItems() {
  const db = await scratch.open();
  return { db, items: db.collection<Item>('items') };
}

describe('a watch', () => {
  test('tells every commit after it was made, one message each', async () => {
    const { items } = await openItems();
    await items.insertWithKey('early', { n: 0 });
    const watch = items.watch();
    await items.insertWithKey('a', { n: 1 });
    await items.updateByKey('a', { n: 2 });
    await items.deleteByKey('a');
    const messages = await take(watch, 3);
    expect(messages.map(summaryOf)).toEqual(['2 insert a', '3 update a', '4 delete a']);
    await watch.return?.();
  });

  test('shows the record, its place in the history and how to go on', async () => {
    const { db, items } = await openItems();
    const watch = items.watch();
    const record = await items.insertWithKey('a', { n: 1 });
    const message = await next(watch);
    expect(message).toEqual({
      kind: 'changes',
      seq: 1,
      epoch: 1,
      committedAt: new Date(scratch.clock.now()),
      changes: [{ op: 'insert', collection: 'items', record, entered: false, left: false }],
      resumeToken: message.resumeToken,
      leaderSeq: 1,
      chainHash: db.core.durable.chain,
    });
    expect(message.resumeToken).toMatch(/^[\w-]{20,}$/);
    await watch.return?.();
  });

  test('waits for the next commit when it has delivered all', async () => {
    const { items } = await openItems();
    const watch = items.watch();
    const waiting = next(watch);
    await settle();
    await items.insertWithKey('a', {});
    expect(summaryOf(await waiting)).toBe('1 insert a');
    await watch.return?.();
  });

  test('delivers a transaction as one message, however many collections it spans', async () => {
    const { db, items } = await openItems();
    const watch = db.watches.open();
    const tx = db.transactions.begin();
    for (let i = 0; i < 300; i++) await items.insertWithKey(`k${i}`, { n: i }, { transaction: tx });
    await db.collection('others').insertWithKey('o', {}, { transaction: tx });
    await db.transactions.commit(tx.id);
    const message = await next(watch);
    expect(message.changes).toHaveLength(301);
    expect(new Set(message.changes.map(({ collection }) => collection))).toEqual(
      new Set(['items', 'others']),
    );
    await watch.return();
  });

  test('does not merge commits that share a flush', async () => {
    const { items } = await openItems();
    const watch = items.watch();
    await Promise.all(Array.from({ length: 50 }, (_, n) => items.insert({ n })));
    const messages = await take(watch, 50);
    expect(messages.map(({ seq }) => seq)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    expect(messages.every(({ changes }) => changes.length === 1)).toBe(true);
    expect(messages[0]?.leaderSeq).toBe(50);
    await watch.return?.();
  });

  test('of one collection passes over the others, also one that is not there yet', async () => {
    const { db, items } = await openItems();
    const watch = db.collection<Item>('later').watch();
    await items.insertWithKey('a', {});
    await db.collection<Item>('later').insertWithKey('b', {});
    expect(summaryOf(await next(watch))).toBe('2 insert b');
    await watch.return?.();
  });

  test('of the whole database tells all of them, by name', async () => {
    const { db, items } = await openItems();
    const watch = db.watches.open();
    await items.insertWithKey('a', {});
    await db.collection('others').insertWithKey('b', {});
    const messages = await take(watch, 2);
    expect(messages.flatMap(({ changes }) => changes.map((each) => each.collection))).toEqual([
      'items',
      'others',
    ]);
    await watch.return();
  });

  test('refuses a name that no collection can have', async () => {
    const { db } = await openItems();
    expect(() => db.watches.open({ collection: '1' })).toThrow('BAD_COLLECTION');
    expect(db.watches.size).toBe(0);
  });

  test('gives each its own copy of the data', async () => {
    const { items } = await openItems();
    const [one, other] = [items.watch(), items.watch()];
    await items.insert({ name: 'x' });
    const [first] = (await next(one)).changes;
    if (first?.op === 'insert') first.record.data.name = 'changed';
    const [second] = (await next(other)).changes;
    expect(second?.op === 'insert' && second.record.data).toEqual({ name: 'x' });
    await Promise.all([one.return?.(), other.return?.()]);
  });
});

describe('a removed record', () => {
  test('is delivered with id, key, rev and the commit that removed it', async () => {
    const { items } = await openItems();
    const { id } = await items.insertWithKey('a', { n: 1 });
    await items.updateByKey('a', { n: 2 });
    const watch = items.watch();
    await items.deleteByKey('a');
    const [change] = (await next(watch)).changes;
    expect(change).toEqual({
      op: 'delete',
      collection: 'items',
      record: { id, key: 'a', rev: 2, seq: 3 },
      entered: false,
      left: false,
    });
    await watch.return?.();
  });

  test('is delivered as expired when its time was up', async () => {
    const { db, items } = await openItems();
    await items.insertWithKey('a', { n: 1 }, { ttlMs: 1_000 });
    const watch = items.watch({ includeBefore: true });
    scratch.clock.skip(1_001);
    await db.sweepExpired();
    const [change] = (await next(watch)).changes;
    expect(change).toMatchObject({ op: 'expire', record: { key: 'a', rev: 1, seq: 2 } });
    expect(change?.record).not.toHaveProperty('data');
    expect(change?.before?.data).toEqual({ n: 1 });
    await watch.return?.();
  });

  test('shows its old data only with includeBefore', async () => {
    const { items } = await openItems();
    const watch = items.watch({ includeBefore: true });
    await items.insertWithKey('a', { n: 1 });
    await items.updateByKey('a', { n: 2 });
    await items.deleteByKey('a');
    const messages = await take(watch, 3);
    const before = messages.map(({ changes }) => changes[0]?.before?.data);
    expect(before).toEqual([undefined, { n: 1 }, { n: 2 }]);
    await watch.return?.();
  });
});

describe('a filter', () => {
  const adults = { field: 'n', op: 'gte', value: 18 } as const;

  test('shows what matched before or matches after, and says who entered and who left', async () => {
    const { items } = await openItems();
    const watch = items.watch({ filter: adults });
    await items.insertWithKey('young', { n: 5 });
    await items.insertWithKey('old', { n: 50 });
    await items.updateByKey('young', { n: 6 });
    await items.updateByKey('young', { n: 18 });
    await items.updateByKey('young', { n: 19 });
    await items.updateByKey('old', { n: 1 });
    await items.deleteByKey('old');
    await items.deleteByKey('young');
    expect((await take(watch, 5)).map(summaryOf)).toEqual([
      '2 insert old entered',
      '4 update young entered',
      '5 update young',
      '6 update old left',
      '8 delete young left',
    ]);
    await watch.return?.();
  });

  test('shows a record that left as it is now', async () => {
    const { items } = await openItems();
    await items.insertWithKey('old', { n: 50 });
    const watch = items.watch({ filter: adults, includeBefore: true });
    await items.updateByKey('old', { n: 1 });
    const [change] = (await next(watch)).changes;
    expect(change).toMatchObject({ op: 'update', left: true, record: { data: { n: 1 } } });
    expect(change?.before?.data).toEqual({ n: 50 });
    await watch.return?.();
  });

  test('shows of a commit only the changes that concern it', async () => {
    const { db, items } = await openItems();
    const watch = items.watch({ filter: adults });
    const tx = db.transactions.begin();
    for (const n of [1, 20, 2, 30]) await items.insertWithKey(`k${n}`, { n }, { transaction: tx });
    await db.transactions.commit(tx.id);
    const { changes } = await next(watch);
    expect(changes.map(({ record }) => record.key)).toEqual(['k20', 'k30']);
    await watch.return?.();
  });

  test('that is wrong is refused at once', async () => {
    const { db, items } = await openItems();
    expect(() => items.watch({ filter: { field: 'n', op: 'like' as 'eq', value: 1 } })).toThrow(
      'BAD_FILTER',
    );
    expect(db.watches.size).toBe(0);
  });
});

test('fields picks parts of the data, of the record before as well', async () => {
  const { items } = await openItems();
  const watch = items.watch({ fields: ['name'], includeBefore: true });
  await items.insertWithKey('a', { n: 1, name: 'Ada' });
  await items.updateByKey('a', { n: 2, name: 'Bob' });
  const [, { changes }] = (await take(watch, 2)) as [unknown, Awaited<ReturnType<typeof next>>];
  expect(changes[0]).toMatchObject({ record: { data: { name: 'Bob' } } });
  expect((changes[0] as { before: { data: unknown } }).before.data).toEqual({ name: 'Ada' });
  await watch.return?.();
});

describe('a resume token', () => {
  test('goes on after the message that carried it', async () => {
    const { items } = await openItems();
    const first = items.watch();
    for (const key of ['a', 'b', 'c']) await items.insertWithKey(key, {});
    const { resumeToken } = await next(first);
    await first.return?.();
    const second = items.watch({ resumeToken });
    expect((await take(second, 2)).map(summaryOf)).toEqual(['2 insert b', '3 insert c']);
    await second.return?.();
  });

  test('survives the database being closed and opened', async () => {
    const { db, items } = await openItems();
    const first = items.watch();
    await items.insertWithKey('a', {});
    const { resumeToken } = await next(first);
    await items.insertWithKey('b', {});
    const again = await scratch.reopen(db);
    const second = again.collection<Item>('items').watch({ resumeToken });
    expect(summaryOf(await next(second))).toBe('2 insert b');
    await second.return?.();
  });

  test('that is empty is none', async () => {
    const { items } = await openItems();
    const watch = items.watch({ resumeToken: '' });
    await items.insertWithKey('a', {});
    expect(summaryOf(await next(watch))).toBe('1 insert a');
    await watch.return?.();
  });

  test.each(['%%%', 'AAAA', 'not a token', 'A'.repeat(20), 'A'.repeat(31), 'é'.repeat(31)])(
    'that cannot be read is refused: "%s"',
    async (resumeToken) => {
      const { db } = await openItems();
      expect(() => db.watches.open({ resumeToken })).toThrow('BAD_RESUME_TOKEN');
      expect(db.watches.size).toBe(0);
    },
  );

  test('with a character more, less or changed is refused', async () => {
    const { items } = await openItems();
    const watch = items.watch();
    await items.insertWithKey('a', {});
    const { resumeToken } = await next(watch);
    await watch.return?.();
    const damaged = [`${resumeToken}A`, resumeToken.slice(1), resumeToken.slice(0, -1)];
    for (const token of [...damaged, `B${resumeToken.slice(1)}`, `${resumeToken}=`]) {
      expect(() => items.watch({ resumeToken: token })).toThrow('BAD_RESUME_TOKEN');
    }
  });

  test('of another database is refused', async () => {
    const [one, other] = [await openItems(), await openItems()];
    const watch = one.items.watch();
    await one.items.insertWithKey('a', {});
    const { resumeToken } = await next(watch);
    await watch.return?.();
    await other.items.insertWithKey('a', {});
    expect(() => other.items.watch({ resumeToken })).toThrow('another database');
  });

  test('of a commit that this history does not have is refused', async () => {
    const { db, items } = await openItems();
    const watch = items.watch();
    await items.insertWithKey('a', {});
    await items.insertWithKey('b', {});
    const { resumeToken } = await next(watch);
    await watch.return?.();
    // As after a fail-over that lost commit 1 and put another in its place.
    await db.close();
    rewriteCommit(db.directory, 1, (row) => (row[17]! ^= 1));
    const again = await scratch.open({}, db.directory);
    expect(() => again.watches.open({ resumeToken })).toThrow('lost in a fail-over');
  });

  test('together with start_seq is refused', async () => {
    const { items } = await openItems();
    const watch = items.watch();
    await items.insertWithKey('a', {});
    const { resumeToken } = await next(watch);
    await watch.return?.();
    expect(() => items.watch({ resumeToken, startSeq: 1 })).toThrow('not both');
  });

  test('wins over include_initial, so that a browser that reconnects gets no second start', async () => {
    const { items } = await openItems();
    const first = items.watch({ includeInitial: true });
    await items.insertWithKey('a', {});
    const [, end] = await take(first, 2);
    await first.return?.();
    await items.insertWithKey('b', {});
    const second = items.watch({ includeInitial: true, resumeToken: end!.resumeToken });
    expect(summaryOf(await next(second))).toBe('2 insert b');
    await second.return?.();
  });
});

describe('start_seq', () => {
  test('names the first commit wanted', async () => {
    const { items } = await openItems();
    for (const key of ['a', 'b', 'c']) await items.insertWithKey(key, {});
    const watch = items.watch({ startSeq: 2 });
    expect((await take(watch, 2)).map(summaryOf)).toEqual(['2 insert b', '3 insert c']);
    await watch.return?.();
  });

  test('0 means from now on', async () => {
    const { items } = await openItems();
    await items.insertWithKey('a', {});
    const watch = items.watch({ startSeq: 0 });
    await items.insertWithKey('b', {});
    expect(summaryOf(await next(watch))).toBe('2 insert b');
    await watch.return?.();
  });

  test('in the future waits for that commit, and its bookmarks keep the place', async () => {
    const { items } = await openItems();
    await items.insertWithKey('a', {});
    const watch = items.watch({ startSeq: 3 });
    const waiting = next(watch);
    await settle();
    scratch.clock.advance(15_000);
    const bookmark = await waiting;
    expect(bookmark).toMatchObject({ kind: 'bookmark', seq: 1, leaderSeq: 1 });
    await watch.return?.();
    const resumed = items.watch({ resumeToken: bookmark.resumeToken });
    await items.insertWithKey('b', {});
    await items.insertWithKey('c', {});
    expect(summaryOf(await next(resumed))).toBe('3 insert c');
    await resumed.return?.();
  });

  test.each([-1, 1.5, Number.NaN, 2 ** 50])('%s is refused', async (startSeq) => {
    const { items } = await openItems();
    expect(() => items.watch({ startSeq })).toThrow('BAD_REQUEST');
  });
});

describe('a trimmed position', () => {
  test('is refused with the oldest commit there is', async () => {
    const { db, items } = await openItems();
    const early = items.watch();
    for (const key of ['a', 'b', 'c', 'd']) await items.insertWithKey(key, {});
    const { resumeToken } = await next(early);
    await db.trimLog(3);
    expect((await refusalOf(next(early))).extra.members).toEqual({
      metadata: { oldest_seq: '3' },
    });
    for (const options of [{ startSeq: 2 }, { resumeToken }]) {
      const refusal = await refusalOf((async () => items.watch(options))());
      expect(refusal.code).toBe('WATCH_COMPACTED');
      expect(refusal.extra.members).toEqual({ metadata: { oldest_seq: '3' } });
    }
    expect(db.watches.size).toBe(0);
  });

  test('begins only before the oldest commit: the one just before it can go on', async () => {
    const { db, items } = await openItems();
    const early = items.watch();
    for (const key of ['a', 'b', 'c']) await items.insertWithKey(key, {});
    const [, { resumeToken }] = (await take(early, 2)) as [unknown, { resumeToken: string }];
    await early.return?.();
    await db.trimLog(3);
    for (const options of [{ resumeToken }, { startSeq: 3 }]) {
      const watch = items.watch(options);
      expect(summaryOf(await next(watch))).toBe('3 insert c');
      await watch.return?.();
    }
  });

  test('also ends a slow watch in mid-stream, and none that has read everything', async () => {
    const { db, items } = await openItems();
    const [slow, quick] = [items.watch(), items.watch()];
    for (const key of ['a', 'b', 'c']) await items.insertWithKey(key, {});
    await take(quick, 3);
    await next(slow);
    await db.trimLog(4);
    expect((await refusalOf(next(slow))).code).toBe('WATCH_COMPACTED');
    expect((await slow.next()).done).toBe(true);
    await items.insertWithKey('d', {});
    expect(summaryOf(await next(quick))).toBe('4 insert d');
    await quick.return?.();
  });
});

describe('bookmarks', () => {
  test('come every 15 s on a quiet watch and move the token past what was not for it', async () => {
    const { db, items } = await openItems();
    const watch = items.watch();
    await db.collection('others').insert({});
    await db.collection('others').insert({});
    const waiting = next(watch);
    await settle();
    scratch.clock.advance(14_999);
    await settle();
    scratch.clock.advance(1);
    const bookmark = await waiting;
    expect(bookmark).toMatchObject({ kind: 'bookmark', seq: 2, leaderSeq: 2, changes: [] });
    await watch.return?.();
    await db.trimLog(3);
    const resumed = items.watch({ resumeToken: bookmark.resumeToken });
    await items.insertWithKey('a', {});
    expect(summaryOf(await next(resumed))).toBe('3 insert a');
    await resumed.return?.();
  });

  test('count from the last message', async () => {
    const { items } = await openItems();
    const watch = items.watch({ heartbeatMs: 1_000 });
    scratch.clock.advance(900);
    await items.insertWithKey('a', {});
    expect(summaryOf(await next(watch))).toBe('1 insert a');
    const waiting = next(watch);
    await settle();
    scratch.clock.advance(999);
    await items.insertWithKey('b', {});
    expect(summaryOf(await waiting)).toBe('2 insert b');
    const quiet = next(watch);
    await settle();
    scratch.clock.advance(1_000);
    expect((await quiet).kind).toBe('bookmark');
    await watch.return?.();
  });

  test.each([0, -5, Number.NaN, Infinity])('every %s ms are refused', async (heartbeatMs) => {
    const { items } = await openItems();
    expect(() => items.watch({ heartbeatMs })).toThrow('heartbeat');
  });

  test('carry the chain of their commit', async () => {
    const { db, items } = await openItems();
    const watch = items.watch({ filter: { field: 'n', op: 'eq', value: 1 } });
    await items.insert({ n: 2 });
    const waiting = next(watch);
    await settle();
    scratch.clock.advance(15_000);
    const { chainHash } = await waiting;
    const row = decodeCommit(1, db.core.commitRow(1)!, db.core.codec);
    expect(chainHash).toEqual(chainAfter(emptyHash, row, () => 'items'));
    await watch.return?.();
  });
});

describe('the end of a watch', () => {
  test('comes with return, also while it waits', async () => {
    const { db, items } = await openItems();
    const watch = items.watch();
    const waiting = watch.next();
    await settle();
    expect(db.watches.size).toBe(1);
    await watch.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(db.watches.size).toBe(0);
  });

  test('comes with the signal, without an error, before or after the first message', async () => {
    const { db, items } = await openItems();
    const controller = new AbortController();
    const watch = items.watch({ signal: controller.signal });
    const waiting = watch.next();
    await settle();
    controller.abort();
    expect((await waiting).done).toBe(true);
    expect((await items.watch({ signal: AbortSignal.abort() }).next()).done).toBe(true);
    expect(db.watches.size).toBe(0);
  });

  test('leaves no timer and no listener behind', async () => {
    const { db, items } = await openItems();
    const before = scratch.clock.timers;
    for (let i = 0; i < 20; i++) {
      const watch = items.watch();
      const waiting = watch.next();
      await settle();
      await items.insert({ n: i });
      await waiting;
      await watch.return?.();
    }
    await db.core.store.fold();
    expect(scratch.clock.timers).toBe(before);
    expect(db.watches.size).toBe(0);
  });

  test('comes with the database, and says so', async () => {
    const { db, items } = await openItems();
    const [waiting, idle, initial] = [
      items.watch(),
      items.watch(),
      items.watch({ includeInitial: true }),
    ];
    await items.insert({ n: 1 });
    await next(waiting);
    await next(initial);
    const pending = next(waiting);
    await settle();
    await Promise.all([expect(pending).rejects.toThrow('SHUTTING_DOWN'), db.close()]);
    await expect(next(idle)).rejects.toThrow('SHUTTING_DOWN');
    await expect(next(initial)).rejects.toThrow('SHUTTING_DOWN');
    expect(() => items.watch()).toThrow('SHUTTING_DOWN');
  });

  test('in a for-await loop by break', async () => {
    const { db, items } = await openItems();
    const watch = items.watch();
    await items.insert({ n: 1 });
    for await (const message of watch) {
      expect(message.seq).toBe(1);
      break;
    }
    expect(db.watches.size).toBe(0);
  });
});

test('metrics know how many watches there are and how far back the slowest is', async () => {
  const { db, items } = await openItems();
  expect([db.watches.size, db.watches.oldestSeq]).toEqual([0, undefined]);
  const [slow, quick] = [items.watch(), items.watch()];
  await items.insert({ n: 1 });
  await items.insert({ n: 2 });
  await takeUntil(quick, 2);
  expect([db.watches.size, db.watches.oldestSeq]).toEqual([2, 0]);
  await next(slow);
  expect(db.watches.oldestSeq).toBe(1);
  await slow.return?.();
  expect([db.watches.size, db.watches.oldestSeq]).toEqual([1, 2]);
  await quick.return?.();
});
