import type { QueueSchema } from '@millrace/contract/queue';
import { durationMs, type Duration } from './duration.js';
import { failureOf, LeaseLost, PermanentError, StepFailed, Suspended } from './errors.js';
import {
  backoffMs,
  callInTime,
  childIds,
  isEnded,
  later,
  maxChildren,
  outcomeOf,
  partsOf,
  stepName,
  type StepContext,
  suspensionOf,
  Turns,
  UntimedStep,
  type Wait,
} from './step-parts.js';
import { submitRequest, type SubmitOptions } from './submit.js';
import { definitionOf, type Backoff, type TaskInfo, type Tasks, type TaskTypes } from './tasks.js';
import { codeOf, type QueueTransport, type SubmitRequest } from './transport.js';

export type { StepContext } from './step-parts.js';

export interface StepOptions {
  /** How often the step is tried; as often as the task may be if absent. */
  attempts?: number;
  /** Between two tries the task is suspended; exponential from 1 s if absent. */
  backoff?: Backoff;
  timeoutMs?: number;
}

/** What the payload of an agent's task has. */
export interface AgentTask {
  queue: string;
  backend?: string;
  prompt: string;
  repo?: string;
  branch?: string;
  [more: string]: unknown;
}

/** The result of an agent's task. */
export interface AgentResult {
  session_id: string;
  backend: string;
  model: string | null;
  branch: string | null;
  output: string;
  exact_usd: number | null;
}

/** Runs parts of a handler once. What is recorded is not run again, however often the handler is. */
export interface Step<Types extends TaskTypes> {
  /** Runs the function and records what it returns. */
  run<Result>(
    name: string,
    fn: (context: StepContext) => Result | Promise<Result>,
    options?: StepOptions,
  ): Promise<Result>;
  /** Suspends the task for this long; no worker is held. */
  sleep(name: string, duration: Duration): Promise<void>;
  /** Waits for a signal, and gives its payload; undefined after the timeout. */
  signal<Payload = unknown>(
    name: string,
    options?: { timeout?: Duration },
  ): Promise<Payload | undefined>;
  /** Submits a child task and waits for its result. */
  submit<Ref extends keyof Types & string>(
    name: string,
    queue: string,
    ref: Ref,
    payload: Types[Ref]['input'],
    options?: SubmitOptions,
  ): Promise<Types[Ref]['result']>;
  // oxlint-disable-next-line typescript/no-explicit-any -- the task is defined elsewhere
  submit<Result = any>(
    name: string,
    queue: string,
    ref: string,
    payload: unknown,
    options?: SubmitOptions,
  ): Promise<Result>;
  /** Submits up to 1,000 child tasks and waits for all; their results in order. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the task is defined elsewhere
  submitMany<Result = any>(
    name: string,
    queue: string,
    ref: string,
    payloads: readonly unknown[],
    options?: SubmitOptions,
  ): Promise<Result[]>;
  /** Runs an agent as a child task. */
  agent(name: string, task: AgentTask): Promise<AgentResult>;
  /** The time of the first run, in milliseconds since the epoch. */
  now(): Promise<number>;
  /** From 0 up to 1. */
  random(): Promise<number>;
  /** A UUID. */
  id(): Promise<string>;
}

type Run = Partial<Pick<QueueSchema<'TaskRun'>, 'steps' | 'signals' | 'children' | 'dependencies'>>;

export interface StepsOptions {
  transport: QueueTransport;
  tasks: Tasks<TaskTypes>;
  task: TaskInfo;
  leaseToken: string;
  /** As claimed, or how to get it. */
  run: Run | (() => Promise<Run>);
  signal: () => AbortSignal;
  /** Whether it is aborted, without creating it. */
  isAborted: () => boolean;
  /** The lease is lost. */
  onLost?: (error: unknown) => void;
}

interface NewStep {
  result?: unknown;
  error?: QueueSchema<'StepError'>;
  startedAt?: number;
  consumes?: string[];
}

type Recorded = QueueSchema<'Step'> | undefined;

const defaultBackoff: Backoff = { kind: 'exponential', ms: 1_000, maxMs: 3_600_000 };

/** The steps of one run of a handler. */
export class Steps implements Step<TaskTypes> {
  /** Rejects with a Suspended when every open branch waits. */
  readonly suspended: Promise<never>;
  readonly #recorded = new Map<string, QueueSchema<'Step'>>();
  readonly #order = new Map<string, number>();
  readonly #turns = new Turns();
  #isSuspended = false;
  #saved: Promise<void> = Promise.resolve();
  readonly #signals: QueueSchema<'Signal'>[] = [];
  readonly #children = new Map<string, QueueSchema<'EndedTask'>>();
  #loading: Promise<void> | undefined;
  readonly #used = new Set<string>();
  readonly #waits: Wait[] = [];
  #suspend: (suspended: Suspended) => void = () => undefined;
  /**
   * Recorded with the next step or the next wait, which saves a commit. Those that another run may
   * decide otherwise are recorded before a function of a step runs.
   */
  #unsaved: { step: QueueSchema<'StepInput'>; isFixed: boolean }[] = [];
  #active = 0;
  #unnamed = 0;

  constructor(private readonly options: StepsOptions) {
    if (typeof options.run === 'object') this.#load(options.run);
    this.suspended = new Promise((_, reject) => (this.#suspend = reject));
    this.suspended.catch(() => undefined);
  }

  async run<Result>(
    name: string,
    fn: (context: StepContext) => Result | Promise<Result>,
    { attempts, backoff = defaultBackoff, timeoutMs }: StepOptions = {},
  ): Promise<Result> {
    const known = await this.#known(name);
    if (known) return outcomeOf(known) as Result;
    const { task, transport } = this.options;
    const maxAttempts = Math.max(1, attempts ?? task.maxAttempts);
    let attempt = 1;
    let last: { until: number } | undefined;
    for (let step; (step = this.#recorded.get(`${name}~${attempt}`)); attempt++) {
      last = step.result as { until: number };
    }
    if (last && last.until > transport.now()) return this.#wait({ until: last.until });
    const release = this.hold();
    let retry: { until: number } | undefined;
    try {
      if (this.#unsaved.some(({ isFixed }) => !isFixed)) await this.save();
      const startedAt = transport.now();
      const idempotencyKey = `${task.id}:${name}`;
      let result: Result | undefined;
      try {
        result = await this.#call(fn, { attempt, idempotencyKey }, timeoutMs);
      } catch (error) {
        if (error instanceof LeaseLost || this.options.signal().aborted) throw error;
        retry = await this.#failed(name, error, { attempt, maxAttempts, backoff, startedAt });
      }
      if (!retry) {
        this.#note(name, { result, startedAt });
        await this.#inTurn(name, this.save());
      }
    } finally {
      release();
    }
    return retry ? this.#wait(retry) : (this.#resultOf(name) as Result);
  }

  async sleep(name: string, duration: Duration): Promise<void> {
    const known = await this.#claim(name);
    const until =
      (known?.result as { until: number } | undefined)?.until ??
      this.options.transport.now() + durationMs(duration);
    if (!known) this.#note(name, { result: { until } });
    if (until > this.options.transport.now()) await this.#wait({ until });
    const end = `${name}~end`;
    await this.#inTurn(end);
    // Which of several branches goes on first is decided once. Alone it needs no record.
    if (!this.#recorded.has(end) && this.#hasBranches) this.#note(end, { result: true });
  }

  async signal<Payload>(
    name: string,
    { timeout }: { timeout?: Duration } = {},
  ): Promise<Payload | undefined> {
    const known = await this.#known(name);
    if (known) return (known.result as { payload?: Payload }).payload ?? undefined;
    const at = this.#signals.findIndex((signal) => signal.name === name);
    if (at !== -1) {
      const [{ id, payload }] = this.#signals.splice(at, 1) as [QueueSchema<'Signal'>];
      await this.#inTurn(name);
      this.#note(name, { result: { payload }, consumes: [id] }, !this.#hasBranches);
      return (payload as Payload | null) ?? undefined;
    }
    const until = timeout === undefined ? undefined : this.#deadline(name, timeout);
    if (until === undefined || until > this.options.transport.now()) {
      return this.#wait({ signal: name, ...(until !== undefined && { until }) });
    }
    await this.#inTurn(name);
    this.#note(name, { result: {} });
    return undefined;
  }

  async submit(
    name: string,
    queue: string,
    ref: string,
    payload: unknown,
    options: SubmitOptions = {},
  ): Promise<never> {
    const [result] = await this.#submitAll(name, queue, ref, [payload], options, true);
    return result as never;
  }

  async submitMany(
    name: string,
    queue: string,
    ref: string,
    payloads: readonly unknown[],
    options: SubmitOptions = {},
  ): Promise<never[]> {
    if (payloads.length > maxChildren) {
      throw new PermanentError(`submitMany takes at most ${maxChildren} tasks.`);
    }
    return (await this.#submitAll(name, queue, ref, payloads, options, false)) as never[];
  }

  agent(name: string, { queue, ...payload }: AgentTask): Promise<AgentResult> {
    return this.submit(name, queue, 'agent', payload);
  }

  now(): Promise<number> {
    return this.#value('now', () => this.options.transport.now());
  }

  random(): Promise<number> {
    return this.#value('random', () => Math.random());
  }

  id(): Promise<string> {
    return this.#value('id', () => crypto.randomUUID());
  }

  #load({ steps = [], signals = [], children = [] }: Run): void {
    for (const step of steps) {
      this.#recorded.set(step.name, step);
      this.#order.set(step.name, this.#order.size);
    }
    for (const child of children) this.#children.set(child.id, child);
    this.#signals.push(...signals);
  }

  /** The recorded step, if any. A name is used once in a run. */
  #claim(name: string): Recorded | Promise<Recorded> {
    // A branch that goes on by something else than a step comes back with the next run.
    if (this.#isSuspended) return new Promise(() => {});
    if (this.options.isAborted()) throw this.options.signal().reason;
    if (!stepName.test(name)) {
      throw new PermanentError(
        `A step's name has 1 to 200 characters and no control characters; ${JSON.stringify(name)} does not.`,
      );
    }
    if (this.#used.has(name)) {
      throw new PermanentError(
        `The step ${name} is used twice in one run. Give each its own name, such as ${name}-2.`,
      );
    }
    this.#used.add(name);
    const { run } = this.options;
    if (typeof run !== 'function') return this.#recorded.get(name);
    return this.#busy(async () => {
      await (this.#loading ??= run().then((loaded) => this.#load(loaded)));
      return this.#recorded.get(name);
    });
  }

  /** What an earlier run recorded, in its turn. */
  async #known(name: string): Promise<Recorded> {
    const known = await this.#claim(name);
    if (known) await this.#inTurn(name);
    return known;
  }

  async #value<Value>(kind: string, make: () => Value): Promise<Value> {
    const name = `${kind}~${++this.#unnamed}`;
    const known = await this.#known(name);
    if (known) return known.result as Value;
    return this.#note(name, { result: make() }) as Value;
  }

  #deadline(name: string, timeout: Duration): number {
    const known = this.#recorded.get(`${name}~until`);
    if (known) return known.result as number;
    const until = this.options.transport.now() + durationMs(timeout);
    this.#note(`${name}~until`, { result: until });
    return until;
  }

  #call<Result>(
    fn: (context: StepContext) => Result | Promise<Result>,
    about: Omit<StepContext, 'signal'>,
    timeoutMs: number | undefined,
  ): Result | Promise<Result> {
    const { options } = this;
    if (timeoutMs !== undefined) return callInTime(fn, about, timeoutMs, options.signal());
    return fn(new UntimedStep(about.attempt, about.idempotencyKey, options.signal));
  }

  /** When the next try is; throws if there is none. */
  async #failed(
    name: string,
    thrown: unknown,
    about: { attempt: number; maxAttempts: number; backoff: Backoff; startedAt: number },
  ): Promise<{ until: number }> {
    const { attempt, maxAttempts, backoff, startedAt } = about;
    const { errorType, message, isPermanent, retryAfterMs } = failureOf(thrown);
    const error = { type: errorType, message };
    if (isPermanent || attempt >= maxAttempts) {
      this.#note(name, { error, startedAt });
      await this.#inTurn(name, this.save());
      // What a later run throws, which knows the record alone.
      throw new StepFailed(message, errorType, { cause: thrown });
    }
    const delayMs = Math.max(retryAfterMs ?? 0, backoffMs(backoff, attempt));
    const until = this.options.transport.now() + delayMs;
    this.#note(`${name}~${attempt}`, { result: { until }, error, startedAt });
    return { until };
  }

  async #submitAll(
    name: string,
    queue: string,
    ref: string,
    payloads: readonly unknown[],
    options: SubmitOptions,
    isSingle: boolean,
  ): Promise<unknown[]> {
    const known = await this.#known(name);
    if (known) {
      const result = outcomeOf(known);
      return isSingle ? [result] : this.#resultsOf(name, result as unknown[] | { parts: number });
    }
    const { task, leaseToken, transport } = this.options;
    // A child may be a task of another program, which is not defined here.
    const isDefined = definitionOf(this.options.tasks, ref) !== undefined;
    const tasks = isDefined ? this.options.tasks : { definitions: {} };
    const ended = new Set<string>();
    const taken = new Map<string, string>();
    const ids = await this.#busy(async () => {
      const ofOthers = this.#recorded.get(`${name}~ids`)?.result as string[] | undefined;
      const all = ofOthers ?? (await childIds(task, name, payloads.length));
      const isNew = (id: string) => !ofOthers && !this.#children.has(id);
      const fresh = all.flatMap((id, i) => (isNew(id) ? [{ id, i }] : []));
      const requests: SubmitRequest[] = [];
      for (const { id, i } of fresh) {
        const settings = { ...options, id, queue };
        const { request } = await submitRequest(tasks, {
          ref,
          payload: payloads[i],
          options: settings,
        });
        requests.push({ ...request, parent_id: task.id, parent_lease_token: leaseToken });
      }
      if (isSingle && requests.length === 1) {
        const { id, status } = await this.#held(() => transport.submit(queue, requests[0]!));
        if (isEnded(status)) ended.add(id);
        taken.set(requests[0]!.id!, id);
      } else if (requests.length > 0) {
        const results = await this.#held(() => transport.submitBatch(queue, requests));
        const refused = results.find((result) => 'error' in result);
        if (refused) throw new PermanentError(String(refused.error?.detail));
        for (const [i, result] of results.entries()) {
          if (!('envelope' in result)) continue;
          if (isEnded(result.envelope.status)) ended.add(result.envelope.id);
          taken.set(requests[i]!.id!, result.envelope.id);
        }
      }
      const used = all.map((id) => taken.get(id) ?? id);
      // A unique key that was taken stands for the task that has it.
      if (used.some((id, i) => id !== all[i])) this.#note(`${name}~ids`, { result: used });
      return used;
    });
    const children = ids.map((id) => this.#children.get(id));
    if (!children.every((child) => child && isEnded(child.status))) {
      const isOpen = (id: string) =>
        !ended.has(id) && !isEnded(this.#children.get(id)?.status ?? 'PENDING');
      return this.#wait({ tasks: ids, open: ids.filter(isOpen) });
    }
    await this.#inTurn(name);
    const isFixed = !this.#hasBranches;
    const failed = children.find((child) => child!.status === 'DEAD');
    if (failed) {
      const message = `The child task ${failed.id} of the step ${name} failed`;
      this.#note(name, { error: { type: 'CHILD_FAILED', message } });
      await this.#busy(() => this.save());
      throw new StepFailed(message, 'CHILD_FAILED');
    }
    const results = children.map((child) => child!.result);
    const parts = isSingle ? [] : partsOf(results);
    if (parts.length > 1) {
      parts.forEach((part, i) => this.#note(`${name}~part-${i + 1}`, { result: part }, isFixed));
      this.#note(name, { result: { parts: parts.length } }, isFixed);
    } else {
      this.#note(name, { result: isSingle ? results[0] : results }, isFixed);
    }
    return results;
  }

  /** The results of `submitMany`, which are recorded in parts if they are large. */
  #resultsOf(name: string, result: unknown[] | { parts: number }): unknown[] {
    if (Array.isArray(result)) return result;
    const parts = Array.from({ length: result.parts }, (_, i) => `${name}~part-${i + 1}`);
    return parts.flatMap((part) => this.#recorded.get(part)!.result as unknown[]);
  }

  /** The result of a recorded step, as a later run gets it. */
  #resultOf(name: string): unknown {
    return this.#recorded.get(name)!.result ?? undefined;
  }

  /** Records a step with the next one, or with the next wait. */
  #note(name: string, step: NewStep, isFixed = false): unknown {
    const { result: given, error = null, startedAt, consumes } = step;
    const noted: QueueSchema<'StepInput'> = { name };
    if (given !== undefined) noted.result = given;
    if (error) noted.error = error;
    if (startedAt !== undefined) noted.started_at = new Date(startedAt).toISOString();
    if (consumes) noted.consumes = consumes;
    const result: unknown = (given ?? null) === null ? null : JSON.parse(JSON.stringify(given));
    this.#unsaved.push({ step: noted, isFixed });
    this.#recorded.set(name, { name, result, error, recorded_at: '' });
    this.#order.set(name, this.#order.size);
    return result ?? undefined;
  }

  /** Records what is not recorded yet; one call after another, so that the order is kept. */
  save(): Promise<void> {
    return (this.#saved = this.#saved.catch(() => undefined).then(() => this.#save()));
  }

  async #save(): Promise<void> {
    const { transport, task, leaseToken } = this.options;
    const taken = this.#unsaved;
    const steps = this.takeUnsaved();
    if (steps.length === 0) return;
    try {
      const stored = await transport.recordSteps(task.id, { lease_token: leaseToken, steps });
      for (const step of stored.steps) this.#recorded.set(step.name, step);
    } catch (error) {
      if (isRefused(error)) throw new PermanentError((error as Error).message, { cause: error });
      this.#unsaved = [...taken, ...this.#unsaved];
      throw this.#lostOr(error);
    }
  }

  /** What is to be recorded when the task is settled. */
  takeUnsaved(): QueueSchema<'StepInput'>[] {
    const steps = this.#unsaved.map(({ step }) => step);
    this.#unsaved = [];
    return steps;
  }

  /** A call under the lease. */
  async #held<Result>(call: () => Promise<Result>): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      throw this.#lostOr(error);
    }
  }

  /** An error of a call under the lease, as the handler gets it. */
  #lostOr(error: unknown): unknown {
    if (codeOf(error) !== 'LEASE_LOST' && codeOf(error) !== 'TASK_ENDED') return error;
    this.options.onLost?.(error);
    return new LeaseLost(`The lease of task ${this.options.task.id} is lost`, { cause: error });
  }

  /** The task is not suspended until the returned function is called. */
  hold(): () => void {
    this.#active++;
    return () => {
      this.#active--;
      this.#checkLater();
    };
  }

  /** While it runs, the task is not suspended. */
  async #busy<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = this.hold();
    try {
      return await work();
    } finally {
      release();
    }
  }

  /**
   * Resolves in a turn of the event loop of its own, in the order of the records, and without one
   * last: so `Promise.race` has the same winner in every run. `saved`: not before this.
   */
  async #inTurn(name: string, saved?: Promise<void>): Promise<void> {
    // The only step that runs has nothing to be before.
    if (saved && this.#active === 1 && this.#turns.waiting === 0) return saved;
    await this.#busy(async () => {
      await this.#turns.next(this.#order.get(name), saved);
      await saved;
    });
  }

  /** Others than the one that asks may go on. */
  get #hasBranches(): boolean {
    return this.#waits.length + this.#turns.waiting + this.#active > 0;
  }

  /** Never resolves: the handler runs again when the wait is over. */
  #wait(wait: Wait): Promise<never> {
    this.#waits.push(wait);
    this.#checkLater();
    return new Promise(() => {});
  }

  /** Not before the handler has gone on with what it got, which may start the next step. */
  #checkLater(): void {
    if (this.#waits.length === 0) return;
    later(() => {
      if (this.#active > 0 || this.#isSuspended) return;
      this.#isSuspended = true;
      this.#suspend(new Suspended(suspensionOf(this.#waits)));
    });
  }
}

/** Steps that can never be recorded. */
function isRefused(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'STEP_TOO_LARGE' || code === 'TOO_MANY_STEPS' || code === 'INVALID_TASK';
}
