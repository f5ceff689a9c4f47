import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import type { WatchChange, WatchMessage } from './api.js';
import { refusalOf } from '../../../engine/test/scratch.test-support.js';
import { useServers } from './server.test-support.js';

interface Numbered {
  n: number;
}

const servers = useServers();

async function behindProxy(flags = {}) {
  const server = await servers.serve(flags);
  const proxy = await servers.proxy(server.url);
  const db = await servers.connect(proxy.url);
  const local = server.database.collection<Numbered>('numbers');
  return { server, proxy, db, local, records: db.collection<Numbered>('numbers') };
}

type Messages = AsyncIterableIterator<WatchMessage<WatchChange<Numbered>>>;

/** Reads messages until `isEnough` accepts the received changes. */
async function take(
  watch: Messages,
  isEnough: (changes: WatchChange<Numbered>[], message: WatchMessage<unknown>) => boolean,
): Promise<WatchChange<Numbered>[]> {
  const received: WatchChange<Numbered>[] = [];
  for (;;) {
    const step = await watch.next();
    if (step.done) throw new Error('the watch ended');
    received.push(...step.value.changes);
    if (isEnough(received, step.value)) return received;
  }
}

test('watch: starts where it was opened, even if read later', async () => {
  const { records } = await behindProxy();
  await records.insert({ n: 0 });
  const watch = records.watch({ filter: { field: 'n', op: 'gt', value: 1 } });
  await records.insert({ n: 1 });
  const two = await records.insertWithKey('two', { n: 2 });
  await records.updateByKey('two', { n: 1 });
  await records.upsert('two', { n: 3 });
  await records.deleteByKey('two');
  const received = await take(watch, (changes) => changes.length === 4);
  expect(received.map(({ op, entered, left }) => [op, entered, left])).toEqual([
    ['insert', true, false],
    ['update', false, true],
    ['update', true, false],
    ['delete', false, true],
  ]);
  expect(received[0]!.record).toEqual(two);
  expect(received[3]!.record).toMatchObject({ id: two.id, key: 'two', rev: 3 });
});

test('watch: messages equal those in process', async () => {
  const { records, local, server } = await behindProxy();
  const options = { startSeq: 1, includeBefore: true, fields: ['n'] as const };
  const here = local.watch(options);
  const there = records.watch(options);
  await records.insertWithKey('a', { n: 1 });
  await records.updateByKey('a', { n: 2 });
  await records.deleteByKey('a');
  for (let i = 0; i < 3; i++) {
    const expected = await here.next();
    const got = await there.next();
    expect({ ...got.value, leaderSeq: 0 }).toEqual({ ...expected.value, leaderSeq: 0 });
  }
  await here.return!();
  await there.return!();
  await expect.poll(() => server.database.watches.size).toBe(0);
});

test('watch: whole database, bookmarks, resume tokens and abort', async () => {
  const { db, records } = await behindProxy();
  const stop = new AbortController();
  const all = db.watch({ heartbeatMs: 20, signal: stop.signal });
  await records.insert({ n: 1 });
  await db.collection('others').insert({ o: 1 });
  const kinds: string[] = [];
  const names: string[] = [];
  let token = '';
  for await (const { kind, changes, resumeToken } of all) {
    kinds.push(kind);
    names.push(...changes.map(({ collection }) => collection));
    if (names.length === 1 && token === '') token = resumeToken;
    if (kinds.at(-1) === 'bookmark' && names.length === 2) stop.abort();
  }
  expect(names).toEqual(['numbers', 'others']);
  const [first] = await take(
    db.watch({ resumeToken: token }) as never,
    (changes) => changes.length > 0,
  );
  expect(first!.collection).toBe('others');
});

test('watch: delivers every commit once and in order through random cuts', async () => {
  const { records, local, proxy } = await behindProxy();
  let cuts = 0;
  const watch = records.watch({ onCut: () => cuts++ });
  const random = seededRandom(7);
  const total = 400;
  let delivered = 0;
  const writing = (async () => {
    // The first response fixes the start position; direct writes do not wait for it.
    await records.count();
    for (let n = 0; n < total; n++) {
      await local.insert({ n });
      // Often inside a frame, and sometimes after whole ones: a partial frame is not read.
      if (n % 10 === 0) proxy.cutAfter(random.integer(1, 3000));
      if (n % 37 === 0) proxy.cut();
      if (n % 20 === 0) await sleep(random.integer(0, 20));
      if (n % 40 === 0) await expect.poll(() => delivered).toBe(n + 1);
    }
    proxy.heal();
  })();
  const received = await take(watch, (changes) => {
    delivered = changes.length;
    return changes.length >= total;
  });
  await writing;
  expect(received.map(({ record }) => (record as { data: Numbered }).data.n)).toEqual(
    Array.from({ length: total }, (_, n) => n),
  );
  expect(cuts).toBeGreaterThan(5);
});

test('watch: misses nothing when cut before its first message', async () => {
  const { records, local, proxy, server } = await behindProxy();
  const watch = records.watch();
  const next = watch.next();
  await expect.poll(() => server.database.watches.size).toBe(1);
  proxy.goDown();
  await local.insert({ n: 1 });
  await local.insert({ n: 2 });
  proxy.heal();
  const first = await next;
  expect(first.value!.changes[0]!.record).toMatchObject({ data: { n: 1 } });
});

test('watch: delivers each initial record once through a cut', async () => {
  const { records, local, proxy } = await behindProxy();
  const text = 'x'.repeat(2000);
  const made = await Promise.all(
    Array.from({ length: 1000 }, (_, n) => local.insertWithKey(`k${n}`, { n, text } as Numbered)),
  );
  proxy.cutAfter(700_000);
  const messages: WatchMessage<WatchChange<Numbered>>[] = [];
  let cuts = 0;
  let changed = false;
  const watch = records.watch({ includeInitial: true, onCut: () => cuts++ });
  for await (const message of watch) {
    messages.push(message);
    if (message.kind === 'initial_end') break;
    if (changed) continue;
    changed = true;
    // Both were delivered and have changed when the server restarts the initial records.
    await local.upsert('k0', { n: -1 });
    await local.deleteByKey('k1');
    await expect.poll(() => proxy.connections).toBe(0);
  }
  const received = messages.flatMap(({ changes }) => changes);
  const state = new Map<string, number>();
  for (const { op, record } of received) {
    if (op === 'delete') expect(state.delete(record.key)).toBe(true);
    else state.set(record.key, (record as { data: Numbered }).data.n);
  }
  expect(cuts).toBe(1);
  expect(state.size).toBe(made.length - 1);
  expect(state.get('k0')).toBe(-1);
  const byKey = new Map<string, WatchChange<Numbered>[]>();
  for (const change of received) {
    byKey.set(change.record.key, [...(byKey.get(change.record.key) ?? []), change]);
  }
  expect(byKey.get('k0')!.map(({ op }) => op)).toEqual(['insert', 'update']);
  expect(byKey.get('k1')!.map(({ op }) => op)).toEqual(['insert', 'delete']);
  expect([...byKey.values()].filter((changes) => changes.length > 1)).toHaveLength(2);
});

test('watch: a compacted position is refused and ends the watch', async () => {
  const { records, local, server } = await behindProxy();
  for (let n = 0; n < 5; n++) await local.insert({ n });
  await server.database.trimLog(4);
  const compacted = await refusalOf(records.watch({ startSeq: 1 }).next());
  expect(compacted).toMatchObject({
    code: 'WATCH_COMPACTED',
    extra: { members: { metadata: { oldest_seq: '4' } } },
  });
  const bad = await refusalOf(records.watch({ resumeToken: 'AAAA' }).next());
  expect(bad.code).toBe('BAD_RESUME_TOKEN');
  expect(() => records.watch({ resumeToken: 'x', startSeq: 1 })).toThrow('not both');
});

test('watch: stops reconnecting after its time limit', async () => {
  const { records, proxy } = await behindProxy();
  const watch = records.watch({ reconnectForMs: 300 });
  await records.insert({ n: 1 });
  await watch.next();
  proxy.goDown();
  expect((await refusalOf(watch.next())).code).toBe('UNAVAILABLE');
});

test('live query: keeps order and limit through cuts', async () => {
  const { records, local, proxy } = await behindProxy();
  for (const n of [5, 1, 3]) await local.insertWithKey(`k${n}`, { n });
  const stop = new AbortController();
  const live = records.live({
    filter: { field: 'n', op: 'lt', value: 10 },
    orderBy: [{ field: 'n', desc: true }],
    limit: 2,
    signal: stop.signal,
  });
  const numbers = async () => {
    const { value } = await live.next();
    return value!.records.map(({ data }: { data: Numbered }) => data.n);
  };
  expect(await numbers()).toEqual([5, 3]);
  await local.insertWithKey('k7', { n: 7 });
  expect(await numbers()).toEqual([7, 5]);
  proxy.goDown();
  await local.deleteByKey('k7');
  await local.insertWithKey('k4', { n: 4 });
  proxy.heal();
  expect(await numbers()).toEqual([5, 3]);
  expect(await numbers()).toEqual([5, 4]);
  stop.abort();
  expect((await live.next()).done).toBe(true);
});

test('live query: reads again after a compacted log and reports the difference', async () => {
  const { records, local, proxy, server } = await behindProxy();
  await local.insertWithKey('a', { n: 1 });
  await local.insertWithKey('b', { n: 2 });
  const live = records.live({ orderBy: [{ field: 'n' }] });
  const first = await live.next();
  expect(first.value).toMatchObject({ added: [{ key: 'a' }, { key: 'b' }], seq: 2 });
  proxy.goDown();
  await local.deleteByKey('a');
  await local.upsert('b', { n: 3 });
  await local.insertWithKey('c', { n: 4 });
  await server.database.trimLog(5);
  proxy.heal();
  const { value } = await live.next();
  expect(value).toMatchObject({
    added: [{ key: 'c' }],
    changed: [{ key: 'b' }],
    removed: [{ key: 'a' }],
    records: [{ key: 'b' }, { key: 'c' }],
  });
  await live.return!();
});
