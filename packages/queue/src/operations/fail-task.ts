import type { QueueContext } from './context.js';
import type { Envelope } from './envelope.js';
import type { Principal } from './principal.js';
import { settleTask, type SettleAsk } from './settle-task.js';

/** Ends an attempt of long work as failed: it is retried by the queue's policy, or dead. */
export function failTask(
  context: QueueContext,
  caller: Principal,
  ask: SettleAsk,
): Promise<Envelope> {
  return settleTask(context, caller, ask, (id) => {
    const body = context.checks.fail.read(ask.body ?? {});
    return context.delivery.fail(id, ask.leaseToken, body);
  });
}
