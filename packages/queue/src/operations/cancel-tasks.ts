import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { TaskFilter, TaskPosition } from '../storage/port/task-list.js';
import { cancelMessage } from './cancel-task.js';
import type { QueueContext } from './base/context.js';
import { requireQueue } from './base/find.js';
import type { Principal } from './base/principal.js';
import { failBody } from './base/refusal.js';
import { taskFilter } from './task-filter.js';

const chunkSize = 500;
const maxRunMs = 25_000;

/** Cancels pending tasks, oldest first, in chunks of one commit each. */
export async function cancelTasks(
  context: QueueContext,
  caller: Principal,
  { queue, body: given }: { queue: string; body: unknown },
): Promise<QueueSchema<'SelectorResult'>> {
  const { store, clock, checks, delivery, observer } = context;
  await requireQueue(context, queue);
  const body = checks.cancelTasks.read(given);
  const filter = readFilter(body, clock.now());
  const ids = [...new Set(body.ids?.map((id) => id.toUpperCase()))];
  if (body.dry_run) return dryRun(context, queue, filter ?? ids);
  const cancel = async (chunk: readonly string[]) => {
    const cancelled = await store.cancelPending({
      queue,
      ids: chunk,
      now: clock.now(),
      by: caller.principal,
      message: cancelMessage(body.reason),
      selector: body,
    });
    if (cancelled.length > 0) {
      observer.cancelled(queue, cancelled.length);
      delivery.cancelled(queue, cancelled.length);
    }
    return cancelled.length;
  };
  if (!filter) return { count: await cancel(ids) };
  const endsAt = clock.monotonic() + maxRunMs;
  let count = 0;
  let isFirst = true;
  for await (const chunk of chunks(context, queue, filter)) {
    // A call that finds nothing is audited too.
    if (chunk.ids.length > 0 || (isFirst && chunk.isLast)) {
      count += await cancel(chunk.ids);
      isFirst = false;
    }
    if (!chunk.isLast && clock.monotonic() >= endsAt) return { count, complete: false };
  }
  return { count };
}

/** Undefined: the tasks are selected by their ids. */
function readFilter(body: QueueSchema<'CancelSelector'>, now: number): TaskFilter | undefined {
  if (!body.filter) return undefined;
  const { status: _status, ...rest } = body.filter;
  const faults: FieldError[] = [];
  const filter = taskFilter({ ...rest, status: ['PENDING'] }, '/filter', faults);
  if (faults.length > 0) throw failBody('INVALID_SELECTOR', faults);
  // Tasks submitted later are not touched.
  return { ...filter, createdBefore: Math.min(filter.createdBefore ?? Infinity, now + 1) };
}

async function dryRun(
  context: QueueContext,
  queue: string,
  selected: TaskFilter | readonly string[],
): Promise<QueueSchema<'SelectorResult'>> {
  let count = 0;
  if ('length' in selected) {
    for (const id of selected) {
      const task = await context.store.getTask(id);
      if (task && task.queue === queue && task.status === 'PENDING') count++;
    }
    return { count };
  }
  const { clock } = context;
  const endsAt = clock.monotonic() + maxRunMs;
  for await (const { ids, isLast } of chunks(context, queue, selected)) {
    count += ids.length;
    if (!isLast && clock.monotonic() >= endsAt) return { count, complete: false };
  }
  return { count };
}

async function* chunks(
  { store }: QueueContext,
  queue: string,
  filter: TaskFilter,
): AsyncGenerator<{ ids: string[]; isLast: boolean }> {
  let after: TaskPosition | undefined;
  do {
    const page = await store.listTasks({ queue, filter, order: 'oldest', after, limit: chunkSize });
    after = page.next;
    yield { ids: page.tasks.map(({ id }) => id), isLast: after === undefined };
  } while (after);
}
