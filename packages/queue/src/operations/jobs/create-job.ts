import type { QueueSchema } from '@millrace/contract/queue';
import { jobAct, newJobState, type JobDefinition } from '../../core/job.js';
import type { QueueContext } from '../context.js';
import { queueNotFound, requireQueue } from '../find.js';
import type { Principal } from '../principal.js';
import { redriveGapMs } from '../redrive-dlq.js';
import { failBody } from '../refusal.js';
import { readSelector } from '../selector.js';
import { toWireJob } from './job-record.js';

export interface JobRequest {
  queue: string;
  action: JobDefinition['action'];
  body: unknown;
}

/** Starts a redrive or purge that runs in the background. */
export async function createJob(
  context: QueueContext,
  caller: Principal,
  { queue, action, body }: JobRequest,
): Promise<QueueSchema<'JobResult'>> {
  const { store, clock, random, background } = context;
  await requireQueue(context, queue);
  const definition = readJob(context, caller, action, body);
  const now = clock.now();
  const key = { kind: 'job', queue, name: random.ulid(now) } as const;
  const written = await store.writeRecord({
    ...key,
    ifRevision: 0,
    body: definition,
    state: newJobState,
    audit: jobAct(key, definition, null),
    now,
  });
  if (written.kind !== 'written') throw queueNotFound(queue);
  background.jobsChanged();
  return { job: toWireJob({ ...written.record, body: definition }) };
}

function readJob(
  { checks }: QueueContext,
  caller: Principal,
  action: JobDefinition['action'],
  body: unknown,
): JobDefinition {
  const redrive = action === 'redrive' ? checks.redrive.read(body) : undefined;
  const selector = redrive ?? checks.purge.read(body);
  if (selector.dry_run === true) {
    const fault = { pointer: '/dry_run', message: 'cannot be combined with async' };
    throw failBody('INVALID_SELECTOR', [fault]);
  }
  const read = readSelector(selector);
  const target = 'ids' in read ? read : { filter: read.filter };
  const gapMs = redrive ? redriveGapMs(redrive) : 0;
  return { action, selector, target, gapMs, by: caller.principal };
}
