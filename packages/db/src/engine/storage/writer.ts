import type { Clock } from '@millrace/kit/clock';
import { PendingWrites, mergeRows } from './pending.js';
import type { KeyRange, TableName, TableRow, Tables } from './tables.js';
import { TouchedRows } from './touched-rows.js';

/**
 * The one writer of a database.
 *
 * A job is a synchronous function that reads and writes through the `Writer`. Jobs run one after
 * the other and see each other's writes at once; a job that throws leaves no trace. Finished jobs
 * gather in a batch, a batch is one LMDB commit, and the promise of a job settles when its batch
 * is on disk, also that of a job that threw: what it saw must be there for all to see. While a
 * batch is being flushed, the next one is already being filled, but it is not handed over before
 * the first one is known to be safe: when a flush fails, the jobs that built upon it run again
 * from what the file really holds. So a job may run twice, and must touch nothing but the `Writer`.
 */
export class Writer<State extends object> {
  #queue: Job[] = [];
  #filling: Batch | undefined;
  #flushing: Batch | undefined;
  #scheduled = false;
  #closed: Error | undefined;
  #idle: (() => void)[] = [];
  #holds = 0;
  #held: (() => void)[] = [];
  #touched: TouchedRows | undefined;
  /** Batches on disk of which not every job has heard yet. */
  #settling = 0;
  /** Hears how long each job waited for its turn. */
  onWaited: ((delayMs: number) => void) | undefined;
  /** Replaced, never changed in place: a job that fails gets the old one back. */
  state: Readonly<State>;

  constructor(
    private tables: Tables,
    private readonly options: WriterOptions<State>,
  ) {
    this.state = options.load();
  }

  /** Runs `job` in its turn. Resolves with what it returned once that is on disk. */
  submit<Result>(job: () => Result): Promise<Result> {
    if (this.#closed) return Promise.reject(this.#closed);
    const submittedAt = this.options.clock.monotonic();
    return new Promise<Result>((resolve, reject) => {
      this.#queue.push(new Job(job, resolve as (value: unknown) => void, reject, submittedAt));
      this.#schedule();
    });
  }

  /** Jobs that wait for their turn: a measure of load. */
  get backlog(): number {
    return this.#queue.length;
  }

  get(table: TableName, key: Buffer): Buffer | undefined {
    const pending =
      this.#filling?.writes.find(table, key) ?? this.#flushing?.writes.find(table, key);
    return pending ? pending.value : this.tables.get(table, key);
  }

  range(table: TableName, range: KeyRange): Iterable<TableRow> {
    const layers = [this.#filling, this.#flushing].flatMap((batch) =>
      batch?.writes.has(table) ? [batch.writes.rows(table, range)] : [],
    );
    if (layers.length === 0) return this.tables.range(table, range);
    // The limit is for what is left after removed rows, so the file is read without one.
    const { limit: _limit, ...unlimited } = range;
    return mergeRows(layers, this.tables.range(table, unlimited), range);
  }

  put(table: TableName, key: Buffer, value: Buffer): void {
    this.#filling!.writes.set(table, key, value);
  }

  remove(table: TableName, key: Buffer): void {
    this.#filling!.writes.set(table, key, undefined);
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

  /**
   * Runs `run` while no job does and nothing is on its way to the file. Jobs that come meanwhile
   * wait in the queue.
   */
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

  /** Goes on with another file that holds the same rows. Only while held. */
  switchTo(tables: Tables): void {
    if (this.#flushing || this.#filling || this.#holds === 0) throw new Error('The writer is busy');
    this.tables = tables;
  }

  /**
   * The rows written since the last call, and from now on noted anew; the first call begins it.
   * Rows on their way to the file count for both: a reader may not see them yet.
   */
  takeTouched(): TouchedRows {
    const taken = this.#touched ?? new TouchedRows();
    this.#touched = new TouchedRows();
    if (this.#flushing) this.#touched.addAll(this.#flushing.writes);
    return taken;
  }

  /** Those that `takeTouched` would give now. */
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
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const takesJobs = this.#holds === 0;
    if (takesJobs && this.#queue.length > 0 && !this.#isFull()) this.#fill();
    if (this.#filling && !this.#flushing) this.#handOver(this.#filling);
    if (takesJobs && this.#queue.length > 0 && !this.#isFull()) this.#schedule();
    if (!this.#filling && !this.#flushing) for (const resolve of this.#held.splice(0)) resolve();
    if (!this.#busy) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #isFull(): boolean {
    const batch = this.#filling;
    return (
      batch !== undefined &&
      (batch.jobs.length >= this.options.mostJobs || batch.writes.bytes >= this.options.mostBytes)
    );
  }

  #fill(): void {
    this.tables.refresh();
    const { clock, sliceMs } = this.options;
    const started = clock.monotonic();
    const batch = (this.#filling ??= {
      writes: new PendingWrites(),
      jobs: [],
      done: 0,
      isSettled: false,
    });
    let taken = 0;
    // Others want the event loop too. The rest of the queue runs on the next turn.
    for (let now = started; now - started <= sliceMs; now = clock.monotonic()) {
      const job = this.#queue[taken++]!;
      this.onWaited?.(now - job.submittedAt);
      this.#runJob(batch, job);
      if (taken === this.#queue.length || this.#isFull()) break;
    }
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
  }

  #runJob(batch: Batch, job: Job): void {
    // Jobs put another state in its place, they never change this one.
    const before = this.state;
    batch.writes.begin();
    batch.jobs.push(job);
    try {
      job.result = job.run();
      job.refusal = undefined;
      batch.done++;
    } catch (error) {
      batch.writes.rollback();
      this.state = before;
      // Told with the batch: it may speak of writes that nobody else can see yet.
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
    this.options.beforeFlush(this.state, (table, key, value) =>
      batch.writes.set(table, key, value),
    );
    const after = this.state;
    this.#touched?.addAll(batch.writes);
    this.tables
      .commit(
        (put, remove) => batch.writes.writeTo(put, remove),
        () => this.#visible(batch),
      )
      .then(
        () => this.#flushed(batch, after),
        (error: unknown) => this.#failed(batch, error),
      );
  }

  #visible(batch: Batch): void {
    if (!this.options.relaxed) return;
    this.tables.refresh();
    this.#settle(batch);
  }

  #flushed(batch: Batch, after: State): void {
    this.#flushing = undefined;
    // Readers see the commit before its writers hear of it.
    this.tables.refresh();
    this.options.afterFlush(after, batch.done);
    this.#settle(batch);
    this.#pump();
  }

  #settle(batch: Batch): void {
    if (batch.isSettled) return;
    batch.isSettled = true;
    this.#tell(batch.jobs, 0);
  }

  /**
   * What a caller does when it hears runs before the event loop turns again. A few hundred of them
   * at once would hold it for longer than the writing did.
   */
  #tell(jobs: readonly Job[], from: number): void {
    const end = Math.min(jobs.length, from + this.options.mostTold);
    for (let i = from; i < end; i++) {
      const job = jobs[i]!;
      if (job.refusal) job.reject(job.refusal.error);
      else job.resolve(job.result);
    }
    if (end === jobs.length) return;
    this.#settling++;
    setImmediate(() => {
      this.#settling--;
      this.#tell(jobs, end);
      this.#pump();
    });
  }

  #failed(batch: Batch, error: unknown): void {
    this.#flushing = undefined;
    const refused = batch.isSettled ? [] : batch.jobs.filter((job) => job.refusal);
    const again = [...refused, ...(this.#filling?.jobs ?? [])];
    this.#filling = undefined;
    this.tables.refresh();
    // Not `batch.before`: a commit whose fsync failed may be in the file all the same.
    this.state = this.options.load();
    this.#queue = [...again, ...this.#queue];
    const reason = this.options.explain(error);
    this.options.failed(reason, batch.done);
    for (const job of batch.jobs) if (!job.refusal) job.reject(reason);
    this.#pump();
  }
}

export interface WriterOptions<State> {
  clock: Clock;
  load(): State;
  /** Adds what every commit carries. */
  beforeFlush(state: State, put: (table: TableName, key: Buffer, value: Buffer) => void): void;
  /** Called with the state that is now on disk. */
  afterFlush(state: State, jobs: number): void;
  /** Called when a batch did not reach the disk. */
  failed(reason: unknown, jobs: number): void;
  /** Turns what LMDB said into a refusal that says what to do. */
  explain(error: unknown): unknown;
  mostJobs: number;
  mostBytes: number;
  /** How long jobs may hold the event loop in one go. */
  sliceMs: number;
  /** How many callers hear in one turn of the event loop that their job is done. */
  mostTold: number;
  /** Resolve a job when readers can see what it did, not when that is on disk. */
  relaxed: boolean;
}

class Job {
  result: unknown = undefined;
  /** What it threw. */
  refusal: { error: unknown } | undefined = undefined;

  constructor(
    readonly run: () => unknown,
    readonly resolve: (value: unknown) => void,
    readonly reject: (reason: unknown) => void,
    /** On the monotonic clock. */
    readonly submittedAt: number,
  ) {}
}

interface Batch {
  writes: PendingWrites;
  /** In the order in which they ran, those that threw included. */
  jobs: Job[];
  /** How many did not throw. */
  done: number;
  isSettled: boolean;
}
