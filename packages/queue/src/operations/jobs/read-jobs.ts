import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from '../base/context.js';
import { requireQueue } from '../base/find.js';
import type { Principal } from '../base/principal.js';
import { requireJob, toWireJob } from './job-record.js';

export async function getJob(
  context: QueueContext,
  caller: Principal,
  { id }: { id: string },
): Promise<QueueSchema<'JobResult'>> {
  return { job: toWireJob(await requireJob(context, caller, id)) };
}

/** Newest first: ids sort by time. */
export async function listJobs(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'JobList'>> {
  await requireQueue(context, queue);
  const range = { table: 'job', queue, hasBodies: true } as const;
  const rows = await context.store.listRows(range);
  return { jobs: rows.map(toWireJob).toReversed() };
}
