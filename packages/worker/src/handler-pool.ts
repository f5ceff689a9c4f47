import type { ChildProcess } from 'node:child_process';
import type { Worker as Thread } from 'node:worker_threads';
import { failureOf, PermanentError, RetryLater, StepFailed } from './errors.js';
import type { HandlerCall, Progress } from './handlers.js';
import type { StepContext, Steps } from './steps.js';

/** What runs in a thread or process. Plain text, because it starts without a compiler. */
const program = `
const { parentPort, workerData } = require('node:worker_threads');
const port = parentPort ?? process;
const post = (message) => parentPort ? parentPort.postMessage(message) : process.send(message);
if (!parentPort) {
  // Ctrl-C reaches the whole group of processes; the worker decides when this one ends.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined);
  process.on('disconnect', () => process.exit());
}
const runs = new Map();
const handlers = import(workerData ?? process.argv[1]).then((module) => module.default);
handlers.catch(() => undefined);
const errorOf = (thrown) => {
  const { name, message, stack, afterMs, errorType } = thrown instanceof Error ? thrown : new Error(String(thrown));
  return { name, message, stack, afterMs, errorType };
};
const newError = (error) => Object.assign(new Error(error.message), error);
const names = ['run', 'sleep', 'signal', 'submit', 'submitMany', 'agent', 'now', 'random', 'id'];
/** As JSON holds it, and the same in a thread, in a process and without them. */
const plain = (value) => typeof value === 'object' && value !== null ? JSON.parse(JSON.stringify(value)) : value;
/** Steps are recorded by the worker, which calls back for their functions. */
const stepOf = (id, run) => Object.fromEntries(names.map((name) => [name, (...args) => new Promise((resolve, reject) => {
  const call = ++run.calls;
  run.waiting.set(call, { resolve, reject, fn: name === 'run' ? args[1] : undefined });
  post({ id, step: { call, name, args: (name === 'run' ? [args[0], args[2]] : args).map(plain) } });
})]));
async function callStep(id, run, { call, context }) {
  let ended;
  const waiting = run.waiting.get(call);
  waiting.abort = new AbortController();
  try {
    const signal = AbortSignal.any([run.abort.signal, waiting.abort.signal]);
    ended = { result: JSON.stringify(await waiting.fn({ ...context, signal })) };
  } catch (thrown) {
    ended = { error: errorOf(thrown) };
  }
  post({ id, called: { call, ...ended } });
}
port.on('message', async ({ id, payload, task, dependencies, abort, drop, stepped, called, late }) => {
  const known = runs.get(id);
  if (drop) return runs.delete(id);
  if (abort !== undefined) return known?.abort.abort(newError(abort));
  if (late !== undefined) return known?.waiting.get(late.call)?.abort.abort(newError(late.reason));
  if (called !== undefined) return known && callStep(id, known, called);
  if (stepped !== undefined) {
    const { resolve, reject } = known?.waiting.get(stepped.call) ?? {};
    if (stepped.error) reject?.(newError(stepped.error));
    else resolve?.(stepped.result);
    // By then the handler has begun its next step, if it has one.
    return setImmediate(() => post({ id, continued: stepped.call }));
  }
  const run = { abort: new AbortController(), calls: 0, waiting: new Map() };
  runs.set(id, run);
  const progress = (report) => new Promise((resolve) => {
    const call = ++run.calls;
    run.waiting.set(call, { resolve });
    post({ id, progress: { call, report } });
  });
  try {
    const handler = (await handlers)?.[task.handlerRef];
    if (!handler) throw Object.assign(new Error('There is no handler for ' + task.handlerRef), { name: 'PermanentError' });
    const { signal } = run.abort;
    const result = await handler({ payload, task, signal, progress, dependencies, step: stepOf(id, run) });
    post({ id, result: JSON.stringify(result) });
  } catch (thrown) {
    post({ id, error: errorOf(thrown) });
  } finally {
    runs.delete(id);
  }
});`;

interface SentError {
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
  /** JSON. */
  result?: string;
  error?: SentError;
}

interface Answer {
  id: number;
  result?: string;
  error?: SentError;
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

/** A thread or process that ended while it ran a task. */
class HostCrashed extends Error {
  constructor(
    override readonly name: string,
    message: string,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

export type HostKind = 'thread' | 'process';
type Host = Thread | ChildProcess;

/** Runs handlers in threads or processes, one task in each. One that ends is replaced. */
export class HandlerPool {
  readonly #idle: Host[] = [];
  readonly #all = new Set<Host>();
  readonly #waiting: Job[] = [];
  #isClosed = false;
  #jobs = 0;

  constructor(
    private readonly file: URL,
    readonly count: number,
    private readonly kind: HostKind,
  ) {
    if (!Number.isInteger(count) || count < 1) {
      const name = kind === 'thread' ? 'threads' : 'processes';
      throw new RangeError(`${name} must be a whole number of at least 1`);
    }
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
    const ended = Array.from(this.#all, (host) => new Promise((end) => host.once('exit', end)));
    for (const host of this.#all) {
      if ('terminate' in host) void host.terminate();
      else host.kill('SIGKILL');
    }
    await Promise.all(ended);
  }

  #open(): Host {
    const host = this.kind === 'thread' ? newThread(this.file) : newProcess(this.file);
    this.#all.add(host);
    // Its end is no fault of a task.
    host.on('error', () => undefined);
    host.on('exit', () => {
      this.#all.delete(host);
      const at = this.#idle.indexOf(host);
      if (at >= 0) this.#idle.splice(at, 1);
      this.#next();
    });
    return host;
  }

  /** A host that ended is replaced when a task needs it: one that cannot start is not tried on. */
  #next(): void {
    if (this.#waiting.length === 0 || this.#isClosed) return;
    const host = this.#idle.shift() ?? (this.#all.size < this.count ? this.#open() : undefined);
    if (host) this.#start(host, this.#waiting.shift()!);
  }

  #start(host: Host, { call, resolve, reject }: Job): void {
    const id = ++this.#jobs;
    const { payload, task, signal, progress, dependencies } = call;
    const post = (message: object) => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
      if ('postMessage' in host) host.postMessage({ id, ...message });
      else if (host.connected) host.send({ id, ...message });
    };
    const release = () => {
      end();
      this.#idle.push(host);
      this.#next();
    };
    const steps = new HostedSteps(call, post, () => {
      post({ drop: true });
      release();
    });
    const onAbort = () => {
      post({ abort: abortReason(signal) });
    };
    const end = () => {
      signal.removeEventListener('abort', onAbort);
      host.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    const onMessage = ({ id: of, result, error, progress: reported, ...more }: Answer) => {
      if (of !== id) return;
      const { step, called, continued } = more;
      if (reported) {
        const { call: number, report } = reported;
        // A result that overtook the report would end the lease that the report extends.
        return void progress(report).then(() => post({ stepped: { call: number } }));
      }
      if (step) return void steps.run(step);
      if (called) return steps.called(called);
      if (continued !== undefined) return steps.continued(continued);
      if (error) reject(errorOf(error));
      else resolve(result === undefined ? undefined : (JSON.parse(result) as unknown));
      release();
    };
    let cause: unknown;
    const onError = (error: unknown) => (cause = error);
    const onExit = (code: number | null, killedBy?: string | null) => {
      end();
      const how = killedBy ? `was ended by ${killedBy}` : `ended with exit code ${code}`;
      const why = cause instanceof Error ? `: ${cause.message}` : '';
      const name = this.kind === 'thread' ? 'ThreadCrashed' : 'ProcessCrashed';
      reject(new HostCrashed(name, `The ${this.kind} ${how}${why}`, cause));
    };
    signal.addEventListener('abort', onAbort);
    host.on('message', onMessage).on('error', onError).on('exit', onExit);
    post({ payload, task, dependencies });
  }
}

/** An idle host does not keep the program alive. Modules are loaded on demand: there is none outside Node. */
function newThread(file: URL): Thread {
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  const thread = new Worker(program, { eval: true, workerData: file.href });
  thread.unref();
  return thread;
}

function newProcess(file: URL): ChildProcess {
  const { fork } = process.getBuiltinModule('node:child_process');
  // In place of a module, the switch for a program in the arguments.
  const child = fork('-e', [program, file.href], { serialization: 'advanced' });
  child.unref();
  child.channel?.unref();
  return child;
}

/** Runs the steps of a handler that is in a thread or process; their functions run there. */
class HostedSteps {
  readonly #calls = new Map<number, Pick<Job, 'resolve' | 'reject'>>();
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
      (thrown: unknown) => ({ call, error: sentError(thrown) }),
    );
    this.#holds.set(call, steps.hold());
    this.post({ stepped });
  }

  #result(steps: Steps, { call, name, args }: NonNullable<Answer['step']>): Promise<unknown> {
    if (name !== 'run') {
      return (steps[name] as (...given: unknown[]) => Promise<unknown>).apply(steps, args);
    }
    const [step, options] = args as [string, object | undefined];
    const fn = ({ attempt, idempotencyKey, signal }: StepContext) =>
      new Promise<unknown>((resolve, reject) => {
        this.#calls.set(call, { resolve, reject });
        this.post({ called: { call, context: { attempt, idempotencyKey } } });
        // The end of the attempt reaches the thread by itself.
        if (signal === this.call.signal) return;
        signal.addEventListener('abort', () => {
          this.post({ late: { call, reason: abortReason(signal) } });
        });
      });
    return steps.run(step, fn, options);
  }

  continued(call: number): void {
    this.#holds.get(call)?.();
    this.#holds.delete(call);
  }

  called({ call, result, error }: Called): void {
    const waiting = this.#calls.get(call);
    if (error) waiting?.reject(errorOf(error));
    else waiting?.resolve(result === undefined ? undefined : JSON.parse(result));
  }
}

function abortReason({ reason }: AbortSignal): SentError {
  const { name, message } = reason as Error;
  return { name, message };
}

function sentError(thrown: unknown): SentError {
  const { errorType: kind, message, stack } = failureOf(thrown);
  const errorType = thrown instanceof StepFailed ? thrown.errorType : kind;
  return { name: (thrown as Error).name, message, stack, errorType };
}

/** An error of a handler: what it means is in its name, for classes are not shared. */
function errorOf({ name, message, stack, afterMs, errorType = '' }: SentError): Error {
  if (name === 'StepFailed') return new StepFailed(message, errorType);
  if (name === 'RetryLater' && afterMs !== undefined) return new RetryLater({ afterMs, message });
  const error = name === 'PermanentError' ? new PermanentError(message) : new Error(message);
  if (name !== error.name) Object.defineProperty(error, 'name', { value: name });
  if (stack !== undefined) error.stack = stack;
  return error;
}
