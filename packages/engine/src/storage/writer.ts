import type { CommitRow } from '../format/record.js';
import type { SearchChange } from '../format/search-pages.js';
import { PendingWrites, mergeRows, nameOf, TouchedRows, type Rows } from './overlay/overlay.js';
import type { Clock } from '@millrace/kit/clock';
import { LogFailed } from './file/files.js';
import type { Batch as StoreBatch, Store } from './store.js';
import type { KeyRange } from './file/in-place.js';
import type { TableName, TableRow } from './file/tables.js';

/**
 * `cut`: it rolls back commits. `derived`: its rows can be made again from others, so they go to
 * the file without the log. Both have their own batch.
 */
type JobKind = 'plain' | 'cut' | 'derived';

/** One write and its promise. */
class Job {
  result: unknown = undefined;
  /** The error it threw. */
  refusal: { error: unknown } | undefined = undefined;

  constructor(
    readonly run: () => unknown,
    readonly resolve: (value: unknown) => void,
    readonly reject: (reason: unknown) => void,
    /** On the monotonic clock. */
    readonly submittedAt: number,
    readonly kind: JobKind,
  ) {}
}

/** Jobs that become one frame of the log. */
interface Batch {
  writes: PendingWrites;
  /** The rows of a derived batch, which are made while they are written. */
  derived: Rows | undefined;
  /** In order of their numbers, without a gap. */
  commits: CommitRow[];
  /** Changes of search indexes, which become rows of the whole batch. */
  searchChanges: SearchChange[];
  kind: JobKind;
  /** It accepts no more jobs. */
  isSealed: boolean;
  /** A job of it makes its caller submit others at once, which are to join it. */
  expectsJobs: boolean;
  /** In the order in which they ran, including those that threw. */
  jobs: Job[];
  /** Number of jobs that did not throw. */
  done: number;
  isSettled: boolean;
}

/** A batch of more has callers that send more while it is flushed. */
const maxJobsAlone = 4;

function newBatch(): Batch {
  return {
    writes: new PendingWrites(),
    derived: undefined,
    commits: [],
    searchChanges: [],
    kind: 'plain',
    isSealed: false,
    expectsJobs: false,
    jobs: [],
    done: 0,
    isSettled: false,
  };
}

function rowsOf({ derived, writes }: Batch): Rows {
  return derived ?? writes;
}

/** The parts of a store that the writer uses. */
export type BatchStore = Pick<
  Store,
  | 'getNamed'
  | 'range'
  | 'refresh'
  | 'commit'
  | 'commitDerived'
  | 'isFull'
  | 'foldSoon'
  | 'foldFailure'
>;

/**
 * The single writer of a database (group commit).
 *
 * A job is a synchronous function that reads and writes through the `Writer`. Jobs run one after
 * the other and see each other's writes at once; a job that throws is rolled back. Finished jobs
 * form a batch, a batch is one frame of the log, and the promise of a job settles when its batch is
 * durable, even if the job threw, because its error may depend on writes of that batch. While a
 * batch is flushed, the next one is filled, but it is not written before the first is durable: when
 * a flush fails, the jobs that depend on it run again on the state before it. So a job may run
 * twice, and must have no effects outside the `Writer`.
 */
export class Writer<State extends object> {
  #queue: Job[] = [];
  #filling: Batch | undefined;
  #flushing: Batch | undefined;
  #scheduled: NodeJS.Immediate | undefined;
  #closed: Error | undefined;
  #idle: (() => void)[] = [];
  #holds = 0;
  /** Number of commits in the batch before the running job. */
  #commitsBefore = 0;
  #held: (() => void)[] = [];
  #touched: TouchedRows | undefined;
  /** Durable batches with unresolved jobs. */
  #settling = 0;
  /** Called with the time each job waited for its turn. */
  onWaited: ((delayMs: number) => void) | undefined;
  /** Set after a failed write or fsync of the log: no more writes are accepted. */
  failure: Error | undefined;
  /** Replaced, never modified: a failed job restores the old one. */
  state: Readonly<State>;

  constructor(
    private readonly store: BatchStore,
    private readonly options: WriterOptions<State>,
  ) {
    this.state = options.load();
  }

  /** Runs `job` in its turn. Resolves with its result once that is durable. */
  submit<Result>(job: () => Result): Promise<Result> {
    return this.#submit(job, 'plain');
  }

  /** As `submit`, for a job that rolls back commits and so has its own batch. */
  submitCut<Result>(job: () => Result): Promise<Result> {
    return this.#submit(job, 'cut');
  }

  /**
   * As `submit`, for rows that are lost with the process unless they are in the file. They are made
   * when they are written, each key once, and perhaps again; other jobs do not see them before that.
   */
  submitDerived(writeTo: Rows['writeTo']): Promise<void> {
    return this.#submit(() => void (this.#filling!.derived = { writeTo }), 'derived');
  }

  #submit<Result>(job: () => Result, kind: JobKind): Promise<Result> {
    if (this.#closed) return Promise.reject(this.#closed);
    const submittedAt = this.options.clock.monotonic();
    return new Promise<Result>((resolve, reject) => {
      const settle = resolve as (value: unknown) => void;
      this.#queue.push(new Job(job, settle, reject, submittedAt, kind));
      this.#schedule();
    });
  }

  /**
   * Runs queued jobs now instead of on the next turn of the event loop. For a caller that has
   * submitted all jobs of its turn, so that the batch is no smaller.
   */
  startQueued(): void {
    if (!this.#scheduled) return;
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    this.#pump();
  }

  /**
   * Inside a job whose caller submits others as soon as it runs: the batch is not flushed before
   * the continuations of this turn have run, so that those jobs share its fsync.
   */
  expectJobs(): void {
    this.#filling!.expectsJobs = true;
  }

  /** Number of queued jobs: a measure of load. */
  get backlog(): number {
    return this.#queue.length;
  }

  get(table: TableName, key: Buffer): Buffer | undefined {
    const name = nameOf(key);
    const pending =
      this.#filling?.writes.find(table, name) ?? this.#flushing?.writes.find(table, name);
    return pending ? pending.value : this.store.getNamed(table, key, name);
  }

  range(table: TableName, range: KeyRange): Iterable<TableRow> {
    const layers = [this.#filling, this.#flushing].flatMap((batch) =>
      batch?.writes.has(table) ? [batch.writes.rows(table, range)] : [],
    );
    if (layers.length === 0) return this.store.range(table, range);
    // The limit applies after removed rows are left out, so the store is read without one.
    const { limit: _limit, ...unlimited } = range;
    return mergeRows(layers, this.store.range(table, unlimited), range);
  }

  put(table: TableName, key: Buffer, value: Buffer): void {
    this.#filling!.writes.set(table, key, value);
  }

  remove(table: TableName, key: Buffer): void {
    this.#filling!.writes.set(table, key, undefined);
  }

  /** Adds an encoded commit to the change log. Only inside a job. */
  appendCommit(commit: CommitRow): void {
    this.#filling!.commits.push(commit);
  }

  /** Adds a change of a search index, for the end of the batch. Only inside a job. */
  changeSearch(change: SearchChange): void {
    this.#filling!.searchChanges.push(change);
  }

  /** Appends bytes to the last commit of this job, if it has one. */
  extendCommit(more: Buffer): void {
    const { commits } = this.#filling!;
    if (commits.length === this.#commitsBefore) return;
    const last = commits.pop()!;
    commits.push({ ...last, bytes: Buffer.concat([last.bytes, more]) });
  }

  /** A commit that is not durable yet; undefined otherwise. */
  pendingCommit(seq: number): Buffer | undefined {
    for (const batch of [this.#filling, this.#flushing]) {
      const first = batch?.commits[0]?.seq;
      const found = first === undefined ? undefined : batch!.commits[seq - first];
      if (found) return found.bytes;
    }
    return undefined;
  }

  /** Called after a part of the overlay was folded into the store, or failed to be. */
  onFolded(): void {
    const { foldFailure, isFull } = this.store;
    if (isFull && foldFailure !== undefined) {
      const reason = this.options.explain(foldFailure);
      for (const job of this.#queue.splice(0)) job.reject(reason);
    }
    this.#schedule();
  }

  /** Resolves when nothing is queued or being flushed. */
  async drained(): Promise<void> {
    if (!this.#busy) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Refuses new jobs with `reason`; those already queued still run. */
  async close(reason: Error): Promise<void> {
    this.#closed ??= reason;
    await this.drained();
  }

  /** Calls `run` while no job runs and no batch is being written. New jobs wait in the queue. */
  async hold<Result>(run: () => Promise<Result>): Promise<Result> {
    this.#holds++;
    try {
      if (this.#filling || this.#flushing) {
        await new Promise<void>((resolve) => this.#held.push(resolve));
      }
      return await run();
    } finally {
      this.#holds--;
      this.#schedule();
    }
  }

  get isHeld(): boolean {
    return this.#holds > 0 && !this.#filling && !this.#flushing;
  }

  /**
   * The rows written since the last call; recording restarts now. The first call starts it. Rows of
   * batches that are not in the log yet are in both results: a reader may not see them yet.
   */
  takeTouched(): TouchedRows {
    const taken = this.#touched ?? new TouchedRows();
    this.#touched = new TouchedRows();
    if (this.#flushing) this.#touched.addAll(rowsOf(this.#flushing));
    return taken;
  }

  /** The rows that `takeTouched` would return now. */
  get touched(): TouchedRows | undefined {
    return this.#touched;
  }

  forgetTouched(): void {
    this.#touched = undefined;
  }

  get #busy(): boolean {
    return (
      this.#queue.length > 0 ||
      this.#filling !== undefined ||
      this.#flushing !== undefined ||
      this.#settling > 0 ||
      this.#holds > 0
    );
  }

  #schedule(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#pump();
    });
  }

  #pump(): void {
    const takesJobs = this.#holds === 0 && !this.#mustWait();
    if (takesJobs && this.#queue.length > 0 && !this.#isFull()) this.#fill();
    if (this.#filling && !this.#flushing) {
      const { expectsJobs } = this.#filling;
      this.#filling.expectsJobs = false;
      // A tick that is set in a microtask comes after all microtasks.
      if (expectsJobs) return queueMicrotask(() => process.nextTick(() => this.#pump()));
      this.#handOver(this.#filling);
    }
    if (takesJobs && this.#queue.length > 0 && !this.#isFull()) this.#schedule();
    if (!this.#filling && !this.#flushing) for (const resolve of this.#held.splice(0)) resolve();
    if (!this.#busy) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Back-pressure: the store is too far behind the log. */
  #mustWait(): boolean {
    if (this.#queue.length === 0 || !this.store.isFull) return false;
    this.store.foldSoon();
    return true;
  }

  #isFull(): boolean {
    const batch = this.#filling;
    return (
      batch !== undefined &&
      (batch.isSealed ||
        batch.jobs.length >= this.options.maxJobs ||
        batch.writes.bytes >= this.options.maxBytes)
    );
  }

  #fill(): void {
    this.store.refresh();
    const { clock, sliceMs } = this.options;
    const started = clock.monotonic();
    const batch = (this.#filling ??= newBatch());
    let taken = 0;
    // Yields to the event loop. The rest of the queue runs on the next turn.
    for (let now = started; now - started <= sliceMs; now = clock.monotonic()) {
      const job = this.#queue[taken]!;
      if (job.kind !== 'plain' && batch.jobs.length > 0) {
        batch.isSealed = true;
        break;
      }
      taken++;
      if (job.kind !== 'plain') {
        batch.kind = job.kind;
        batch.isSealed = true;
      }
      this.onWaited?.(now - job.submittedAt);
      this.#runJob(batch, job);
      if (taken === this.#queue.length || this.#isFull()) break;
    }
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
  }

  #runJob(batch: Batch, job: Job): void {
    // Jobs replace the state and never modify it.
    const before = this.state;
    const commits = batch.commits.length;
    this.#commitsBefore = commits;
    const searchChanges = batch.searchChanges.length;
    batch.writes.begin();
    batch.jobs.push(job);
    try {
      job.result = job.run();
      job.refusal = undefined;
      batch.done++;
    } catch (error) {
      batch.writes.rollback();
      batch.commits.length = commits;
      batch.searchChanges.length = searchChanges;
      this.state = before;
      // Rejected with the batch: the error may depend on writes that are not visible yet.
      job.refusal = { error };
    }
  }

  #handOver(batch: Batch): void {
    if (batch.done > 0) return this.#flush(batch);
    this.#filling = undefined;
    this.#settle(batch);
  }

  #flush(batch: Batch): void {
    this.#filling = undefined;
    this.#flushing = batch;
    let head: BatchHead | undefined;
    const { writes, commits, derived } = batch;
    try {
      // Derived rows do not move the state of the file, which belongs to its last folded batch.
      if (!derived) {
        head = this.options.beforeFlush(this.state, batch, (table, key, value) =>
          writes.set(table, key, value),
        );
      }
      this.#touched?.addAll(rowsOf(batch));
    } catch (error) {
      return this.#failed(batch, error);
    }
    const after = this.state;
    const show = () => this.#visible(batch, after);
    const isCut = batch.kind === 'cut';
    const { relaxed } = this.options;
    const isAlone = !relaxed && this.#queue.length === 0 && batch.jobs.length <= maxJobsAlone;
    const flushing = head
      ? this.store.commit({ writes, commits, isCut, isAlone, ...head }, show, relaxed)
      : this.store.commitDerived(derived!, show);
    flushing.then(
      () => this.#flushed(batch, after),
      (error: unknown) => this.#failed(batch, error),
    );
  }

  #visible(batch: Batch, after: State): void {
    this.options.onVisible(after);
    if (this.options.relaxed) this.#settle(batch);
  }

  #flushed(batch: Batch, after: State): void {
    this.#flushing = undefined;
    this.options.afterFlush(after, batch.done);
    this.#settle(batch);
    this.#pump();
  }

  #settle(batch: Batch): void {
    if (batch.isSettled) return;
    batch.isSettled = true;
    this.#resolveJobs(batch.jobs, 0);
  }

  /**
   * Continuations of resolved promises run before the next event-loop turn. A few hundred of them
   * at once would block it for longer than the write did.
   */
  #resolveJobs(jobs: readonly Job[], from: number): void {
    const end = Math.min(jobs.length, from + this.options.maxResolvedPerTurn);
    for (let i = from; i < end; i++) {
      const job = jobs[i]!;
      if (job.refusal) job.reject(job.refusal.error);
      else job.resolve(job.result);
    }
    if (end === jobs.length) return;
    this.#settling++;
    setImmediate(() => {
      this.#settling--;
      this.#resolveJobs(jobs, end);
      this.#pump();
    });
  }

  /** After a failed fsync the content of the disk is unknown: no more writes are accepted. */
  #stop(reason: Error): void {
    this.#closed = this.failure = reason;
    for (const job of this.#queue.splice(0)) job.reject(reason);
  }

  #failed(batch: Batch, error: unknown): void {
    this.#flushing = undefined;
    const refused = batch.isSettled ? [] : batch.jobs.filter((job) => job.refusal);
    const again = [...refused, ...(this.#filling?.jobs ?? [])];
    this.#filling = undefined;
    this.store.refresh();
    this.state = this.options.load();
    this.#queue = [...again, ...this.#queue];
    const reason = this.options.explain(error);
    this.options.failed(reason, batch.done);
    for (const job of batch.jobs) if (!job.refusal) job.reject(reason);
    if (error instanceof LogFailed) this.#stop(reason as Error);
    this.#pump();
  }
}

/** Fields of a batch beside its rows and commits. */
type BatchHead = Pick<StoreBatch, 'epoch' | 'start'>;
type SetRow = (table: TableName, key: Buffer, value: Buffer | undefined) => void;

export interface WriterOptions<State> {
  clock: Clock;
  load(): State;
  /** Adds the rows that every batch has. */
  beforeFlush(state: State, batch: Pick<Batch, 'kind' | 'searchChanges'>, set: SetRow): BatchHead;
  /** Called with the state that is now visible to readers. */
  onVisible(state: State): void;
  /** Called with the state that is now on disk. */
  afterFlush(state: State, jobs: number): void;
  /** Called when a batch did not reach the disk. */
  failed(reason: unknown, jobs: number): void;
  /** Turns a storage error into a refusal that says what to do. */
  explain(error: unknown): unknown;
  maxJobs: number;
  maxBytes: number;
  /** Maximum time that jobs run in one turn of the event loop. */
  sliceMs: number;
  /** Maximum number of jobs resolved in one turn of the event loop. */
  maxResolvedPerTurn: number;
  /** Resolve a job when its writes are visible, not when they are on disk. */
  relaxed: boolean;
}
