import { failureOf, PermanentError, Suspended, TaskTimeout } from './errors.js';
import type { HandlerCall, Progress } from './handlers.js';
import { pause } from './pause.js';
import { RunningTask } from './running-task.js';
import { Settler } from './settler.js';
import type { TaskInfo } from './tasks.js';
import { ErrorReporter } from './transport.js';
import type { ClaimedTask, QueueTransport, SettleItem } from './transport.js';

interface QueueOption {
  queue: string;
  queues?: undefined;
}

interface QueuesOption {
  /** Several queues with their weights: `{ mail: 3, pdf: 1 }`. */
  queues: Readonly<Record<string, number>>;
  queue?: undefined;
}

export type WorkerOptions = (QueueOption | QueuesOption) & {
  /** Tasks that run at the same time; 10 if absent. */
  concurrency?: number;
  /** Shown in the list of workers; made up if absent. */
  name?: string;
  /** How long the queue waits for a sign of life; 30 s if absent. Leases are extended by themselves. */
  leaseMs?: number;
  /** Gets only tasks all of whose labels are among these. */
  labels?: readonly string[];
  /** Handlers get up to `size` tasks at once, after at most `waitMs`. */
  batch?: { size: number; waitMs?: number };
  /** Decides what follows a failed attempt; undefined leaves it to the task and its queue. */
  retry?: (error: unknown, attempt: number) => number | 'dead' | undefined;
  /** Runs the handlers of a file in this many threads, one task in each. */
  threads?: number;
  /** The same in processes, which share no memory: a crash of native code fails its task alone. */
  processes?: number;
  /** Called for errors that end no task: a lost connection, a lost lease. Default: its message to stderr. */
  onError?: (error: unknown) => void;
};

export interface StopOptions {
  /** How long running handlers may go on before they are aborted; 30 s if absent. */
  timeoutMs?: number;
}

/** Runs around every handler: `async (context, next) => next()`. */
export type Middleware = (
  context: HandlerCall<unknown>,
  next: () => Promise<unknown>,
) => Promise<unknown>;

export interface WorkerEvents {
  /** A handler begins. */
  active: [task: TaskInfo];
  succeeded: [task: TaskInfo, result: unknown];
  failed: [task: TaskInfo, error: unknown];
  /** The lease was lost: the task runs again, here or elsewhere. */
  stalled: [task: TaskInfo];
  /** Nothing runs, and the queue has nothing due. */
  drained: [];
}

type Listener<Event extends keyof WorkerEvents = keyof WorkerEvents> = (
  ...args: WorkerEvents[Event]
) => void;

export interface Worker {
  readonly name: string;
  readonly queues: readonly string[];
  /** How many tasks run now. */
  readonly running: number;
  readonly isPaused: boolean;
  /** Claims nothing more until `resume`; running handlers go on. */
  pause(): void;
  resume(): void;
  use(middleware: Middleware): Worker;
  on<Event extends keyof WorkerEvents>(event: Event, listener: Listener<Event>): Worker;
  off<Event extends keyof WorkerEvents>(event: Event, listener: Listener<Event>): Worker;
  /** Claims nothing more, and resolves when running tasks have ended and are settled. */
  stop(options?: StopOptions): Promise<void>;
}

const defaultConcurrency = 10;
const defaultLeaseMs = 30_000;
const defaultStopMs = 30_000;
const waitMs = 30_000;
const maxResultBytes = 65_536;
const maxPerClaim = 100;
const firstRetryMs = 100;
const maxRetryMs = 5_000;
/** A claim that waits this long found nothing due. */
const drainedMs = 50;
/** The queue takes no longer delay. */
const maxDelayMs = 30 * 86_400_000;

export interface RawCall {
  readonly claimed: ClaimedTask;
  readonly task: Pick<RunningTask, 'info' | 'isAborted' | 'lose' | 'takeSteps'>;
  readonly signal: AbortSignal;
  readonly progress: (progress: Progress) => Promise<void>;
  /** Runs a handler within the middleware of the worker. */
  readonly wrap: (context: HandlerCall<unknown>, run: () => unknown) => Promise<unknown>;
}

export type RawWorkerOptions = WorkerOptions & {
  /** Claim only tasks of these handlers; absent: any. */
  handlers?: readonly string[] | undefined;
  /** How long an attempt of a task may take, if the task does not say so. */
  timeoutMs?: ((handlerRef: string) => number | undefined) | undefined;
  /** Called when the worker has stopped. */
  onStopped?: (() => Promise<void>) | undefined;
};

/** A worker that runs every task by one function. */
export function startRawWorker(
  transport: QueueTransport,
  options: RawWorkerOptions,
  run: (call: RawCall) => unknown,
): Worker {
  return new PullWorker(transport, options, run);
}

/** A queue that a worker claims from. */
class Source {
  /** Claimed tasks that wait for a slot. */
  readonly waiting: RunningTask[] = [];
  readonly settler: Settler;
  /** Grows by the weight in each round; the greatest goes first. */
  credit = 0;

  constructor(
    readonly queue: string,
    readonly weight: number,
    transport: QueueTransport,
    onError: (error: unknown) => void,
  ) {
    if (!(weight > 0)) throw new RangeError(`The weight of queue ${queue} must be above 0`);
    this.settler = new Settler(transport, queue, onError);
  }
}

function sourcesOf(
  { queue, queues = {} }: WorkerOptions,
  make: (queue: string, weight: number) => Source,
): Source[] {
  const named = Object.entries(queues);
  const weights = queue === undefined ? named : [[queue, 1] as const];
  if (weights.length === 0 || (queue !== undefined && named.length > 0)) {
    throw new TypeError('A worker needs either { queue } or { queues }');
  }
  return weights.map(([name, weight]) => make(name, weight));
}

class PullWorker implements Worker {
  readonly name: string;
  readonly #concurrency: number;
  readonly #leaseMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #sources: readonly Source[];
  readonly #running = new Set<RunningTask>();
  readonly #stopping = new AbortController();
  readonly #middleware: Middleware[] = [];
  readonly #listeners = new Map<keyof WorkerEvents, Set<Listener>>();
  readonly #wakers = new Set<() => void>();
  readonly #loops: Promise<unknown>;
  readonly #extending: ReturnType<typeof setInterval>;
  readonly #stopListening: () => void;
  /** Aborted by a pause. */
  #claiming = new AbortController();
  #drained: ReturnType<typeof setTimeout> | undefined;
  #isPaused = false;
  /** Tasks of which the queue may not know yet how they ended. */
  #unsettled = 0;
  #stopped: Promise<void> | undefined;

  constructor(
    private readonly transport: QueueTransport,
    private readonly options: RawWorkerOptions,
    private readonly run: (call: RawCall) => unknown,
  ) {
    this.name = options.name ?? `worker-${crypto.randomUUID().slice(0, 8)}`;
    this.#concurrency =
      options.concurrency ?? Math.max(defaultConcurrency, options.batch?.size ?? 0);
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1) {
      throw new RangeError('concurrency must be a whole number of at least 1');
    }
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs;
    this.#onError = options.onError ?? ((error) => console.error(`${this.name}: ${textOf(error)}`));
    this.#sources = sourcesOf(
      options,
      (queue, weight) => new Source(queue, weight, transport, this.#onError),
    );
    transport.ensureQueues?.(this.#sources.map(({ queue }) => queue));
    const stops = [
      transport.onStopped?.((id, how) => this.#interrupt(id, how)),
      transport.onReconnected?.(() => this.#extendAll()),
    ];
    this.#stopListening = () => stops.forEach((stop) => stop?.());
    this.#extending = setInterval(() => this.#extendAll(), this.#leaseMs / 3);
    // Later, so that `use` and `on` come before the first task.
    this.#loops = Promise.resolve().then(() =>
      Promise.all(this.#sources.map((source) => this.#claimLoop(source))),
    );
  }

  get queues(): readonly string[] {
    return this.#sources.map(({ queue }) => queue);
  }

  get running(): number {
    return this.#running.size;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  pause(): void {
    this.#isPaused = true;
    this.#claiming.abort();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#claiming = new AbortController();
    this.#wake();
  }

  use(middleware: Middleware): Worker {
    this.#middleware.push(middleware);
    return this;
  }

  on<Event extends keyof WorkerEvents>(event: Event, listener: Listener<Event>): Worker {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener as Listener));
    return this;
  }

  off<Event extends keyof WorkerEvents>(event: Event, listener: Listener<Event>): Worker {
    this.#listeners.get(event)?.delete(listener as Listener);
    return this;
  }

  stop({ timeoutMs = defaultStopMs }: StopOptions = {}): Promise<void> {
    this.#stopped ??= this.#stop(timeoutMs);
    return this.#stopped;
  }

  async #stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    this.#claiming.abort();
    this.#wake();
    clearTimeout(this.#drained);
    const timer = setTimeout(() => {
      for (const task of this.#running) task.abort(new Error('The worker stops'));
    }, timeoutMs);
    await this.#loops;
    for (const source of this.#sources) {
      for (const task of source.waiting.splice(0)) this.#handBack(source, task);
    }
    while (this.#unsettled > 0) await this.#woken();
    clearTimeout(timer);
    clearInterval(this.#extending);
    this.#stopListening();
    await this.options.onStopped?.();
  }

  #emit<Event extends keyof WorkerEvents>(event: Event, ...args: WorkerEvents[Event]): void {
    for (const listener of this.#listeners.get(event) ?? []) {
      try {
        listener(...(args as never as []));
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  #wake(): void {
    for (const wake of this.#wakers) wake();
    this.#wakers.clear();
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => this.#wakers.add(resolve));
  }

  /** How many tasks to claim from a queue now. */
  #room({ waiting, weight }: Source): number {
    const free = this.#concurrency - this.#running.size;
    if (this.#isPaused || waiting.length > 0) return 0;
    if (this.#sources.length === 1) return free;
    const weights = this.#sources.map((source) => source.weight);
    const share = Math.floor((free * weight) / weights.reduce((sum, each) => sum + each));
    // Some wait here for their turn, so that the weights decide even with one slot.
    return Math.max(share, Math.ceil(weight / Math.min(...weights)));
  }

  async #claimLoop(source: Source): Promise<void> {
    const { signal } = this.#stopping;
    const errors = new ErrorReporter(this.#onError);
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      let leastMs = 0;
      const room = this.#room(source);
      if (room <= 0) {
        await this.#woken();
        continue;
      }
      try {
        const startedAt = Date.now();
        const tasks = await this.#claim(source, Math.min(room, maxPerClaim));
        errors.succeeded();
        this.#take(source, tasks);
        // A server that shuts down does not wait.
        const wasCutShort = tasks.length === 0 && Date.now() - startedAt < waitMs / 2;
        if (!wasCutShort || this.#isPaused) {
          retryMs = firstRetryMs;
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (this.#isPaused) continue;
        leastMs = errors.failed(error);
      }
      await pause(Math.max(leastMs, retryMs * (0.5 + Math.random() / 2)), signal);
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
  }

  #claim(source: Source, limit: number): Promise<ClaimedTask[]> {
    const { handlers, labels } = this.options;
    const request = {
      worker: this.name,
      limit,
      wait_ms: waitMs,
      lease_ms: this.#leaseMs,
      ...(handlers && { handlers: [...handlers] }),
      ...(labels && { labels: [...labels] }),
    };
    return this.transport.claim(source.queue, request, this.#claiming.signal);
  }

  #take(source: Source, tasks: readonly ClaimedTask[]): void {
    for (const claimed of tasks) {
      source.waiting.push(new RunningTask(claimed, this.transport, this.#leaseMs));
    }
    this.#startWaiting();
  }

  /** Starts waiting tasks, those of heavier queues more often. */
  #startWaiting(): void {
    while (this.#running.size < this.#concurrency) {
      const ready = this.#sources.filter(({ waiting }) => waiting.length > 0);
      const [first] = ready;
      if (!first) return;
      let next = first;
      if (ready.length > 1) {
        for (const source of ready) {
          source.credit += source.weight;
          if (source.credit > next.credit) next = source;
        }
        next.credit -= ready.reduce((sum, { weight }) => sum + weight, 0);
      }
      this.#start(next, next.waiting.shift()!);
    }
  }

  #start(source: Source, task: RunningTask): void {
    clearTimeout(this.#drained);
    this.#running.add(task);
    if (this.#listeners.size > 0) this.#emit('active', task.info);
    void this.#finish(source, task);
  }

  async #finish(source: Source, task: RunningTask): Promise<void> {
    const { onStopped, batchesCalls } = this.transport;
    // Where the session of a connection is refused, it falls back to REST.
    const endWatch = onStopped && batchesCalls !== false ? undefined : task.watch();
    this.#unsettled++;
    const item = await this.#handle(task);
    endWatch?.();
    task.isSettling = true;
    this.#running.delete(task);
    this.#startWaiting();
    this.#wake();
    if (this.#running.size === 0 && this.#listeners.has('drained')) this.#watchDrained();
    if (item) await source.settler.settle(item, () => task.leaseEnd);
    this.#settled();
  }

  #settled(): void {
    this.#unsettled--;
    if (this.#stopped) this.#wake();
  }

  #watchDrained(): void {
    clearTimeout(this.#drained);
    this.#drained = setTimeout(() => {
      if (this.#running.size === 0 && !this.#isPaused) this.#emit('drained');
    }, drainedMs);
  }

  /** The attempt does not count: the worker stops before it began. */
  #handBack({ settler }: Source, task: RunningTask): void {
    const { id, lease_token } = task.claimed;
    const item = { id, lease_token, outcome: 'fail', defer: true, message: 'The worker stops' };
    this.#unsettled++;
    void settler.settle(item as SettleItem, () => task.leaseEnd).then(() => this.#settled());
  }

  /** Runs the handler. Undefined: the lease is lost, so there is nothing to settle. */
  async #handle(task: RunningTask): Promise<SettleItem | undefined> {
    const { claimed, info } = task;
    const lease = { id: claimed.id, lease_token: claimed.lease_token };
    try {
      const result = jsonOf(await this.#run(task));
      if (task.isLost) return this.#lost(task);
      this.#emit('succeeded', info, result);
      return {
        ...lease,
        ...task.takeSteps(),
        outcome: 'complete',
        ...(result !== undefined && { result }),
      };
    } catch (error) {
      if (task.isLost) return this.#lost(task);
      if (error instanceof Suspended) {
        return { ...lease, ...task.takeSteps(), outcome: 'suspend', suspend: error.suspend };
      }
      if (task.isAborted && !this.#stopping.signal.aborted && !(error instanceof TaskTimeout)) {
        return this.#lost(task);
      }
      this.#emit('failed', info, error);
      const { errorType, message, stack, isPermanent, retryAfterMs } = failureOf(error);
      const decision = isPermanent ? 'dead' : this.#decide(error, info.attempt);
      return {
        ...lease,
        outcome: 'fail',
        error_type: errorType,
        message,
        stack,
        retry: decision !== 'dead',
        // A handler that was cut off by a shutdown has not used up its attempt.
        ...(task.isAborted && this.#stopping.signal.aborted && { defer: true }),
        ...(retryAfterMs !== undefined && { retry_after_ms: Math.round(retryAfterMs) }),
        ...(typeof decision === 'number' && { delay_ms: Math.round(decision) }),
      };
    }
  }

  /** What the program says about a retry; undefined: the queue decides. */
  #decide(error: unknown, attempt: number): number | 'dead' | undefined {
    try {
      const decision = this.options.retry?.(error, attempt);
      if (typeof decision !== 'number') return decision;
      if (Number.isNaN(decision)) throw new RangeError('retry returned NaN');
      return Math.min(Math.max(0, decision), maxDelayMs);
    } catch (failure) {
      this.#onError(failure);
      return undefined;
    }
  }

  #lost(task: RunningTask): undefined {
    this.#emit('stalled', task.info);
  }

  async #run(task: RunningTask): Promise<unknown> {
    const call = new TaskCall(task, {
      progress: (report) => task.extend(report).catch(this.#onError),
      wrap: (context, run) => this.#wrap(0, context, run),
    });
    const timeoutMs =
      (task.claimed as { timeout_ms?: number | null }).timeout_ms ??
      this.options.timeoutMs?.(task.info.handlerRef);
    if (timeoutMs === undefined) return this.run(call);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new TaskTimeout(`The attempt took longer than ${timeoutMs} ms`);
        task.abort(error);
        reject(error);
      }, timeoutMs);
    });
    try {
      return await Promise.race([this.run(call), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #wrap(at: number, context: HandlerCall<unknown>, run: () => unknown): Promise<unknown> {
    const middleware = this.#middleware[at];
    return middleware ? middleware(context, () => this.#wrap(at + 1, context, run)) : run();
  }

  #interrupt(id: string, how: 'cancelled' | 'lost'): void {
    for (const task of this.#running) {
      if (task.info.id !== id) continue;
      if (how === 'cancelled') task.cancel();
      else task.lose();
    }
  }

  #extendAll(): void {
    const waiting = this.#sources.flatMap((source) => source.waiting);
    for (const task of [...this.#running, ...waiting]) {
      // The loss was reported, and a handler may go on for long.
      if (task.isLost) continue;
      task.extend().catch((error: unknown) => {
        // One that was settled meanwhile has no lease, and needs none.
        if (!task.isSettling) this.#onError(error);
      });
    }
  }
}

/** A class, since an object with getters of its own costs V8 a hidden class for every task. */
class TaskCall implements RawCall {
  readonly progress: RawCall['progress'];
  readonly wrap: RawCall['wrap'];

  constructor(
    readonly task: RunningTask,
    { progress, wrap }: Pick<RawCall, 'progress' | 'wrap'>,
  ) {
    this.progress = progress;
    this.wrap = wrap;
  }

  get claimed(): ClaimedTask {
    return this.task.claimed;
  }

  get signal(): AbortSignal {
    return this.task.signal;
  }
}

/** One line: the stack of a lost lease or connection shows nothing of the user's program. */
function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The result as JSON holds it: queues keep no more than 64 KiB. */
function jsonOf(result: unknown): unknown {
  const text = JSON.stringify(result) as string | undefined;
  if (text === undefined) return undefined;
  // No character takes more than three bytes in UTF-8.
  if (text.length <= maxResultBytes / 3) return JSON.parse(text);
  const { length } = new TextEncoder().encode(text);
  if (length <= maxResultBytes) return JSON.parse(text);
  throw new PermanentError(`The result has ${length} bytes; at most ${maxResultBytes} are kept.`);
}
