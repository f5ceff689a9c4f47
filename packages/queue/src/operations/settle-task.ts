import type { ReportResult } from '../delivery/index.js';
import type { QueueContext } from './base/context.js';
import { toEnvelope, type Envelope } from './base/envelope.js';
import { requireTask, taskNotFound } from './base/find.js';
import type { Principal } from './base/principal.js';
import { fail } from './base/refusal.js';

export interface SettleRequest {
  id: string;
  leaseToken: string;
  body: unknown;
}

/** Finds the task of a handler's report, settles it, and returns it. */
export async function settleTask(
  context: QueueContext,
  caller: Principal,
  { id }: SettleRequest,
  settle: (id: string) => Promise<ReportResult>,
): Promise<Envelope> {
  // Workers and push handlers, which are submitters, settle tasks: any grant will do.
  const { task, queue } = await requireTask(context, caller, id);
  const settled = await settle(task.id);
  if (settled === 'not_found') throw taskNotFound(id);
  if (settled === 'cancelled' || settled === 'lease_lost') throw leaseLost(task.id, settled);
  return toEnvelope(settled, queue);
}

export function leaseLost(id: string, how: 'cancelled' | 'lease_lost'): Error {
  if (how === 'cancelled') {
    const detail = `An operator cancelled the task ${id}. Stop the work.`;
    return fail('LEASE_LOST', detail, { members: { reason: 'CANCELLED' } });
  }
  return fail(
    'LEASE_LOST',
    `The token does not hold the lease of task ${id}: it ran out, was settled otherwise ` +
      'or belongs to another attempt. Stop the work.',
  );
}
