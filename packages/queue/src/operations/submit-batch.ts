import type { QueueSchema } from '@millrace/contract/queue';
import { queueCodes, type QueueCode } from '@millrace/contract/queue';
import { Refusal } from '@millrace/kit/errors';
import type { QueueContext } from './base/context.js';
import type { NewTask } from '../storage/port/task-store.js';
import { queueNotFound, requireQueue } from './base/find.js';
import { newTask } from './new-task.js';
import type { Principal } from './base/principal.js';
import { fail, failBody } from './base/refusal.js';
import { knownTask, submitOutcome } from './submit-task.js';

type ItemResult = QueueSchema<'BatchItemResult'>;

export const maxItems = 1_000;

/**
 * Accepts many tasks in one commit. Each item is validated like a single submit, so that an
 * invalid one does not block the others.
 */
export async function submitBatch(
  context: QueueContext,
  caller: Principal,
  { queue: name, body }: { queue: string; body: unknown },
): Promise<ItemResult[]> {
  const queue = await requireQueue(context, name);
  const items = readItems(body);
  const now = context.clock.now();
  const by = caller.principal;
  const newId = () => context.random.ulid(now);
  const results: ItemResult[] = [];
  const good: { index: number; task: NewTask }[] = [];
  items.forEach((item, index) => {
    try {
      const task = newTask(context.checks.task, item, { queue, now, by, newId });
      good.push({ index, task });
    } catch (error) {
      results[index] = rejected(index, error);
    }
  });

  const allowance = context.submitLimits.take({
    queue: name,
    principal: by,
    queuePerSecond: queue.config.limits.submit_per_second,
    wanted: good.length,
  });
  const settle = (index: number, run: () => QueueSchema<'SubmitResult'>) => {
    try {
      results[index] = { index, status: 202, envelope: run() };
    } catch (error) {
      results[index] = rejected(index, error);
    }
  };
  const taken = good.slice(0, allowance.granted);
  if (taken.length > 0) {
    const tasks = context.observer.inTrace(taken.map(({ task }) => task));
    const stored = await context.store.insertTasks(tasks, now);
    context.observer.submitted(tasks, stored, now);
    if (stored.some(({ kind }) => kind === 'queue_not_found')) throw queueNotFound(name);
    taken.forEach(({ index, task }, at) => {
      settle(index, () => submitOutcome(caller, queue, task, stored[at]!).result);
    });
  }
  for (const { index, task } of good.slice(allowance.granted)) {
    const known = await knownTask(context, task, items[index]);
    settle(index, () => {
      if (!known) throw allowance.refusal!;
      return submitOutcome(caller, queue, task, known).result;
    });
  }
  return results;
}

function readItems(body: unknown): unknown[] {
  if (!Array.isArray(body)) {
    throw failBody('INVALID_TASK', [{ pointer: '', message: 'must be a list of tasks' }]);
  }
  if (body.length > maxItems) {
    throw fail(
      'BATCH_TOO_LARGE',
      `The batch has ${body.length} tasks; send at most ${maxItems} at once.`,
    );
  }
  return body;
}

/** The refusal of one item, as its entry in the response. */
export function rejected(index: number, error: unknown): QueueSchema<'BatchItemRejected'> {
  if (!(error instanceof Refusal)) throw error;
  const code = error.code as QueueCode;
  const { status, title } = queueCodes[code];
  const { errors, members } = error.extra;
  return {
    index,
    status,
    error: {
      code,
      status,
      title,
      detail: error.detail,
      // Such as the reason of a lost lease.
      ...members,
      ...(errors && { errors: [...errors] }),
    },
  };
}
