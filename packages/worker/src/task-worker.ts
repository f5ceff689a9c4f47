import { InvalidResult, PermanentError, ValidationError } from './errors.js';
import { handlerCall, handlerOf, type AnyHandlers, type HandlerCall } from './handlers.js';
import type { BatchHandlers, RunRequest, TaskHandlers } from './handlers.js';
import { HandlerPool } from './handler-pool.js';
import { fromWire } from './names.js';
import { payloadBytes } from './payload.js';
import { Steps } from './steps.js';
import { checkResult, definitionOf, type TaskInfo, type Tasks, type TaskTypes } from './tasks.js';
import { inSpan } from './tracing.js';
import type { QueueTransport } from './transport.js';
import { startRawWorker, type RawCall, type Worker, type WorkerOptions } from './worker.js';

const maxHandlersInClaim = 100;
const defaultBatchWaitMs = 50;

/** Calls the handler of a task with what it gets. */
type RunHandler = (call: HandlerCall<unknown>) => unknown;

/** The worker of any transport that runs the handlers of defined tasks. */
export function startWorker<Types extends TaskTypes>(
  transport: QueueTransport,
  options: WorkerOptions,
  tasks: Tasks<Types>,
  handlers: TaskHandlers<Types> | BatchHandlers<Types> | URL,
  onStopped?: () => Promise<void>,
): Worker {
  requireKnown(options);
  const refs = handlers instanceof URL ? Object.keys(tasks.definitions) : Object.keys(handlers);
  if (refs.length === 0 && !(handlers instanceof URL)) {
    throw new TypeError('A worker needs handlers: there is none.');
  }
  const pool = poolOf(options, handlers);
  const run = pool
    ? (call: HandlerCall<unknown>) => pool.run(call)
    : runOf(options, handlers as AnyHandlers);
  const worker = startRawWorker(
    transport,
    {
      ...options,
      ...(pool && { concurrency: pool.count }),
      // Tasks without a handler here are left to other workers.
      handlers: refs.length > 0 && refs.length <= maxHandlersInClaim ? refs : undefined,
      timeoutMs: (ref) => definitionOf(tasks, ref)?.timeoutMs,
      onStopped: async () => {
        await pool?.close();
        await onStopped?.();
      },
    },
    (call) => runTask(transport, tasks, call, run),
  );
  return worker;
}

const optionNames: readonly string[] = [
  'queue',
  'queues',
  'concurrency',
  'name',
  'leaseMs',
  'labels',
  'batch',
  'retry',
  'threads',
  'processes',
  'onError',
] satisfies (keyof WorkerOptions)[];

/** A name that is misspelt would be a setting that has no effect. */
function requireKnown(options: WorkerOptions): void {
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(`${unknown} is not an option of a worker; use ${optionNames.join(', ')}.`);
}

function poolOf(
  { threads, processes, batch }: WorkerOptions,
  handlers: object,
): HandlerPool | undefined {
  const isHosted = threads !== undefined || processes !== undefined;
  if (!(handlers instanceof URL)) {
    if (!isHosted) return undefined;
    throw new TypeError(
      'Threads and processes need the URL of a file that exports its handlers as default.',
    );
  }
  if (batch) throw new TypeError('Batch handlers cannot run in threads or processes.');
  if (processes === undefined) return new HandlerPool(handlers, threads ?? 1, 'thread');
  if (threads !== undefined) throw new TypeError('Handlers run either in threads or in processes.');
  return new HandlerPool(handlers, processes, 'process');
}

function runOf({ batch }: WorkerOptions, handlers: AnyHandlers): RunHandler {
  if (batch) {
    const batches = new Batches(batch, handlers);
    return (call) => batches.run(call);
  }
  return (call) => handlerOf(handlers, call.task.handlerRef)(call as never);
}

/** One run of a handler: its steps are made when the handler asks for them. */
class Run implements RunRequest {
  readonly task: TaskInfo;
  readonly progress: RawCall['progress'];
  #steps: Steps | undefined;
  #suspend: (reason: unknown) => void = () => undefined;

  constructor(
    private readonly transport: QueueTransport,
    private readonly tasks: Tasks<TaskTypes>,
    private readonly call: RawCall,
  ) {
    this.task = call.task.info;
    this.progress = call.progress;
  }

  get bytes(): Uint8Array {
    return payloadBytes(this.call.claimed.payload);
  }

  get contentType(): string {
    return this.call.claimed.payload_content_type;
  }

  get dependencies(): RunRequest['dependencies'] {
    return fromWire(this.call.claimed.dependencies ?? []);
  }

  get signal(): AbortSignal {
    return this.call.signal;
  }

  get step(): Steps {
    this.#steps ??= this.#makeSteps();
    return this.#steps;
  }

  #makeSteps(): Steps {
    const { transport, tasks, call } = this;
    const { claimed, task } = call;
    const steps = new Steps({
      transport,
      tasks,
      task: task.info,
      leaseToken: claimed.lease_token,
      run: claimed,
      signal: () => call.signal,
      isAborted: () => task.isAborted,
      onLost: (error) => task.lose(error),
    });
    task.takeSteps = () => {
      const unsaved = steps.takeUnsaved();
      return unsaved.length > 0 ? { steps: unsaved } : {};
    };
    steps.suspended.catch(this.#suspend);
    return steps;
  }

  /** The end of the handler, or the reason why it waits. */
  ended(start: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#suspend = reject;
      start().then(resolve, reject);
    });
  }
}

async function runTask(
  transport: QueueTransport,
  tasks: Tasks<TaskTypes>,
  call: RawCall,
  runHandler: RunHandler,
): Promise<unknown> {
  const { info } = call.task;
  const run = new Run(transport, tasks, call);
  const context = await handlerCall(tasks, run);
  // A handler that is suspended does not return, but its span ends.
  const result = await inSpan(info, () =>
    run.ended(() => call.wrap(context, () => runHandler(context))),
  );
  try {
    return await checkResult(tasks, info.handlerRef, result);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new InvalidResult(error.message, { cause: error });
  }
}

interface Waiting {
  call: HandlerCall<unknown>;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/** Collects the tasks of each handler until there are enough, or the first has waited. */
class Batches {
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #size: number;
  readonly #waitMs: number;

  constructor(
    { size, waitMs = defaultBatchWaitMs }: { size: number; waitMs?: number },
    private readonly handlers: AnyHandlers,
  ) {
    if (!Number.isInteger(size) || size < 1) {
      throw new RangeError('batch.size must be a whole number of at least 1');
    }
    this.#size = size;
    this.#waitMs = waitMs;
  }

  run(call: HandlerCall<unknown>): Promise<unknown> {
    const { handlerRef } = call.task;
    Object.defineProperty(call, 'step', { get: refuseSteps });
    return new Promise((resolve, reject) => {
      let waiting = this.#waiting.get(handlerRef);
      if (!waiting) {
        const started: Waiting[] = [];
        waiting = started;
        this.#waiting.set(handlerRef, started);
        setTimeout(() => this.#flush(handlerRef, started), this.#waitMs);
      }
      waiting.push({ call, resolve, reject });
      if (waiting.length >= this.#size) this.#flush(handlerRef, waiting);
    });
  }

  /** `batch`: the one meant, which may have been flushed before. */
  #flush(handlerRef: string, batch: readonly Waiting[]): void {
    if (this.#waiting.get(handlerRef) !== batch) return;
    this.#waiting.delete(handlerRef);
    void this.#handle(handlerRef, batch);
  }

  async #handle(handlerRef: string, batch: readonly Waiting[]): Promise<void> {
    try {
      const handler = handlerOf(this.handlers, handlerRef);
      const results: unknown = await handler({ tasks: batch.map(({ call }) => call) } as never);
      if (!Array.isArray(results) || results.length !== batch.length) {
        throw new TypeError(
          `The batch handler of ${handlerRef} must return ${batch.length} results, one each.`,
        );
      }
      for (const [i, { resolve, reject }] of batch.entries()) {
        const result: unknown = results[i];
        if (result instanceof Error) reject(result);
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

/** A run that waits never returns, and would keep the other tasks of its batch. */
function refuseSteps(): never {
  throw new PermanentError('A batch handler has no steps: use a worker without `batch` for flows.');
}
