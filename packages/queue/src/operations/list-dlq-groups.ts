import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './base/context.js';
import { timeText } from './base/envelope.js';
import { requireQueue } from './base/find.js';

const maxGroups = 1_000;

/** Dead tasks of a queue, grouped by kind of failure. */
export async function listDlqGroups(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'DlqGroups'>> {
  await requireQueue(context, queue);
  const groups = await context.store.deadGroups({ queue, limit: maxGroups });
  return {
    groups: groups.map((group) => ({
      error_type: group.errorType ?? 'INTERNAL',
      handler_ref: group.handlerRef,
      http_status: group.httpStatus,
      count: group.count,
      first_seen: timeText(group.firstSeenAt),
      last_seen: timeText(group.lastSeenAt),
      sample_id: group.sampleId,
    })),
  };
}
