import type { QueueSchema } from '@millrace/contract/queue';
import type { JobDefinition, JobState } from '../../core/job.js';
import type { Row } from '../../storage/port/task-store.js';
import type { QueueContext } from '../base/context.js';
import { timeOrNull, timeText } from '../base/envelope.js';
import { hasGrant, requireGrant, type Principal } from '../base/principal.js';
import { fail } from '../base/refusal.js';

/** The job, if the caller is operator of its queue. */
export async function requireJob(
  { store }: QueueContext,
  caller: Principal,
  id: string,
): Promise<Row> {
  const key = id.toUpperCase();
  const [row] = await store.listRows({ table: 'job', key, hasBodies: true });
  if (!row || !hasGrant(caller, row.queue)) {
    throw fail('JOB_NOT_FOUND', `There is no job ${id}; it may have ended over a week ago.`);
  }
  requireGrant(caller, row.queue, 'operator');
  return row;
}

/** A job as the API shows it. */
export function toWireJob(row: Row): QueueSchema<'Job'> {
  const { action, selector } = row.body as JobDefinition;
  const { status, count, finishedAt } = row.value as JobState;
  return {
    id: row.key,
    queue: row.queue,
    action,
    selector,
    status,
    count,
    created_at: timeText(row.createdAt),
    finished_at: timeOrNull(finishedAt),
  };
}
