import type { QueueContext } from './context.js';
import type { Envelope } from './envelope.js';
import type { Principal } from './principal.js';
import { settleTask, type SettleAsk } from './settle-task.js';

/** Keeps the lease of long work. */
export function extendTask(
  context: QueueContext,
  caller: Principal,
  ask: SettleAsk,
): Promise<Envelope> {
  return settleTask(context, caller, ask, (id) => {
    const { extend_ms } = context.checks.extend.read(ask.body);
    return context.delivery.extend(id, ask.leaseToken, extend_ms);
  });
}
