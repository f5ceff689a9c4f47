import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { refusalOf } from '../../../engine/test/scratch.test-support.js';
import { useServers } from './server.test-support.js';

const servers = useServers();

test('retry: a write with a lost response is applied once', async () => {
  const server = await servers.serve();
  const proxy = await servers.proxy(server.url);
  const db = await servers.connect(proxy.url);
  const records = db.collection<{ n: number }>('numbers');
  await records.insert({ n: 0 });
  proxy.dropReplies();
  const writing = records.insert({ n: 1 });
  const local = server.database.collection<{ n: number }>('numbers');
  await expect.poll(() => local.count()).toBe(2);
  proxy.heal();
  proxy.cut();
  const written = await writing;
  expect(written).toEqual(await local.findById(written.id));
  expect(await local.count()).toBe(2);
});

test('retry: a commit with a lost response returns the same result', async () => {
  const server = await servers.serve();
  const proxy = await servers.proxy(server.url);
  const db = await servers.connect(proxy.url);
  const records = db.collection<{ n: number }>('numbers');
  const transaction = await db.begin();
  await records.insert({ n: 1 }, { transaction });
  proxy.dropReplies();
  const committing = transaction.commit();
  const local = server.database.collection('numbers');
  await expect.poll(() => local.count()).toBe(1);
  proxy.heal();
  proxy.cut();
  expect(await committing).toMatchObject({ operations: 1, seq: 1 });
  const second = await db.begin();
  proxy.dropReplies();
  const rollingBack = second.rollback();
  await expect.poll(() => server.database.transactions.size).toBe(0);
  proxy.heal();
  proxy.cut();
  await rollingBack;
});

test('retry: every write is applied exactly once on a failing network', async () => {
  const server = await servers.serve();
  const proxy = await servers.proxy(server.url);
  const db = await servers.connect(proxy.url, { timeoutMs: 60_000 });
  const counters = db.collection<{ n: number }>('counters');
  const events = db.collection<{ n: number }>('events');
  await counters.insertWithKey('c', { n: 0 });
  const random = seededRandom(20_251_115);
  const stop = new AbortController();
  const breaking = (async () => {
    while (!stop.signal.aborted) {
      if (random.next() < 0.5) proxy.cutAfter(random.integer(1, 4000));
      else proxy.cut();
      await sleep(random.integer(5, 60));
    }
  })();
  const total = campaignSize({ quick: 30, full: 60 });
  await Promise.all(
    Array.from({ length: 3 }, async (_, worker) => {
      for (let i = 0; i < total / 3; i++) {
        const n = worker * 1000 + i;
        await events.insert({ n });
        await db.transaction(
          async (transaction) => {
            const { data } = (await counters.findByKey('c', { transaction }))!;
            await counters.updateByKey('c', { n: data.n + 1 }, { transaction });
          },
          { tries: 1000 },
        );
      }
    }),
  );
  stop.abort();
  await breaking;
  proxy.heal();
  expect(await events.count()).toBe(total);
  const { groups } = await events.aggregate({ groupBy: ['n'] });
  expect(groups).toHaveLength(total);
  const counter = await counters.findByKey('c');
  expect([counter!.data.n, counter!.rev]).toEqual([total, total + 1]);
});

test('retry: calls survive a server restart and stop at their deadline', async () => {
  const first = await servers.serve();
  const proxy = await servers.proxy(first.url);
  const db = await servers.connect(proxy.url);
  const records = db.collection<{ n: number }>('numbers');
  await records.insert({ n: 1 });
  const port = new URL(first.url).port;
  await first.stop();
  const counting = records.count();
  const inserting = records.insert({ n: 2 });
  await sleep(300);
  await servers.serve({ data: first.directory, grpc: `127.0.0.1:${port}` });
  await inserting;
  expect(await counting).toBeGreaterThanOrEqual(1);
  expect(await records.count()).toBe(2);
  proxy.goDown();
  const late = await refusalOf(records.count(undefined, { timeoutMs: 400 }));
  expect(late).toMatchObject({ code: 'UNAVAILABLE', isAnswer: false });
  expect(late.detail).toContain(`No response from ${proxy.url}`);
});

test('retry: false returns the first failure', async () => {
  const db = await servers.connect('grpc://127.0.0.1:1', { retry: false });
  const refusal = await refusalOf(db.collection('x').count());
  expect(refusal.code).toBe('UNAVAILABLE');
  expect(refusal.detail).toMatch(/^No response from grpc:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/);
});

test('timeout: a silent server fails the call at its deadline, an abort at once', async () => {
  const server = await servers.serve();
  const proxy = await servers.proxy(server.url);
  const db = await servers.connect(proxy.url);
  const records = db.collection<{ n: number }>('numbers');
  await records.insert({ n: 1 });
  proxy.dropReplies();
  expect((await refusalOf(records.count(undefined, { timeoutMs: 200 }))).code).toBe(
    'DEADLINE_EXCEEDED',
  );
  expect((await refusalOf(records.insert({ n: 2 }, { timeoutMs: 200 }))).code).toBe(
    'DEADLINE_EXCEEDED',
  );
  const stop = new AbortController();
  const reason = new Error('enough');
  const [call, stream] = [
    records.insert({ n: 3 }, { signal: stop.signal }),
    records.count(undefined, { signal: stop.signal }),
  ];
  setTimeout(() => stop.abort(reason), 50);
  await expect(call).rejects.toBe(reason);
  await expect(stream).rejects.toBe(reason);
  await expect(records.count(undefined, { signal: stop.signal })).rejects.toBe(reason);
});

test('retry: a shed call waits for the delay of the server', async () => {
  const server = await servers.serve({ 'max-inflight': '1' });
  const db = await servers.connect(server.url);
  const records = db.collection<{ n: number }>('numbers');
  const written = await Promise.all(Array.from({ length: 30 }, (_, n) => records.insert({ n })));
  expect(new Set(written.map(({ id }) => id)).size).toBe(30);
  expect(await records.count()).toBe(30);
  const strict = await servers.connect(server.url, { retry: false });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 30 }, () => strict.collection('numbers').insert({ n: 1 })),
  );
  const shed = outcomes.filter(({ status }) => status === 'rejected');
  expect(shed.length).toBeGreaterThan(0);
  expect((shed[0] as PromiseRejectedResult).reason).toMatchObject({
    code: 'OVERLOADED',
    extra: { retryAfterMs: expect.any(Number) },
  });
});

test('retry: a transaction is run again after a server restart', async () => {
  const first = await servers.serve();
  const db = await servers.connect(first.url);
  const records = db.collection<{ n: number }>('numbers');
  let runs = 0;
  await db.transaction(async (transaction) => {
    await records.insertWithKey('a', { n: ++runs }, { transaction });
    if (runs > 1) return;
    await first.stop();
    await servers.serve({ data: first.directory, grpc: `127.0.0.1:${new URL(first.url).port}` });
    await records.insertWithKey('b', { n: 1 }, { transaction });
  });
  expect(runs).toBe(2);
  expect((await records.findByKey('a'))?.data.n).toBe(2);
});
