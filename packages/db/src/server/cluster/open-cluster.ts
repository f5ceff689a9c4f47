import { readFileSync } from 'node:fs';
import { messageOf, UsageError } from '@millrace/kit/errors';
import type { Metrics } from '@millrace/kit/metrics';
import type { World } from '@millrace/kit/world';
import type { Node } from '../replication/node.js';
import type { ClusterState } from '../service/replication.js';
import { parseClusterAddress, Lease } from './election.js';
import { Cluster } from './cluster.js';
import { Etcd } from './etcd.js';

export interface ClusterSettings {
  cluster?: string | undefined;
  cluster_ttl: number;
  cluster_ca?: string | undefined;
  cluster_cert?: string | undefined;
  cluster_key?: string | undefined;
  cluster_user_file?: string | undefined;
  min_acks: number;
}

/** A cluster whose node is attached once there is one: the node needs the lease first. */
export interface OpenedCluster {
  readonly lease: { isValid(): boolean };
  readonly state: ClusterState;
  attach(node: Node, parts: { nodeId: string; lineageId: () => string; metrics: Metrics }): void;
  start(address: string): void;
  stop(): Promise<void>;
}

/** Undefined when the settings name no cluster. Throws UsageError for invalid ones. */
export function openCluster(settings: ClusterSettings, world: World): OpenedCluster | undefined {
  if (settings.cluster === undefined) return undefined;
  const { endpoints, name } = parseClusterAddress(settings.cluster);
  const { clock, log } = world;
  const { cluster_ttl: ttlMs, min_acks: minAcks } = settings;
  const lease = new Lease(ttlMs);
  const etcd = new Etcd({
    endpoints,
    clock,
    timeoutMs: ttlMs / 10,
    tls: {
      ca: fileOf('cluster_ca', settings.cluster_ca),
      cert: fileOf('cluster_cert', settings.cluster_cert),
      key: fileOf('cluster_key', settings.cluster_key),
    },
    user: userOf(settings.cluster_user_file),
  });
  if (minAcks === 0) {
    log.warn(
      { cluster: name, min_acks: 0 },
      'min_acks is 0: writes that no follower has yet are lost if the leader is lost',
    );
  }
  let cluster: Cluster | undefined;
  return {
    lease: { isValid: () => lease.isValid(clock.monotonic()) },
    get state() {
      return cluster!.state;
    },
    attach(node, { nodeId, lineageId, metrics }) {
      const onMembers = (members: ReadonlySet<string>) => (node.followers.voters = members);
      cluster = new Cluster(node, {
        ...world,
        etcd,
        name,
        nodeId,
        ttlMs,
        minAcks,
        lease,
        onMembers,
        lineageId,
      });
      describeCluster(metrics, () => cluster!.state);
    },
    start: (address) => cluster?.start(address),
    stop: async () => cluster?.stop(),
  };
}

function describeCluster(metrics: Metrics, state: () => ClusterState): void {
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.gauge({ name, help, read });
  gauge('cluster_has_leader', '1 while the cluster has a leader and etcd answers.', () => {
    return state().problem === '' ? 1 : 0;
  });
  gauge('cluster_members', 'Nodes that have joined the cluster.', () => state().members.length);
  gauge('cluster_members_running', 'Members with a live lease in etcd.', () => {
    return state().members.filter(({ isRunning }) => isRunning).length;
  });
  gauge('cluster_lease_seconds', 'Time until this node stops writes unless it renews.', () => {
    return state().leaseRemainingMs / 1000;
  });
}

function fileOf(setting: string, file: string | undefined): Buffer | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`${setting}: ${messageOf(error)}`);
  }
}

/** The message leaves out the file's content, which is a secret. */
function userOf(file: string | undefined): { name: string; password: string } | undefined {
  const text = fileOf('cluster_user_file', file)?.toString().trim();
  if (text === undefined) return undefined;
  const colon = text.indexOf(':');
  if (colon > 0) return { name: text.slice(0, colon), password: text.slice(colon + 1) };
  throw new UsageError(`cluster_user_file: ${file} must hold one line, user:password`);
}
