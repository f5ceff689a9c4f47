import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useNodes } from '../replication/support/nodes.js';
import { inState, leaderOf, useCluster } from './support/cluster.js';
import { hasEtcd, startEtcd } from './support/etcd.js';

const patience = { timeout: 60_000, interval: 50 };

describe.skipIf(!hasEtcd)('cluster with a real etcd (needs the program etcd)', () => {
  const nodes = useNodes();
  let etcd: Awaited<ReturnType<typeof startEtcd>>;

  beforeAll(async () => {
    etcd = await startEtcd(3);
  });
  afterAll(() => etcd.stop());

  const { start } = useCluster(nodes, () => etcd);

  test('cluster: one of three empty nodes leads, the others follow it', async () => {
    const { all, leader } = await start('1');
    await leader.client.collection('docs').insert({ n: 1 });
    const statesOf = () => Promise.all(all.map((node) => node.status()));
    // A node shows the members that it read before it joined, until it reads them again.
    const memberCounts = async () =>
      (await statesOf()).map(({ cluster }) => cluster?.members.length);
    await expect.poll(memberCounts, patience).toEqual([3, 3, 3]);
    const states = await statesOf();
    expect(states.filter(({ role }) => role === 'leader')).toHaveLength(1);
    expect(states.map(({ cluster }) => cluster?.leaderAddress)).toEqual(all.map(() => leader.url));
  });

  test('cluster: a follower leads when the leader stops, without loss', async () => {
    const { all, leader, flags } = await start('1');
    await leader.client.collection('docs').insert({ n: 1 });
    const { epoch } = await leader.status();
    await leader.stop();
    const rest = all.filter((node) => node !== leader);
    const next = await leaderOf(rest);
    expect((await next.status()).epoch).toBeGreaterThan(epoch);
    const docs = next.client.collection('docs');
    await docs.insert({ n: 2 });
    expect(await docs.count()).toBe(2);
    const back = await nodes.start(flags, leader.data);
    await inState(back, 'streaming');
    await expect.poll(() => back.client.collection('docs').count(), patience).toBe(2);
    await expect(back.client.collection('docs').insert({ n: 3 })).rejects.toMatchObject({
      code: 'READ_ONLY_REPLICA',
    });
  });

  test('cluster: without etcd the leader serves reads, refuses writes, and nobody else leads', async () => {
    const { all, leader } = await start('1');
    const docs = leader.client.collection<{ n: number }>('docs');
    await docs.insert({ n: 1 });
    const { epoch } = await leader.status();
    for (const member of etcd.members) member.signal('SIGSTOP');
    try {
      await inState(leader, 'suspended');
      await expect(docs.insert({ n: 2 })).rejects.toMatchObject({ code: 'FENCED' });
      expect(await docs.count()).toBe(1);
      const states = await Promise.all(all.map((node) => node.status()));
      expect(states.filter(({ role }) => role === 'leader')).toHaveLength(1);
      const ready = await fetch(`${leader.http}/readyz`);
      expect(await ready.json()).toMatchObject({
        checks: { cluster: expect.stringContaining('suspended') as string },
      });
    } finally {
      for (const member of etcd.members) member.signal('SIGCONT');
    }
    const next = await leaderOf(all);
    await next.client.collection('docs').insert({ n: 3 });
    expect((await next.status()).epoch).toBeGreaterThanOrEqual(epoch);
  });

  test('cluster: a node cannot be promoted by hand', async () => {
    const { all, leader } = await start('0');
    const follower = all.find((node) => node !== leader)!;
    await expect(follower.client.promote({ force: true })).rejects.toMatchObject({
      code: 'FENCED',
      detail: expect.stringContaining('decided by etcd') as string,
    });
  });

  test('cluster: min_acks 0 states the loss window in the log and in the status', async () => {
    const { leader } = await start('0');
    await leader.client.collection('docs').insert({ n: 1 });
    const { cluster } = await leader.status();
    expect(cluster).toMatchObject({ problem: '', lossWindow: expect.any(Number) as number });
    expect(leader.log.lines.some(({ message }) => message.includes('min_acks is 0'))).toBe(true);
  });

  test('cluster: backups, restores and logs accept the commit that starts an epoch', async () => {
    const { leader, flags } = await start('0');
    const docs = leader.client.collection('docs');
    await docs.insert({ n: 1 });
    expect((await leader.server.database.verify()).problems).toEqual([]);
    const late = await nodes.start(flags);
    await inState(late, 'streaming');
    expect((await late.server.database.verify()).problems).toEqual([]);
  });
});
