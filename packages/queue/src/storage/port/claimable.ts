import type { Queue } from '../../core/queue.js';
import { QueueChanged, type ClaimRequest } from './task-store.js';

/** Whether the queue exists and is not paused. Throws if it is not the expected one. */
export function isClaimable<Q extends Queue>(
  queue: Q | undefined,
  { queue: name, expected }: ClaimRequest,
): queue is Q {
  const isActive = queue !== undefined && !queue.paused;
  if (!expected) return isActive;
  const { incarnation, version } = expected;
  if (isActive && queue.incarnation === incarnation && queue.version === version) return true;
  throw queueChanged(name);
}

export function queueChanged(name: string): QueueChanged {
  return new QueueChanged(`The queue ${name} was paused, deleted or configured`);
}
