import type { QueueContext } from './context.js';
import type { Envelope } from './envelope.js';
import type { Principal } from './principal.js';
import { settleTask, type SettleRequest } from './settle-task.js';

/** Extends the lease of an asynchronous task. */
export function extendTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  return settleTask(context, caller, request, (id) => {
    const { extend_ms } = context.checks.extend.read(request.body);
    return context.delivery.extend(id, request.leaseToken, extend_ms);
  });
}
