import type { QueueSchema } from '@millrace/contract/queue';
import { jobAct, newJobState, type JobDefinition, type JobState } from '../../core/job.js';
import type { QueueContext } from '../base/context.js';
import { queueNotFound, requireQueue } from '../base/find.js';
import type { Principal } from '../base/principal.js';
import { redriveGapMs } from '../redrive-dlq.js';
import { failBody, rateLimited } from '../base/refusal.js';
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
  await makeRoom(context, queue);
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

const maxRunning = 100;
const maxEnded = 1_000;

/** Refuses more jobs than a queue may run, and forgets the oldest that have ended. */
async function makeRoom({ store }: QueueContext, queue: string): Promise<void> {
  const jobs = await store.listRecordStates('job', queue);
  const ended = jobs.filter(({ state }) => (state as JobState).status !== 'running');
  const running = jobs.length - ended.length;
  if (running >= maxRunning) {
    const detail = `The queue ${queue} runs ${running} jobs, the limit. Wait for one to end.`;
    throw rateLimited({ name: 'queue', detail, retryAfterMs: 1_000, quota: maxRunning });
  }
  // By name, which is a ULID.
  for (const { name } of ended.slice(0, Math.max(0, ended.length - maxEnded + 1))) {
    await store.deleteRecord({ kind: 'job', queue, name });
  }
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
