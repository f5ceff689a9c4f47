import { expect } from 'vitest';
import type { TestNode, useNodes } from '../../replication/support/nodes.js';
import type { EtcdMember } from './etcd.js';

const patience = { timeout: 60_000, interval: 50 };
let count = 0;

/** Clusters of nodes in this process. */
export function useCluster(
  nodes: ReturnType<typeof useNodes>,
  etcd: () => { members: readonly EtcdMember[] },
) {
  return {
    /** Three nodes that have a leader and two followers. */
    async start(minAcks: string, more: Readonly<Record<string, string>> = {}) {
      const hosts = etcd().members.map(({ port }) => `127.0.0.1:${port}`);
      const flags = {
        cluster: `etcd://${hosts.join(',')}/test-${++count}`,
        'cluster-ttl': '3s',
        'min-acks': minAcks,
        ...more,
      };
      const all = [await nodes.start(flags), await nodes.start(flags), await nodes.start(flags)];
      const leader = await leaderOf(all);
      for (const node of all) if (node !== leader) await inState(node, 'streaming');
      return { all, leader, flags };
    },
  };
}

/** Waits until one of the nodes leads. */
export async function leaderOf(all: readonly TestNode[]): Promise<TestNode> {
  let found: TestNode | undefined;
  const find = async () => {
    const states = await Promise.all(all.map((node) => node.status()));
    found = all[states.findIndex(({ state }) => state === 'leading')];
    return found !== undefined;
  };
  await expect.poll(find, patience).toBe(true);
  return found!;
}

export async function inState(node: TestNode, state: string): Promise<void> {
  await expect.poll(async () => (await node.status()).state, patience).toBe(state);
}
