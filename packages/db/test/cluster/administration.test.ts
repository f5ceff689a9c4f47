import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeFile } from 'node:fs/promises';
import { fileBytes, open, restore } from '@millrace/db';
import { connect } from '@millrace/db/client';
import { useNodes } from '../replication/support/nodes.js';
import { inState, leaderOf, useCluster } from './support/cluster.js';
import { hasEtcd, startEtcd } from './support/etcd.js';

describe.skipIf(!hasEtcd)('administration during a fail-over (needs the program etcd)', () => {
  const nodes = useNodes();
  let etcd: Awaited<ReturnType<typeof startEtcd>>;

  beforeAll(async () => {
    etcd = await startEtcd(1);
  });
  afterAll(() => etcd.stop());
  const { start } = useCluster(nodes, () => etcd);

  test('backup: continues on a follower while the leader changes, and restores whole', async () => {
    const { all, leader } = await start('1');
    const docs = leader.client.collection<{ n: number }>('docs');
    for (let n = 0; n < 50; n++) await docs.insert({ n });
    const follower = all.find((node) => node !== leader)!;
    await expect.poll(() => follower.client.collection('docs').count()).toBe(50);
    const parts = follower.client.backup();
    const first = await parts.next();
    await leader.stop();
    await leaderOf(all.filter((node) => node !== leader));
    const rest = async function* () {
      if (!first.done) yield first.value;
      yield* parts;
    };
    const target = nodes.newDirectory();
    await writeFile(`${target}/backup`, fileBytes(rest()));
    await restore([`${target}/backup`], `${target}/db`);
    const restored = await open(`${target}/db`);
    expect(await restored.collection('docs').count()).toBe(50);
    expect((await restored.verify()).problems).toEqual([]);
    await restored.close();
  });

  test('compact: a node that compacts during a fail-over stays intact', async () => {
    const { all, leader } = await start('1');
    const docs = leader.client.collection('docs');
    for (let n = 0; n < 50; n++) await docs.insert({ n });
    const rest = all.filter((node) => node !== leader);
    const compacting = Promise.all(rest.map((node) => node.client.compact()));
    await leader.stop();
    await compacting;
    const next = await leaderOf(rest);
    await next.client.collection('docs').insert({ n: 50 });
    for (const node of rest) {
      await expect.poll(() => node.client.collection('docs').count()).toBe(51);
      expect((await node.server.database.verify()).problems).toEqual([]);
    }
  });

  test('restore: a node with another history is refused and never leads', async () => {
    const { all, flags } = await start('1');
    const data = nodes.newDirectory();
    const other = await open(data);
    for (let n = 0; n < 100; n++) await other.collection('docs').insert({ n });
    await other.close();
    const node = await nodes.start(flags, data);
    await inState(node, 'diverged');
    const db = await connect(all.map(({ url }) => url));
    nodes.onClose(() => db.close());
    await db.collection('docs').insert({ n: 1 });
    expect(await db.collection('docs').count()).toBe(1);
    expect((await node.status()).role).toBe('follower');
  });

  test('index: a new leader uses the indexes of its own settings', async () => {
    const { all, leader, flags } = await start('1');
    for (let n = 0; n < 20; n++) await leader.client.collection('docs').insert({ n: n % 5 });
    const [changed, other] = all.filter((node) => node !== leader);
    await changed!.stop();
    const config = `${nodes.newDirectory()}/db.yaml`;
    await writeFile(config, 'collections: { docs: { indexes: [{ fields: [n] }] } }\n');
    const back = await nodes.start({ ...flags, config }, changed!.data);
    await inState(back, 'streaming');
    expect((await back.status({ includeCollections: true })).collections).toMatchObject([
      { name: 'docs', records: 20, indexes: [{ name: 'n', state: 'ready' }] },
    ]);
    await leader.stop();
    const next = await leaderOf([back, other!]);
    await next.client.collection('docs').insert({ n: 1 });
    const found = await back.client
      .collection('docs')
      .find(
        { filter: { field: 'n', op: 'eq', value: 1 } },
        { minSeq: next.server.database.core.durable.seq },
      );
    expect(found.records).toHaveLength(5);
    expect((await back.server.database.verify()).problems).toEqual([]);
  });

  test('schema and index: made by the leader, they hold on its successor', async () => {
    const { all, leader } = await start('1');
    const docs = leader.client.collection<{ n: number }>('docs');
    for (let n = 0; n < 20; n++) await docs.insert({ n });
    const schema = { type: 'object', properties: { n: { type: 'number' } } };
    await leader.client.schemas.set('docs', schema);
    await leader.client.catalog.createIndex('docs', { fields: ['n'], unique: true });
    const rest = all.filter((node) => node !== leader);
    const readOnly = { code: 'READ_ONLY_REPLICA' };
    for (const { client } of rest) {
      await expect(client.schemas.set('docs', {})).rejects.toMatchObject(readOnly);
      const made = client.catalog.createIndex('docs', { fields: ['m'] });
      await expect(made).rejects.toMatchObject(readOnly);
    }
    await leader.stop();
    const next = await leaderOf(rest);
    const successors = next.client.collection<{ n: unknown }>('docs');
    await expect(successors.insert({ n: 'x' })).rejects.toMatchObject({ code: 'SCHEMA_VIOLATION' });
    await expect(successors.insert({ n: 1 })).rejects.toMatchObject({ code: 'UNIQUE_VIOLATION' });
    await successors.insert({ n: 20 });
    expect((await next.server.database.verify()).problems).toEqual([]);
  });
});
