import { attemptRecord, urlWithoutQuery } from '../core/attempt-record.js';
import { cutText } from '../core/excerpt.js';
import { maxMessageBytes } from '../core/outcome.js';
import type { QueueContext } from './base/context.js';
import { toEnvelope, type Envelope } from './base/envelope.js';
import { requireTask, taskNotFound } from './base/find.js';
import { requireGrant, type Principal } from './base/principal.js';
import { fail } from './base/refusal.js';

/** Cancels a task that has not ended: it becomes DEAD, and a running callback is aborted. */
export async function cancelTask(
  context: QueueContext,
  caller: Principal,
  { id, body: given }: { id: string; body: unknown },
): Promise<Envelope> {
  const { store, clock, checks, delivery, observer } = context;
  const { task, queue } = await requireTask(context, caller, id, (task) =>
    requireGrant(caller, task.queue, 'operator'),
  );
  const { reason } = checks.cancel.read(given ?? {});
  const message = cancelMessage(reason);
  const url = urlWithoutQuery(queue.config.callback.url);
  let leaseToken: string | undefined;
  const result = await store.cancelTask({
    id: task.id,
    now: clock.now(),
    by: caller.principal,
    message,
    selector: { ids: [task.id], ...(reason !== undefined && { reason }) },
    attempt: (claimed, now) => {
      leaseToken = claimed.lease.token;
      return attemptRecord(claimed, {
        outcome: 'FAILED',
        now,
        errorType: 'CANCELLED',
        message,
        url,
      });
    },
  });
  if (result.kind === 'not_found') throw taskNotFound(id);
  if (result.kind === 'refused') {
    throw fail(
      'TASK_FINISHED',
      `The task ${task.id} is ${result.task.status}; only a task that has not ended can be ` +
        'cancelled.',
    );
  }
  if (result.kind === 'changed') {
    observer.cancelled(queue.name, 1);
    delivery.cancelled(queue.name, 1, leaseToken);
  }
  return toEnvelope(result.task, queue);
}

/** The message of a cancelled task's last error. */
export function cancelMessage(reason: string | undefined): string {
  return reason === undefined || reason === ''
    ? 'The task was cancelled.'
    : cutText(reason, maxMessageBytes);
}
