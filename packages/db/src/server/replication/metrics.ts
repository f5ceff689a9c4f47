import type { Metrics } from '@millrace/kit/metrics';
import type { Node, NodeEvent } from './node.js';

/** Counter of replication events. */
export function countNodeEvents(metrics: Metrics): (what: NodeEvent) => void {
  const events = metrics.counter({
    name: 'replication_events_total',
    help: 'Replication events of a follower: streams started, copies taken, tails saved.',
    labelNames: ['event'],
  });
  return (what) => events.inc({ event: what });
}

/** Registers the replication metrics. */
export function describeNode(metrics: Metrics, node: Node): void {
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.gauge({ name, help, read });
  gauge('is_leader', '1 on a node that accepts writes.', () => {
    return node.state().state === 'leading' ? 1 : 0;
  });
  gauge('is_fenced', '1 on a node that a newer leader has fenced.', () => {
    return node.state().role === 'fenced' ? 1 : 0;
  });
  gauge('is_streaming', '1 on a follower that streams from its leader.', () => {
    return node.state().state === 'streaming' ? 1 : 0;
  });
  gauge('replication_lag_commits', 'Lag of a follower behind its leader, in commits.', () => {
    return node.state().lag;
  });
  gauge(
    'replication_lag_seconds',
    'Lag of a follower behind its leader, in seconds; -1: unknown.',
    () => {
      const { lagMs } = node.state();
      return lagMs === undefined ? -1 : lagMs / 1000;
    },
  );
  gauge('followers', 'Followers connected to this node.', () => node.followers.connected);
}
