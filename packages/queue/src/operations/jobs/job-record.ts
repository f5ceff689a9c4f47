import type { QueueSchema } from '@millrace/contract/queue';
import type { JobDefinition, JobState } from '../../core/job.js';
import type { StoredRecord } from '../../storage/port/stored-record.js';
import type { QueueContext } from '../base/context.js';
import { timeOrNull, timeText } from '../base/envelope.js';
import { hasGrant, requireGrant, type Principal } from '../base/principal.js';
import { fail } from '../base/refusal.js';

/** The job, if the caller is operator of its queue. */
export async function requireJob(
  { store }: QueueContext,
  caller: Principal,
  id: string,
): Promise<StoredRecord> {
  const [record] = await store.listRecords({ kind: 'job', name: id.toUpperCase() });
  if (!record || !hasGrant(caller, record.queue)) {
    throw fail('JOB_NOT_FOUND', `There is no job ${id}; it may have ended over a week ago.`);
  }
  requireGrant(caller, record.queue, 'operator');
  return record;
}

/** A job as the API shows it. */
export function toWireJob(record: StoredRecord): QueueSchema<'Job'> {
  const { action, selector } = record.body as JobDefinition;
  const { status, count, finishedAt } = record.state as JobState;
  return {
    id: record.name,
    queue: record.queue,
    action,
    selector,
    status,
    count,
    created_at: timeText(record.createdAt),
    finished_at: timeOrNull(finishedAt),
  };
}
