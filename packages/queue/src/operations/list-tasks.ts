import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { TaskOrder, TaskPosition } from '../storage/port/task-list.js';
import type { QueueContext } from './base/context.js';
import { defaultPageSize, staleCursor, type CursorScope } from './base/cursors.js';
import { toEnvelope } from './base/envelope.js';
import { requireQueue } from './base/find.js';
import { failQuery } from './base/refusal.js';
import { taskFilter, type GivenTaskFilter } from './task-filter.js';

export interface ListTasksRequest extends GivenTaskFilter {
  queue: string;
  order?: TaskOrder;
  limit?: number;
  cursor?: string;
}

/** One page of a queue's tasks. */
export async function listTasks(
  context: QueueContext,
  request: ListTasksRequest,
): Promise<QueueSchema<'TaskPage'>> {
  const { store, cursors, delivery } = context;
  const { queue: name, order = 'newest', limit = defaultPageSize, cursor = '', ...given } = request;
  const faults: FieldError[] = [];
  const filter = taskFilter(given, '', faults);
  const { statuses } = filter;
  if (order === 'next' && !(statuses?.length === 1 && statuses[0] === 'PENDING')) {
    faults.push({ pointer: '/order', message: 'can be "next" only with status=PENDING' });
  }
  if (faults.length > 0) throw failQuery(faults);
  const queue = await requireQueue(context, name);
  const scope: CursorScope = {
    list: 'tasks',
    filter: { queue: name, order, ...filter, statuses: statuses?.join() },
    incarnation: queue.incarnation,
  };
  const after = cursor === '' ? undefined : placeOf(cursors.open(scope, cursor));
  const page = await store.listTasks({ queue: name, filter, order, after, limit });
  const reasons = await delivery.waitingForAll(page.tasks, queue);
  return {
    tasks: page.tasks.map((task) => {
      const reason = reasons.get(task.id);
      return { ...toEnvelope(task, queue), ...(reason && { waiting_for: reason }) };
    }),
    next_cursor: page.next ? cursors.seal(scope, [page.next.at, page.next.id]) : '',
  };
}

function placeOf(opened: readonly unknown[] | undefined): TaskPosition {
  if (!opened) throw staleCursor();
  const [at, id] = opened as [number, string];
  return { at, id };
}
