import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { endedJob, jobAct, type JobDefinition, type JobState } from '../core/job.js';
import {
  type DeadChange,
  removalOf,
  type Row,
  StorageUnavailable,
  type TaskStore,
} from '../storage/port/task-store.js';

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
    for (const row of await store.listRows({ table: 'job' })) {
      if (signal.aborted) break;
      const { status, finishedAt } = row.value as JobState;
      if (status === 'running') {
        if (this.#mayRun(row.value as JobState)) await this.#runJob(row, signal);
      } else if (finishedAt! < clock.now() - retentionMs) {
        await store.writeRows({ removals: [removalOf(row)], now: clock.now() });
      }
    }
    return pollMs;
  }

  #mayRun({ owner, ownedUntil }: JobState): boolean {
    const { clock, instance } = this.options;
    return owner === null || owner === instance || ownedUntil <= clock.now();
  }

  async #runJob({ table, queue, key }: Row, signal: AbortSignal): Promise<void> {
    const { store, clock } = this.options;
    let [row] = await store.listRows({ table, queue, key, hasBodies: true });
    while (row && (row.value as JobState).status === 'running') {
      if (signal.aborted) return this.#release(row);
      const startedAt = clock.monotonic();
      row = await this.#step(row);
      // Leaves at least half of the store's time to delivery.
      const restMs = Math.min(maxRestMs, clock.monotonic() - startedAt);
      if (restMs > 0) await clock.sleep(restMs);
    }
  }

  /** Undefined: the job was cancelled, or another server has it. */
  async #step(row: Row): Promise<Row | undefined> {
    const state = row.value as JobState;
    try {
      if (state.isExhausted) return await this.#end(row, 'done');
      const result = await this.options.store.actOnDead(await this.#nextStep(row));
      return result.kind === 'done' ? { ...result.row!, body: row.body } : undefined;
    } catch (error) {
      if (error instanceof StorageUnavailable) throw error;
      const fields = { job: row.key, queue: row.queue, err: error };
      this.options.log.error(fields, 'job failed');
      return this.#end(row, 'failed');
    }
  }

  async #nextStep({ table, queue, key, revision, createdAt, ...row }: Row): Promise<DeadChange> {
    const { clock, instance } = this.options;
    const definition = row.body as JobDefinition;
    const state = row.value as JobState;
    const { ids, after } = await this.#selected(queue, definition, state, createdAt);
    const { action, gapMs, by, selector, withDependents, fromStep } = definition;
    const now = clock.now();
    const dueAt = (index: number) => createdAt + Math.floor((state.count + index) * gapMs);
    const value = (count: number): JobState => ({
      ...state,
      count: state.count + count,
      after: after ?? null,
      isExhausted: after === undefined,
      owner: instance,
      ownedUntil: now + ownershipMs,
    });
    const job = { table, queue, key, ifRevision: revision, value };
    const flow = { withDependents, fromStep };
    return { action, queue, ids, diedBy: createdAt, now, by, selector, dueAt, row: job, ...flow };
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

  async #end(row: Row, status: 'done' | 'failed'): Promise<undefined> {
    const { store, clock, log } = this.options;
    const { table, queue, key, revision: ifRevision } = row;
    const now = clock.now();
    const value = endedJob(row.value as JobState, status, now);
    const audit = jobAct(row, row.body as JobDefinition, value.count);
    const puts = [{ table, queue, key, ifRevision, value }];
    const written = await store.writeRows({ puts, audit, now });
    if (written.kind !== 'written') return undefined;
    log.info({ job: key, queue, status, count: value.count }, 'job ended');
    return undefined;
  }

  /** At shutdown, so that another server or the next start continues at once. */
  async #release({ table, queue, key, revision, value }: Row): Promise<void> {
    const { store, clock } = this.options;
    const free: JobState = { ...(value as JobState), owner: null, ownedUntil: 0 };
    const puts = [{ table, queue, key, ifRevision: revision, value: free }];
    await store.writeRows({ puts, now: clock.now() });
  }
}
