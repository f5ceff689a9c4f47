import type { ReportResult } from '../delivery/index.js';
import type { QueueContext } from './context.js';
import { toEnvelope, type Envelope } from './envelope.js';
import { requireTask, taskNotFound } from './find.js';
import type { Principal } from './principal.js';
import { fail } from './refusal.js';

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
  const { task, queue } = await requireTask(context, caller, id, 'submitter');
  const settled = await settle(task.id);
  if (settled === 'not_found') throw taskNotFound(id);
  if (settled === 'cancelled') {
    const detail = `An operator cancelled the task ${task.id}. Stop the work.`;
    throw fail('LEASE_LOST', detail, { members: { reason: 'CANCELLED' } });
  }
  if (settled === 'lease_lost') {
    throw fail(
      'LEASE_LOST',
      `The token does not hold the lease of task ${task.id}: it ran out, was settled otherwise ` +
        'or belongs to another attempt. Stop the work.',
    );
  }
  return toEnvelope(settled, queue);
}
