import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { endedJob, jobAct, type JobDefinition, type JobState } from '../core/job.js';
import type { RecordState, StoredRecord } from '../storage/port/stored-record.js';
import { StorageUnavailable, type JobStep, type TaskStore } from '../storage/port/task-store.js';

export interface JobsOptions {
  store: TaskStore;
  clock: Clock;
  log: Log;
  /** Identifies this run of the server. */
  instance: string;
  /** Tasks of one step. */
  chunkSize?: number | undefined;
}

/** Another server may have created a job, or stopped working on one. */
const pollMs = 5_000;
/** A server that has not made a step for this long has lost the job. */
const ownershipMs = 5_000;
const defaultChunkSize = 1_000;
const pageBytes = 8 * 2 ** 20;
const maxRestMs = 1_000;
/** How long ended jobs are listed. */
const retentionMs = 7 * 86_400_000;

/**
 * Runs the jobs of all queues, in steps of one commit each. A step changes tasks only together
 * with the state of its job, so the count is exact after a crash, and a cancelled job or one that
 * another server took over changes nothing more.
 */
export class Jobs {
  constructor(private readonly options: JobsOptions) {}

  /** Works on all jobs that no other server works on. Returns after how long to run again. */
  async run(signal: AbortSignal): Promise<number> {
    const { store, clock } = this.options;
    for (const record of await store.listRecordStates('job')) {
      if (signal.aborted) break;
      const { status, finishedAt } = record.state as JobState;
      if (status === 'running') {
        if (this.#mayRun(record.state as JobState)) await this.#runJob(record, signal);
      } else if (finishedAt! < clock.now() - retentionMs) await store.deleteRecord(record);
    }
    return pollMs;
  }

  #mayRun({ owner, ownedUntil }: JobState): boolean {
    const { clock, instance } = this.options;
    return owner === null || owner === instance || ownedUntil <= clock.now();
  }

  async #runJob(listed: RecordState, signal: AbortSignal): Promise<void> {
    const { store, clock } = this.options;
    const { kind, queue, name } = listed;
    let [record] = await store.listRecords({ kind, queue, name });
    while (record && (record.state as JobState).status === 'running') {
      if (signal.aborted) return this.#release(record);
      const startedAt = clock.monotonic();
      record = await this.#step(record);
      // Leaves at least half of the store's time to delivery.
      const restMs = Math.min(maxRestMs, clock.monotonic() - startedAt);
      if (restMs > 0) await clock.sleep(restMs);
    }
  }

  /** Undefined: the job was cancelled, or another server has it. */
  async #step(record: StoredRecord): Promise<StoredRecord | undefined> {
    const state = record.state as JobState;
    try {
      if (state.isExhausted) return await this.#end(record, 'done');
      const result = await this.options.store.runJobStep(await this.#nextStep(record));
      return result.kind === 'done' ? { ...record, ...result.record } : undefined;
    } catch (error) {
      if (error instanceof StorageUnavailable) throw error;
      const fields = { job: record.name, queue: record.queue, err: error };
      this.options.log.error(fields, 'job failed');
      return this.#end(record, 'failed');
    }
  }

  async #nextStep({ queue, name, revision, createdAt, ...record }: StoredRecord): Promise<JobStep> {
    const { clock, instance } = this.options;
    const definition = record.body as JobDefinition;
    const state = record.state as JobState;
    const { ids, after } = await this.#selected(queue, definition, state, createdAt);
    const { action, gapMs, by, selector } = definition;
    const now = clock.now();
    const change = { queue, ids, diedBy: createdAt, now, by, selector };
    const dueAt = (index: number) => createdAt + Math.floor((state.count + index) * gapMs);
    return {
      name,
      ifRevision: revision,
      state: (count): JobState => ({
        ...state,
        count: state.count + count,
        after: after ?? null,
        isExhausted: after === undefined,
        owner: instance,
        ownedUntil: now + ownershipMs,
      }),
      change: action === 'redrive' ? { action, ...change, dueAt } : { action, ...change },
    };
  }

  async #selected(
    queue: string,
    { target }: JobDefinition,
    { after }: JobState,
    createdAt: number,
  ): Promise<{ ids: readonly string[]; after: JobState['after'] | undefined }> {
    if ('ids' in target) return { ids: target.ids, after: undefined };
    const end = createdAt + 1;
    const diedBefore = Math.min(target.filter.diedBefore ?? end, end);
    const page = await this.options.store.deadTasks({
      queue,
      filter: { ...target.filter, diedBefore },
      order: 'oldest_first',
      after: after ?? undefined,
      limit: this.options.chunkSize ?? defaultChunkSize,
      maxBytes: pageBytes,
    });
    return { ids: page.tasks.map(({ id }) => id), after: page.next };
  }

  async #end(record: StoredRecord, status: 'done' | 'failed'): Promise<undefined> {
    const { store, clock, log } = this.options;
    const { kind, queue, name, revision: ifRevision } = record;
    const now = clock.now();
    const state = endedJob(record.state as JobState, status, now);
    const audit = jobAct(record, record.body as JobDefinition, state.count);
    const key = { kind, queue, name };
    const written = await store.writeRecord({ ...key, ifRevision, state, audit, now });
    if (written.kind !== 'written') return undefined;
    log.info({ job: name, queue, status, count: state.count }, 'job ended');
    return undefined;
  }

  /** At shutdown, so that another server or the next start continues at once. */
  async #release({ kind, queue, name, revision, state }: StoredRecord): Promise<void> {
    const { store, clock } = this.options;
    const free: JobState = { ...(state as JobState), owner: null, ownedUntil: 0 };
    const write = { kind, queue, name, ifRevision: revision, state: free, now: clock.now() };
    await store.writeRecord(write);
  }
}
