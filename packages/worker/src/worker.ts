import type { ClientOptions } from '@millrace/client';
import { failureOf, PermanentError } from './errors.js';
import { runHandler, type Progress, type TaskHandlers } from './handlers.js';
import { decodeBase64 } from './payload.js';
import { pause } from './pause.js';
import { RunningTask } from './running-task.js';
import { Settler } from './settler.js';
import type { Tasks, TaskTypes } from './tasks.js';
import {
  ErrorReporter,
  httpTransport,
  type ClaimedTask,
  type QueueTransport,
  type SettleItem,
} from './transport.js';

export interface WorkerOptions {
  queue: string;
  /** Tasks that run at the same time; 10 if absent. */
  concurrency?: number;
  /** Shown in the list of workers; made up if absent. */
  name?: string;
  /** How long the queue waits for a sign of life; 30 s if absent. Leases are extended by themselves. */
  leaseMs?: number;
  /** Called for errors that end no task: a lost connection, a lost lease. Default: its message to stderr. */
  onError?: (error: unknown) => void;
}

export interface StopOptions {
  /** How long running handlers may go on before they are aborted; 30 s if absent. */
  timeoutMs?: number;
}

export interface Worker {
  readonly name: string;
  /** How many tasks run now. */
  readonly running: number;
  /** Claims nothing more, and resolves when running tasks have ended and are settled. */
  stop(options?: StopOptions): Promise<void>;
}

const defaultConcurrency = 10;
const defaultLeaseMs = 30_000;
const defaultStopMs = 30_000;
const waitMs = 30_000;
const maxResultBytes = 65_536;
const maxPerClaim = 100;
const maxHandlersInClaim = 100;
const firstRetryMs = 100;
const maxRetryMs = 5_000;

/** Starts a worker that claims tasks of a pull queue and runs their handlers. */
export function createWorker<Types extends TaskTypes>(
  { url, token, fetch, ...options }: ClientOptions & WorkerOptions,
  tasks: Tasks<Types>,
  handlers: TaskHandlers<Types>,
): Worker {
  const client = { url, token, ...(fetch && { fetch }) };
  return startWorker(httpTransport(client), options, tasks, handlers);
}

/** The worker of any transport. */
export function startWorker<Types extends TaskTypes>(
  transport: QueueTransport,
  options: WorkerOptions,
  tasks: Tasks<Types>,
  handlers: TaskHandlers<Types>,
): Worker {
  const refs = Object.keys(handlers);
  // Tasks without a handler here are left to other workers.
  const filter = refs.length <= maxHandlersInClaim ? refs : undefined;
  return startRawWorker(transport, { ...options, handlers: filter }, (call) => {
    const { claimed, task, progress } = call;
    return runHandler(tasks, handlers, {
      bytes: decodeBase64(claimed.payload),
      contentType: claimed.payload_content_type,
      task: task.info,
      get signal() {
        return call.signal;
      },
      progress,
    });
  });
}

export interface RawCall {
  readonly claimed: ClaimedTask;
  readonly task: Pick<RunningTask, 'info'>;
  readonly signal: AbortSignal;
  readonly progress: (progress: Progress) => Promise<void>;
}

export interface RawWorkerOptions extends WorkerOptions {
  /** Claim only tasks of these handlers; absent: any. */
  handlers?: readonly string[] | undefined;
}

/** A worker that runs every task by one function. */
export function startRawWorker(
  transport: QueueTransport,
  options: RawWorkerOptions,
  run: (call: RawCall) => unknown,
): Worker {
  const worker = new PullWorker(transport, options, run);
  worker.start();
  return worker;
}

class PullWorker implements Worker {
  readonly name: string;
  readonly #concurrency: number;
  readonly #leaseMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #settler: Settler;
  readonly #running = new Set<RunningTask>();
  /** Tasks whose handlers have ended; the queue may not know yet. */
  readonly #settling = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #onSlot: (() => void) | undefined;
  #loop: Promise<void> = Promise.resolve();
  #extending: ReturnType<typeof setInterval> | undefined;
  #stopped: Promise<void> | undefined;

  constructor(
    private readonly transport: QueueTransport,
    private readonly options: RawWorkerOptions,
    private readonly run: (call: RawCall) => unknown,
  ) {
    this.name = options.name ?? `worker-${crypto.randomUUID().slice(0, 8)}`;
    this.#concurrency = options.concurrency ?? defaultConcurrency;
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1) {
      throw new RangeError('concurrency must be a whole number of at least 1');
    }
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs;
    this.#onError = options.onError ?? ((error) => console.error(`${this.name}: ${textOf(error)}`));
    this.#settler = new Settler(transport, options.queue, this.#onError);
  }

  get running(): number {
    return this.#running.size;
  }

  start(): void {
    this.#loop = this.#claimLoop();
    this.#extending = setInterval(() => this.#extendAll(), this.#leaseMs / 3);
  }

  stop({ timeoutMs = defaultStopMs }: StopOptions = {}): Promise<void> {
    this.#stopped ??= this.#stop(timeoutMs);
    return this.#stopped;
  }

  async #stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    this.#onSlot?.();
    const timer = setTimeout(() => {
      for (const task of this.#running) task.abort(new Error('The worker stops'));
    }, timeoutMs);
    await this.#loop;
    while (this.#running.size > 0) await new Promise<void>((free) => (this.#onSlot = free));
    await Promise.all(this.#settling);
    clearTimeout(timer);
    clearInterval(this.#extending);
  }

  async #claimLoop(): Promise<void> {
    const { signal } = this.#stopping;
    const errors = new ErrorReporter(this.#onError);
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      let leastMs = 0;
      const free = this.#concurrency - this.#running.size;
      if (free <= 0) {
        await new Promise<void>((onSlot) => (this.#onSlot = onSlot));
        continue;
      }
      try {
        const startedAt = Date.now();
        const tasks = await this.#claim(Math.min(free, maxPerClaim));
        errors.succeeded();
        for (const task of tasks) this.#run(task);
        // A server that shuts down does not wait.
        const wasCutShort = tasks.length === 0 && Date.now() - startedAt < waitMs / 2;
        if (!wasCutShort) {
          retryMs = firstRetryMs;
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        leastMs = errors.failed(error);
      }
      await pause(Math.max(leastMs, retryMs * (0.5 + Math.random() / 2)), signal);
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
  }

  #claim(limit: number): Promise<ClaimedTask[]> {
    const { handlers } = this.options;
    const request = {
      worker: this.name,
      limit,
      wait_ms: waitMs,
      lease_ms: this.#leaseMs,
      ...(handlers && { handlers: [...handlers] }),
    };
    return this.transport.claim(this.options.queue, request, this.#stopping.signal);
  }

  #run(claimed: ClaimedTask): void {
    const task = new RunningTask(claimed, this.transport, this.#leaseMs);
    this.#running.add(task);
    const settled = this.#handle(task)
      .finally(() => {
        this.#running.delete(task);
        this.#onSlot?.();
      })
      .then((item) => item && this.#settler.settle(item, () => task.leaseEnd));
    const entry: Promise<void> = settled.finally(() => this.#settling.delete(entry));
    this.#settling.add(entry);
  }

  /** Runs the handler. Undefined: the lease is lost, so there is nothing to settle. */
  async #handle(task: RunningTask): Promise<SettleItem | undefined> {
    const { claimed } = task;
    const lease = { id: claimed.id, lease_token: claimed.lease_token };
    try {
      const progress = (report: Progress) => task.extend(report).catch(this.#onError);
      const call: RawCall = {
        claimed,
        task,
        get signal() {
          return task.signal;
        },
        progress,
      };
      const result = jsonOf(await this.run(call));
      if (task.isLost) return undefined;
      return { ...lease, outcome: 'complete', ...(result !== undefined && { result }) };
    } catch (error) {
      if (task.isAborted && !this.#stopping.signal.aborted) return undefined;
      const { errorType, message, stack, isPermanent, retryAfterMs } = failureOf(error);
      return {
        ...lease,
        outcome: 'fail',
        error_type: errorType,
        message,
        stack,
        retry: !isPermanent,
        // A handler that was cut off by a shutdown has not used up its attempt.
        ...(task.isAborted && { defer: true }),
        ...(retryAfterMs !== undefined && { retry_after_ms: Math.round(retryAfterMs) }),
      };
    }
  }

  #extendAll(): void {
    for (const task of this.#running) {
      // The loss was reported, and a handler may go on for long.
      if (!task.isLost) task.extend().catch(this.#onError);
    }
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
  const { length } = new TextEncoder().encode(text);
  if (length <= maxResultBytes) return JSON.parse(text);
  throw new PermanentError(`The result has ${length} bytes; at most ${maxResultBytes} are kept.`);
}
