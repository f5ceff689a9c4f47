import type { Random } from '@millrace/kit/random';
import type { Queue } from '../../core/queue.js';
import type { ClaimRequest } from '../../storage/port/task-store.js';

interface Claim {
  limit: number;
  now: number;
  nodeId: string;
  leaseMs: number;
  newToken: () => string;
}

/** A claim from this queue, within the limits and the order of its config. */
export function claimRequest(queue: Queue, claim: Claim): ClaimRequest {
  const { limit, now, nodeId, leaseMs, newToken } = claim;
  const { limits, ordering } = queue.config;
  return {
    queue: queue.name,
    expected: queue,
    limit,
    now,
    nodeId,
    leaseExpiresAt: now + leaseMs,
    newToken,
    maxInFlight: limits.max_in_flight,
    dispatchPerSecond: limits.dispatch_per_second,
    fifoGroups: ordering.mode === 'group',
  };
}

/** Unguessable, and new with each claim. */
export function newLeaseToken(random: Random): string {
  return `l1.${Buffer.from(random.bytes(18)).toString('base64url')}`;
}
