import type { QueueContext } from './context.js';
import type { Envelope } from './envelope.js';
import type { Principal } from './principal.js';
import { settleTask, type SettleRequest } from './settle-task.js';

/** Completes an asynchronous task. */
export function completeTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  return settleTask(context, caller, request, (id) => {
    context.checks.complete.read(request.body ?? {});
    return context.delivery.complete(id, request.leaseToken);
  });
}
