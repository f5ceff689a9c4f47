import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '@millrace/db/client';
import { useNodes } from '../replication/support/nodes.js';
import { useCluster } from './support/cluster.js';
import { hasEtcd, startEtcd } from './support/etcd.js';

describe.skipIf(!hasEtcd)('clients of a cluster (needs the program etcd)', () => {
  const nodes = useNodes();
  let etcd: Awaited<ReturnType<typeof startEtcd>>;

  beforeAll(async () => {
    etcd = await startEtcd(1);
  });
  afterAll(() => etcd.stop());
  const { start } = useCluster(nodes, () => etcd);

  test('client: writes reach the leader whichever node is named first', async () => {
    const { all, leader } = await start('1');
    const urls = all.map(({ url }) => url);
    for (const order of [urls, urls.toReversed()]) {
      const db = await connect(order, { timeoutMs: 20_000 });
      nodes.onClose(() => db.close());
      await db.collection('docs').insert({ n: 1 });
    }
    expect(await leader.client.collection('docs').count()).toBe(2);
  });

  test('client: inserts go on across a fail-over, each exactly once', async () => {
    const { all, leader } = await start('1');
    const db = await connect(`grpc://${all.map(({ url }) => url.slice(7)).join(',')}`);
    nodes.onClose(() => db.close());
    const docs = db.collection<{ n: number }>('docs');
    const inserted: number[] = [];
    let isOver = false;
    const load = async (first: number) => {
      for (let n = first; !isOver; n += 4) {
        await docs.insert({ n });
        inserted.push(n);
      }
    };
    const loads = [0, 1, 2, 3].map(load);
    await expect.poll(() => inserted.length).toBeGreaterThan(20);
    await leader.stop();
    const before = inserted.length;
    await expect.poll(() => inserted.length).toBeGreaterThan(before + 20);
    isOver = true;
    await Promise.all(loads);
    const { records } = await docs.find({ limit: 10_000 });
    const found = records.map(({ data }) => data.n);
    const byValue = (a: number, b: number) => a - b;
    expect(found.sort(byValue)).toEqual(inserted.sort(byValue));
  });

  test('client: a watch goes on across a fail-over without gap or duplicate', async () => {
    const { all, leader } = await start('1');
    const db = await connect(all.map(({ url }) => url));
    nodes.onClose(() => db.close());
    const docs = db.collection<{ n: number }>('docs');
    const seen: number[] = [];
    const watch = docs.watch();
    const reading = (async () => {
      for await (const { changes } of watch) {
        for (const change of changes) if (change.op === 'insert') seen.push(change.record.data.n);
      }
    })();
    for (let n = 0; n < 20; n++) await docs.insert({ n });
    await leader.stop();
    for (let n = 20; n < 40; n++) await docs.insert({ n });
    await expect.poll(() => seen.length).toBe(40);
    expect(seen).toEqual(Array.from({ length: 40 }, (_, n) => n));
    await watch.return?.();
    await reading;
  });

  test('client: reads go to a follower that is preferred, and wait for min_seq', async () => {
    const { all } = await start('1');
    const db = await connect(all.map(({ url }) => url));
    nodes.onClose(() => db.close());
    const docs = db.collection<{ n: number }>('docs');
    const { id, seq } = await docs.insert({ n: 1 });
    const found = await docs.findById(id, { prefer: 'follower', minSeq: seq });
    expect(found?.data).toEqual({ n: 1 });
    const reader = await connect(
      all.map(({ url }) => url),
      { prefer: 'follower' },
    );
    nodes.onClose(() => reader.close());
    expect((await reader.collection('docs').findById(id, { minSeq: seq }))?.data).toEqual({ n: 1 });
    await reader.collection('docs').insert({ n: 2 });
  });
});
