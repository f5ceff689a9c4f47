import type { Metrics } from '@millrace/kit/metrics';
import type { Node, NodeEvent } from './node.js';

/** Counts what happens to a node. */
export function countNodeEvents(metrics: Metrics): (what: NodeEvent) => void {
  const events = metrics.counter({
    name: 'replication_events_total',
    help: 'Streams begun, copies of the leader taken, and tails set aside, by a follower.',
    labelNames: ['event'],
  });
  return (what) => events.inc({ event: what });
}

/** What an operator wants to see of a node's place among the others. */
export function describeNode(metrics: Metrics, node: Node): void {
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.gauge({ name, help, read });
  gauge('is_leader', '1 on a node that takes writes.', () => {
    return node.state().role === 'leader' ? 1 : 0;
  });
  gauge('is_fenced', '1 on a node that has met a newer leader and does not follow it.', () => {
    return node.state().role === 'fenced' ? 1 : 0;
  });
  gauge('is_streaming', '1 on a follower that hears its leader.', () => {
    return node.state().state === 'streaming' ? 1 : 0;
  });
  gauge('replication_lag_commits', 'How many commits a follower is behind its leader.', () => {
    return node.state().lag;
  });
  gauge('replication_lag_seconds', 'How far a follower is behind its leader; -1: unknown.', () => {
    const { lagMs } = node.state();
    return lagMs === undefined ? -1 : lagMs / 1000;
  });
  gauge('followers', 'Followers that stream from this node.', () => node.followers.connected);
}
