import type { QueueSchema } from '@millrace/contract/queue';
import { historySteps } from '../core/history.js';
import type { QueueCounts } from '../core/queue.js';
import type { QueueContext } from './base/context.js';
import { requireQueue } from './base/find.js';

type Counts = Pick<
  QueueSchema<'Stats'>,
  'pending' | 'in_flight' | 'dlq_depth' | 'oldest_pending_age_ms'
>;

/** Counts the tasks of a queue. */
export async function getStats(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'Stats'>> {
  await requireQueue(context, queue);
  const { store, clock, history } = context;
  const totals = await history.totals(queue);
  return {
    ...toStats(await store.counts(queue), clock.now()),
    succeeded_total: totals.succeeded,
    failed_total: totals.failed,
    dead_total: totals.dead,
    rate_per_second: await ratePerSecond(context, queue),
  };
}

const [fine] = historySteps;
const rateWindowS = 60;

async function ratePerSecond({ clock, history }: QueueContext, queue: string): Promise<number> {
  // The step that contains the start of the window counts whole.
  const from = clock.now() - (rateWindowS + fine.stepS) * 1000;
  const rows = await history.read(queue, fine.stepS, from);
  let ended = 0;
  for (const { at, point } of [...rows, ...history.unsaved(queue, from)]) {
    if (at > from) ended += point.succeeded + point.dead;
  }
  return Math.round((ended / rateWindowS) * 1000) / 1000;
}

export function toStats(counts: QueueCounts, now: number): Counts {
  const { pending, inFlight, dead, oldestPendingAt } = counts;
  return {
    pending,
    in_flight: inFlight,
    dlq_depth: dead,
    // The clock may have been set back since.
    oldest_pending_age_ms: oldestPendingAt === null ? 0 : Math.max(0, now - oldestPendingAt),
  };
}
