import type { QueueSchema } from '@millrace/contract/queue';
import { endedJob, jobAct, type JobDefinition, type JobState, newJobState } from '../core/job.js';
import { removalOf, type Row } from '../storage/port/task-store.js';
import { timeOrNull, timeText } from './base/bodies.js';
import {
  hasGrant,
  type Principal,
  type QueueContext,
  queueNotFound,
  requireGrant,
  requireQueue,
  retryOnConflict,
} from './base/context.js';
import { fail, failBody, rateLimited } from './base/refusal.js';
import { flowOf, readSelection } from './dead-letters.js';

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
  const flow = action === 'redrive' ? flowOf(body) : {};
  return { action, selector: body, target, gapMs, by: caller.principal, ...flow };
}

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
