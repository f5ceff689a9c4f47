import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { QueueContext } from './base/context.js';
import { requireQueue } from './base/find.js';
import { failQuery } from './base/refusal.js';
import { taskFilter, type GivenTaskFilter } from './task-filter.js';

/** How many tasks of a queue match a filter. */
export async function countTasks(
  context: QueueContext,
  { queue, ...given }: GivenTaskFilter & { queue: string },
): Promise<QueueSchema<'TaskCount'>> {
  const faults: FieldError[] = [];
  const filter = taskFilter(given, '', faults);
  if (faults.length > 0) throw failQuery(faults);
  await requireQueue(context, queue);
  const { count, isEstimate } = await context.store.countTasks({ queue, filter });
  return { count, is_estimate: isEstimate };
}
