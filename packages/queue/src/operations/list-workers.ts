import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './base/context.js';
import { timeText } from './base/envelope.js';
import { requireQueue } from './base/find.js';

/** The workers of a queue that were seen in the last ten minutes. */
export async function listWorkers(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'WorkerList'>> {
  await requireQueue(context, queue);
  const workers = await context.delivery.workers(queue);
  return {
    workers: workers.map((each) => ({
      worker: each.worker,
      principal: each.principal,
      remote_ip: each.remoteIp,
      last_seen_at: timeText(each.lastSeenAt),
      in_flight: each.inFlight,
      claimed: each.claimed,
      completed: each.completed,
      failed: each.failed,
    })),
  };
}
