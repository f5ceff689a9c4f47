import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import { GrpcClient } from './support/grpc.js';
import { freshName, useServer } from './support/both.js';
import type { Message } from './support/proto.js';
import { WatchReader } from './support/watching.js';

const again = inCampaign('transport');

const both = useServer({ 'max-watches': '600' });
const text = 'x'.repeat(100_000);

/** Commits of 100 kB each. */
async function fill(collection: string, count: number): Promise<void> {
  const { writes } = both.server.database;
  for (let n = 0; n < count; n++) await writes.insert(collection, { n, text });
}

test('watch: a slow gRPC reader delays nobody and misses nothing', async () => {
  const collection = freshName();
  const { grpc, server } = both;
  const own = new GrpcClient(server.grpc, undefined, { 'grpc.use_local_subchannel_pool': 1 });
  const slow = own.stream('Watch', { collection, encoding: 2 });
  slow.on('error', () => undefined);
  await new Promise((resolve) => slow.on('metadata', resolve));
  const quick = new WatchReader(grpc.stream('Watch', { collection, encoding: 2 }));
  await quick.isOpen;
  const seen: number[] = [];
  slow.on('data', (message: Message) => {
    // It reads one message and then pauses.
    if (seen.length === 0) slow.pause();
    seen.push(numberOf(message));
  });
  await fill(collection, 1);
  await expect.poll(() => seen.length).toBe(1);
  const before = process.memoryUsage().rss;
  await fill(collection, 200);
  for (let n = 0; n < 201; n++) await quick.next();
  quick.close();
  const { core, watches } = server.database;
  expect(core.durable.seq - watches.oldestSeq!).toBeGreaterThan(100);
  expect(process.memoryUsage().rss - before).toBeLessThan(300e6);
  expect(seen).toHaveLength(1);

  slow.resume();
  await expect.poll(() => seen.length).toBe(201);
  expect(seen).toEqual([0, ...Array.from({ length: 200 }, (_, n) => n)]);
  slow.cancel();
  own.close();
});

function numberOf(message: Message): number {
  const [change] = message['changes'] as Message[];
  const { data_json: json } = change!['record'] as { data_json: Buffer };
  return Number((JSON.parse(json.toString()) as Message)['n']);
}

again('watch: a slow REST reader delays nobody and misses nothing', async () => {
  const collection = freshName();
  const { rest, server } = both;
  const slow = await rest.open('POST', `/v1/${collection}/records:watch`, {});
  await fill(collection, 200);
  await expect
    .poll(() => server.database.core.durable.seq - server.database.watches.oldestSeq!)
    .toBeGreaterThan(50);
  for (let n = 0; n < 200; n++) {
    const [change] = (await slow.line())['changes'] as { record: { data: { n: number } } }[];
    expect(change!.record.data.n).toBe(n);
  }
  slow.close();
});

test('watch: a broken connection releases the watch', async () => {
  const collection = freshName();
  const { server, grpc } = both;
  await expect.poll(() => server.database.watches.size).toBe(0);
  const { hostname, port } = new URL(server.http);
  const sockets = Array.from({ length: 5 }, () => connect(Number(port), hostname));
  for (const socket of sockets) {
    socket.on('error', () => undefined);
    socket.write(`GET /v1/${collection}/records:watch HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  }
  const session = rawWatch(collection);
  await expect.poll(() => server.database.watches.size).toBe(6);
  for (const socket of sockets) socket.resetAndDestroy();
  session.destroy();
  await expect.poll(() => server.database.watches.size).toBe(0);
  const { text: metrics } = await both.rest.send('GET', '/metrics');
  expect(metrics).toContain('millrace_db_watches 0');
  expect(await grpc.health()).toEqual({ status: 'SERVING' });
});

/** A watch on a raw connection that the test can destroy. */
function rawWatch(collection: string): ClientHttp2Session {
  const session = connectHttp2(`http://${both.server.grpc}`);
  session.on('error', () => undefined);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/millrace.db.v1.Database/Watch',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  stream.on('error', () => undefined);
  const name = Buffer.from(collection);
  stream.end(Buffer.from([0, 0, 0, 0, name.length + 2, 0x0a, name.length, ...name]));
  return session;
}

test('watch: 500 watches receive every commit', async () => {
  const collection = freshName();
  const { server, rest } = both;
  const own = new GrpcClient(server.grpc);
  const watchers = Array.from(
    { length: 500 },
    () => new WatchReader(own.stream('Watch', { collection, encoding: 2 })),
  );
  await Promise.all(watchers.map((watcher) => watcher.isOpen));
  for (let n = 0; n < 10; n++) await rest.ok('POST', `/v1/${collection}/records`, { data: { n } });
  const received = await Promise.all(
    watchers.map(async (watcher) => {
      const numbers: number[] = [];
      for (let n = 0; n < 10; n++) numbers.push(await watcher.number());
      return numbers.join();
    }),
  );
  expect(new Set(received)).toEqual(new Set(['0,1,2,3,4,5,6,7,8,9']));
  for (const watcher of watchers) watcher.close();
  own.close();
  await expect.poll(() => server.database.watches.size).toBe(0);
});

test('watch: concurrent commits reach gRPC and REST watches once and in order', async () => {
  const collection = freshName();
  const { server, grpc, rest } = both;
  const readers = [0, 1].map(
    () => new WatchReader(grpc.stream('Watch', { collection, encoding: 2 })),
  );
  const path = `/v1/${collection}/records:watch`;
  const lines = [await rest.open('POST', path, {}), await rest.open('POST', path, {})];
  await Promise.all(readers.map((reader) => reader.isOpen));
  await expect.poll(() => server.database.watches.size).toBe(4);
  const { writes } = server.database;
  for (let burst = 0; burst < 10; burst++) {
    const inserts = Array.from({ length: 50 }, (_, n) =>
      writes.insert(collection, { n: burst * 50 + n }),
    );
    await Promise.all(inserts);
  }
  const all = Array.from({ length: 500 }, (_, n) => n);
  for (const reader of readers) {
    const received: number[] = [];
    while (received.length < 500) received.push(await reader.number());
    expect(received).toEqual(all);
    reader.close();
  }
  for (const reader of lines) {
    const received: number[] = [];
    while (received.length < 500) {
      const [change] = (await reader.line())['changes'] as { record: { data: { n: number } } }[];
      received.push(change!.record.data.n);
    }
    expect(received).toEqual(all);
    reader.close();
  }
  await expect.poll(() => server.database.watches.size).toBe(0);
});
