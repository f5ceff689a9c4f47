import type { QueueSchema } from '@millrace/contract/queue';
import { endedJob, jobAct, type JobDefinition, type JobState } from '../../core/job.js';
import type { QueueContext } from '../base/context.js';
import type { Principal } from '../base/principal.js';
import { fail } from '../base/refusal.js';
import { retryOnConflict } from '../base/retry-on-conflict.js';
import { requireJob, toWireJob } from './job-record.js';

/** Stops a job. A step that is under way in another server then changes nothing. */
export function cancelJob(
  context: QueueContext,
  caller: Principal,
  { id }: { id: string },
): Promise<QueueSchema<'JobResult'>> {
  return retryOnConflict('The job', async () => {
    const row = await requireJob(context, caller, id);
    const before = row.value as JobState;
    if (before.status !== 'running') {
      throw fail('JOB_FINISHED', `The job ${row.key} has ended and is ${before.status}.`);
    }
    const now = context.clock.now();
    const value = endedJob(before, 'cancelled', now);
    const definition = { ...(row.body as JobDefinition), by: caller.principal };
    const audit = jobAct(row, definition, value.count);
    const { table, queue, key, revision: ifRevision } = row;
    const puts = [{ table, queue, key, ifRevision, value }];
    const written = await context.store.writeRows({ puts, audit, now });
    if (written.kind !== 'written') return 'conflict';
    return { job: toWireJob({ ...row, value }) };
  });
}
