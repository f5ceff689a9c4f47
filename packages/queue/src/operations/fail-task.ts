import type { QueueContext } from './base/context.js';
import type { Envelope } from './base/envelope.js';
import type { Principal } from './base/principal.js';
import { settleTask, type SettleRequest } from './settle-task.js';

/**
 * Fails an attempt of an asynchronous task: it is retried by the queue's policy or dead-lettered.
 */
export function failTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  return settleTask(context, caller, request, (id) => {
    const body = context.checks.fail.read(request.body ?? {});
    return context.delivery.fail(id, request.leaseToken, body);
  });
}
