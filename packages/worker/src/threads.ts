import type * as workerThreads from 'node:worker_threads';
import { failureOf, PermanentError, RetryLater, StepFailed } from './errors.js';
import type { HandlerCall, Progress } from './handlers.js';
import type { StepContext, Steps } from './steps.js';

/** What runs in a thread. Plain text, because a thread starts without a compiler. */
const threadProgram = `
const { parentPort, workerData } = require('node:worker_threads');
const runs = new Map();
const handlers = import(workerData).then((module) => module.default);
handlers.catch(() => undefined);
const errorOf = (thrown) => {
  const { name, message, stack, afterMs, errorType } = thrown instanceof Error ? thrown : new Error(String(thrown));
  return { name, message, stack, afterMs, errorType };
};
const newError = (error) => Object.assign(new Error(error.message), error);
const names = ['run', 'sleep', 'signal', 'submit', 'submitMany', 'agent', 'now', 'random', 'id'];
/** Steps are recorded by the thread of the worker, which calls back for their functions. */
const stepOf = (id, run) => Object.fromEntries(names.map((name) => [name, (...args) => new Promise((resolve, reject) => {
  const call = ++run.calls;
  run.waiting.set(call, { resolve, reject, fn: name === 'run' ? args[1] : undefined });
  parentPort.postMessage({ id, step: { call, name, args: name === 'run' ? [args[0], args[2]] : args } });
})]));
async function callStep(id, run, { call, context }) {
  let ended;
  try {
    ended = { result: await run.waiting.get(call).fn({ ...context, signal: run.abort.signal }) };
  } catch (thrown) {
    ended = { error: errorOf(thrown) };
  }
  parentPort.postMessage({ id, called: { call, ...ended } });
}
parentPort.on('message', async ({ id, payload, task, dependencies, abort, drop, stepped, called }) => {
  const known = runs.get(id);
  if (drop) return runs.delete(id);
  if (abort !== undefined) return known?.abort.abort(newError(abort));
  if (called !== undefined) return known && callStep(id, known, called);
  if (stepped !== undefined) {
    const { resolve, reject } = known?.waiting.get(stepped.call) ?? {};
    if (stepped.error) reject?.(newError(stepped.error));
    else resolve?.(stepped.result);
    // By then the handler has begun its next step, if it has one.
    return setImmediate(() => parentPort.postMessage({ id, continued: stepped.call }));
  }
  const run = { abort: new AbortController(), calls: 0, waiting: new Map() };
  runs.set(id, run);
  const progress = (report) => new Promise((resolve) => {
    const call = ++run.calls;
    run.waiting.set(call, { resolve });
    parentPort.postMessage({ id, progress: { call, report } });
  });
  try {
    const handler = (await handlers)?.[task.handlerRef];
    if (!handler) throw Object.assign(new Error('There is no handler for ' + task.handlerRef), { name: 'PermanentError' });
    const { signal } = run.abort;
    const result = await handler({ payload, task, signal, progress, dependencies, step: stepOf(id, run) });
    parentPort.postMessage({ id, result: JSON.stringify(result) });
  } catch (thrown) {
    parentPort.postMessage({ id, error: errorOf(thrown) });
  } finally {
    runs.delete(id);
  }
});`;

interface ThreadError {
  name: string;
  message: string;
  stack?: string;
  afterMs?: number;
  errorType?: string;
}

type StepName =
  'run' | 'sleep' | 'signal' | 'submit' | 'submitMany' | 'agent' | 'now' | 'random' | 'id';

interface Called {
  call: number;
  result?: unknown;
  error?: ThreadError;
}

interface Answer {
  id: number;
  result?: string;
  error?: ThreadError;
  progress?: { call: number; report: Progress };
  /** The handler begins a step. */
  step?: { call: number; name: StepName; args: unknown[] };
  /** What the function of a step returned. */
  called?: Called;
  /** The handler has continued after this step. */
  continued?: number;
}

interface Job {
  call: HandlerCall<unknown>;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/** A thread that ended while it ran a task. */
class ThreadCrashed extends Error {
  override readonly name = 'ThreadCrashed';
}

/** Runs handlers in threads, one task in each at a time. A thread that ends is replaced. */
export class ThreadPool {
  readonly #idle: workerThreads.Worker[] = [];
  readonly #all = new Set<workerThreads.Worker>();
  readonly #waiting: Job[] = [];
  readonly #module: typeof workerThreads;
  #isClosed = false;
  #jobs = 0;

  constructor(
    private readonly file: URL,
    readonly count: number,
  ) {
    if (!Number.isInteger(count) || count < 1) {
      throw new RangeError('threads must be a whole number of at least 1');
    }
    // No import: other parts of this package run outside Node.
    this.#module = process.getBuiltinModule('node:worker_threads');
    for (let i = 0; i < count; i++) this.#idle.push(this.#open());
  }

  run(call: HandlerCall<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, resolve, reject });
      this.#next();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#all, (thread) => thread.terminate()));
  }

  #open(): workerThreads.Worker {
    const thread = new this.#module.Worker(threadProgram, {
      eval: true,
      workerData: this.file.href,
    });
    this.#all.add(thread);
    // An idle thread must not keep the process alive, and its end is no fault of a task.
    thread.unref();
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.#all.delete(thread);
      const at = this.#idle.indexOf(thread);
      if (at >= 0) this.#idle.splice(at, 1);
      if (this.#isClosed) return;
      this.#idle.push(this.#open());
      this.#next();
    });
    return thread;
  }

  #next(): void {
    const thread = this.#waiting.length > 0 ? this.#idle.shift() : undefined;
    if (thread) this.#start(thread, this.#waiting.shift()!);
  }

  #start(thread: workerThreads.Worker, { call, resolve, reject }: Job): void {
    const id = ++this.#jobs;
    const { payload, task, signal, progress, dependencies } = call;
    const steps = new ThreadSteps(
      call,
      (message) => post({ id, ...message }),
      () => {
        end();
        post({ id, drop: true });
        this.#idle.push(thread);
        this.#next();
      },
    );
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    const post = (message: object) => thread.postMessage(message);
    const onAbort = () => {
      const { name, message } = signal.reason as Error;
      post({ id, abort: { name, message } });
    };
    const end = () => {
      signal.removeEventListener('abort', onAbort);
      thread.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    const onMessage = ({ id: of, result, error, progress: reported, ...more }: Answer) => {
      if (of !== id) return;
      const { step, called, continued } = more;
      if (reported) {
        const { call: number, report } = reported;
        // A result that overtook the report would end the lease that the report extends.
        return void progress(report).then(() => post({ id, stepped: { call: number } }));
      }
      if (step) return void steps.run(step);
      if (called) return steps.called(called);
      if (continued !== undefined) return steps.continued(continued);
      end();
      this.#idle.push(thread);
      if (error) reject(errorOf(error));
      else resolve(result === undefined ? undefined : (JSON.parse(result) as unknown));
      this.#next();
    };
    let cause: unknown;
    const onError = (error: unknown) => (cause = error);
    const onExit = (code: number) => {
      end();
      const why = cause instanceof Error ? `: ${cause.message}` : '';
      reject(new ThreadCrashed(`The thread ended with exit code ${code}${why}`, { cause }));
    };
    signal.addEventListener('abort', onAbort);
    thread.on('message', onMessage).on('error', onError).on('exit', onExit);
    post({ id, payload, task, dependencies });
  }
}

/** Runs the steps of a handler that is in a thread; their functions run there. */
class ThreadSteps {
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #holds = new Map<number, () => void>();
  #steps: Steps | undefined;

  constructor(
    private readonly call: HandlerCall<unknown>,
    private readonly post: (message: object) => void,
    private readonly onSuspended: () => void,
  ) {}

  get #all(): Steps {
    if (!this.#steps) {
      this.#steps = this.call.step as Steps;
      this.#steps.suspended.catch(this.onSuspended);
    }
    return this.#steps;
  }

  async run({ call, name, args }: NonNullable<Answer['step']>): Promise<void> {
    const steps = this.#all;
    const stepped = await this.#result(steps, { call, name, args }).then(
      (result) => ({ call, result }),
      (thrown: unknown) => ({ call, error: threadError(thrown) }),
    );
    this.#holds.set(call, steps.hold());
    this.post({ stepped });
  }

  #result(steps: Steps, { call, name, args }: NonNullable<Answer['step']>): Promise<unknown> {
    if (name !== 'run') {
      return (steps[name] as (...given: unknown[]) => Promise<unknown>).apply(steps, args);
    }
    const [step, options] = args as [string, object | undefined];
    const fn = ({ attempt, idempotencyKey }: StepContext) => {
      const waiting = withResolvers();
      this.#calls.set(call, waiting);
      this.post({ called: { call, context: { attempt, idempotencyKey } } });
      return waiting.promise;
    };
    return steps.run(step, fn, options);
  }

  continued(call: number): void {
    this.#holds.get(call)?.();
    this.#holds.delete(call);
  }

  called({ call, result, error }: Called): void {
    const waiting = this.#calls.get(call);
    if (error) waiting?.reject(errorOf(error));
    else waiting?.resolve(result);
  }
}

interface PromiseWithResolvers<Value> {
  promise: Promise<Value>;
  resolve: (value: Value) => void;
  reject: (error: unknown) => void;
}

function withResolvers(): PromiseWithResolvers<unknown> {
  const parts = {} as PromiseWithResolvers<unknown>;
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

function threadError(thrown: unknown): ThreadError {
  const { errorType: kind, message, stack } = failureOf(thrown);
  const errorType = thrown instanceof StepFailed ? thrown.errorType : kind;
  return { name: (thrown as Error).name, message, stack, errorType };
}

/** The error of a thread: what it means is in its name, for classes are not shared. */
function errorOf({ name, message, stack, afterMs, errorType = '' }: ThreadError): Error {
  if (name === 'StepFailed') return new StepFailed(message, errorType);
  if (name === 'RetryLater' && afterMs !== undefined) return new RetryLater({ afterMs, message });
  const error = name === 'PermanentError' ? new PermanentError(message) : new Error(message);
  if (name !== error.name) Object.defineProperty(error, 'name', { value: name });
  if (stack !== undefined) error.stack = stack;
  return error;
}
