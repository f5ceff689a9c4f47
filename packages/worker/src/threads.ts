import type * as workerThreads from 'node:worker_threads';
import { PermanentError, RetryLater } from './errors.js';
import type { HandlerCall, Progress } from './handlers.js';

/** What runs in a thread. Plain text, because a thread starts without a compiler. */
const threadProgram = `
const { parentPort, workerData } = require('node:worker_threads');
const aborts = new Map();
const handlers = import(workerData).then((module) => module.default);
handlers.catch(() => undefined);
parentPort.on('message', async ({ id, payload, task, abort }) => {
  if (abort !== undefined) return aborts.get(id)?.abort(Object.assign(new Error(abort.message), abort));
  const controller = new AbortController();
  aborts.set(id, controller);
  const progress = async (report) => parentPort.postMessage({ id, progress: report });
  try {
    const handler = (await handlers)?.[task.handlerRef];
    if (!handler) throw Object.assign(new Error('There is no handler for ' + task.handlerRef), { name: 'PermanentError' });
    const result = await handler({ payload, task, signal: controller.signal, progress });
    parentPort.postMessage({ id, result: JSON.stringify(result) });
  } catch (thrown) {
    const { name, message, stack, afterMs } = thrown instanceof Error ? thrown : new Error(String(thrown));
    parentPort.postMessage({ id, error: { name, message, stack, afterMs } });
  } finally {
    aborts.delete(id);
  }
});`;

interface ThreadError {
  name: string;
  message: string;
  stack?: string;
  afterMs?: number;
}

interface Answer {
  id: number;
  result?: string;
  error?: ThreadError;
  progress?: Progress;
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
    const { payload, task, signal, progress } = call;
    const onAbort = () => {
      const { name, message } = signal.reason as Error;
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
      thread.postMessage({ id, abort: { name, message } });
    };
    const end = () => {
      signal.removeEventListener('abort', onAbort);
      thread.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    const onMessage = ({ id: of, result, error, progress: report }: Answer) => {
      if (of !== id) return;
      if (report) return void progress(report);
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
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    thread.postMessage({ id, payload, task });
  }
}

/** The error of a thread: what it means is in its name, for classes are not shared. */
function errorOf({ name, message, stack, afterMs }: ThreadError): Error {
  if (name === 'RetryLater' && afterMs !== undefined) return new RetryLater({ afterMs, message });
  const error = name === 'PermanentError' ? new PermanentError(message) : new Error(message);
  if (name !== error.name) Object.defineProperty(error, 'name', { value: name });
  if (stack !== undefined) error.stack = stack;
  return error;
}
