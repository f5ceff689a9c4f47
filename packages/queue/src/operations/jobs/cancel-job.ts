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
    const record = await requireJob(context, caller, id);
    const before = record.state as JobState;
    if (before.status !== 'running') {
      throw fail('JOB_FINISHED', `The job ${record.name} has ended and is ${before.status}.`);
    }
    const now = context.clock.now();
    const state = endedJob(before, 'cancelled', now);
    const definition = { ...(record.body as JobDefinition), by: caller.principal };
    const audit = jobAct(record, definition, state.count);
    const { kind, queue, name, revision: ifRevision } = record;
    const key = { kind, queue, name };
    const written = await context.store.writeRecord({ ...key, ifRevision, state, audit, now });
    if (written.kind !== 'written') return 'conflict';
    return { job: toWireJob({ ...record, state }) };
  });
}
