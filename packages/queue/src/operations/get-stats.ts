import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueCounts } from '../core/queue.js';
import type { QueueContext } from './context.js';
import { requireQueue } from './find.js';

/** Counts the tasks of a queue. */
export async function getStats(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'Stats'>> {
  await requireQueue(context, queue);
  return toStats(await context.store.counts(queue), context.clock.now());
}

export function toStats(counts: QueueCounts, now: number): QueueSchema<'Stats'> {
  const { pending, inFlight, dead, oldestPendingAt } = counts;
  return {
    pending,
    in_flight: inFlight,
    dlq_depth: dead,
    // The clock may have been set back since.
    oldest_pending_age_ms: oldestPendingAt === null ? 0 : Math.max(0, now - oldestPendingAt),
  };
}
