import type { QueueSchema } from '@millrace/contract/queue';
import { jobAct, newJobState, type JobDefinition, type JobState } from '../../core/job.js';
import { removalOf } from '../../storage/port/task-store.js';
import type { QueueContext } from '../base/context.js';
import { queueNotFound, requireQueue } from '../base/find.js';
import type { Principal } from '../base/principal.js';
import { readSelection } from '../dead-letters.js';
import { failBody, rateLimited } from '../base/refusal.js';
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
  const key = { table: 'job', queue, key: random.ulid(now) } as const;
  const written = await store.writeRows({
    puts: [{ ...key, ifRevision: 0, body: definition, value: newJobState }],
    audit: jobAct(key, definition, null),
    now,
  });
  if (written.kind !== 'written') throw queueNotFound(queue);
  background.jobsChanged();
  return { job: toWireJob(written.rows[0]!) };
}

const maxRunning = 100;
const maxEnded = 1_000;

/** Refuses more jobs than a queue may run, and forgets the oldest that have ended. */
async function makeRoom({ store, clock }: QueueContext, queue: string): Promise<void> {
  const jobs = await store.listRows({ table: 'job', queue });
  const ended = jobs.filter(({ value }) => (value as JobState).status !== 'running');
  const running = jobs.length - ended.length;
  if (running >= maxRunning) {
    const detail = `The queue ${queue} runs ${running} jobs, the limit. Wait for one to end.`;
    throw rateLimited({ name: 'queue', detail, retryAfterMs: 1_000, quota: maxRunning });
  }
  // By name, which is a ULID.
  const oldest = ended.slice(0, Math.max(0, ended.length - maxEnded + 1));
  if (oldest.length === 0) return;
  await store.writeRows({ removals: oldest.map(removalOf), now: clock.now() });
}

function readJob(
  context: QueueContext,
  caller: Principal,
  action: JobDefinition['action'],
  given: unknown,
): JobDefinition {
  const { body, selector, gapMs } = readSelection(context, action, given);
  if (body.dry_run === true) {
    const fault = { pointer: '/dry_run', message: 'cannot be combined with async' };
    throw failBody('INVALID_SELECTOR', [fault]);
  }
  const target = 'ids' in selector ? selector : { filter: selector.filter };
  return { action, selector: body, target, gapMs, by: caller.principal };
}
