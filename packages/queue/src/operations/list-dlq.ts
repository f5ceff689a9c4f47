import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { QueueContext } from './base/context.js';
import type { CursorScope } from './base/cursors.js';
import type { DeadTaskPosition } from '../storage/port/task-store.js';
import { deadFilter } from './dead-filter.js';
import { toWholeTask } from './base/envelope.js';
import { requireQueue } from './base/find.js';
import { fail, failQuery } from './base/refusal.js';

export interface ListDlqRequest {
  queue: string;
  error_type?: string;
  handler_ref?: string;
  from?: string;
  to?: string;
  limit?: number;
  cursor?: string;
}

export const defaultPageSize = 50;
const maxPageBytes = 8 * 2 ** 20;

/** One page of dead tasks, the newest death first. */
export async function listDlq(
  context: QueueContext,
  { queue: name, limit = defaultPageSize, cursor = '', ...given }: ListDlqRequest,
): Promise<QueueSchema<'DlqPage'>> {
  const { store, cursors } = context;
  const faults: FieldError[] = [];
  const filter = deadFilter(given, '', faults);
  if (faults.length > 0) throw failQuery(faults);
  const queue = await requireQueue(context, name);
  const scope: CursorScope = {
    list: 'dlq',
    filter: { queue: name, ...filter },
    incarnation: queue.incarnation,
  };
  const after = cursor === '' ? undefined : placeOf(cursors.open(scope, cursor));
  const page = await store.deadTasks({
    queue: name,
    filter,
    order: 'newest_first',
    after,
    limit,
    maxBytes: maxPageBytes,
  });
  return {
    tasks: page.tasks.map((task) => toWholeTask(task, queue)),
    next_cursor: page.next ? cursors.seal(scope, [page.next.deadAt, page.next.id]) : '',
  };
}

function placeOf(opened: readonly unknown[] | undefined): DeadTaskPosition {
  if (!opened) throw staleCursor();
  const [deadAt, id] = opened as [number, string];
  return { deadAt, id };
}

export function staleCursor(): Error {
  return fail(
    'STALE_CURSOR',
    'The cursor is too old, cannot be read, or was made for another list; start again without one.',
  );
}
