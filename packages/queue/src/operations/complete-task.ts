import type { QueueContext } from './context.js';
import type { Envelope } from './envelope.js';
import type { Principal } from './principal.js';
import { settleTask, type SettleAsk } from './settle-task.js';

/** Ends long work as succeeded. */
export function completeTask(
  context: QueueContext,
  caller: Principal,
  ask: SettleAsk,
): Promise<Envelope> {
  return settleTask(context, caller, ask, (id) => {
    context.checks.complete.read(ask.body ?? {});
    return context.delivery.complete(id, ask.leaseToken);
  });
}
