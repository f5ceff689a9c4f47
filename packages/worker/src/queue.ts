import { ApiError } from '@millrace/client';
import type { QueueComponents, QueueSchema } from '@millrace/contract/queue';
import { TaskFailed, ValidationError, WaitTimeout } from './errors.js';
import { QueueEvents, type EventOptions, type OpenEvents } from './events.js';
import type { BatchHandlers, TaskHandlers } from './handlers.js';
import { Flow } from './flow.js';
import { Listing } from './listing.js';
import { fromWire, inCallNames, timeText, toWire, type Camel } from './names.js';
import {
  decodePayload,
  encodeBase64,
  encodeJson,
  payloadBytes,
  payloadContentType,
} from './payload.js';
import { pause } from './pause.js';
import { DeadLetters, Schedules } from './queue-parts.js';
import {
  onlyQueue,
  readArguments,
  submitRequest,
  type ManyItem,
  type Submission,
  type SubmitOptions,
  type WaitOptions,
} from './submit.js';
import { checkPayload, requireTasks, type Tasks, type TaskTypes } from './tasks.js';
import type { CallOperation, QueueTransport, SubmitRequest } from './transport.js';
import { startWorker } from './task-worker.js';
import type { Worker, WorkerOptions } from './worker.js';

type Schema<Name extends keyof QueueComponents['schemas']> = Camel<QueueSchema<Name>>;

export interface SubmittedTask {
  readonly id: string;
  readonly queue: string;
  readonly status: QueueSchema<'TaskStatus'>;
}

/** The result for one item of `submitMany`. */
export type ManyResult =
  | (SubmittedTask & { readonly index: number; readonly error?: undefined })
  | { readonly index: number; readonly error: ApiError | ValidationError };

/** A task with its payload and result in the types of its definition. */
export type QueueTask<Types extends TaskTypes> = {
  [Ref in keyof Types & string]: Omit<Schema<'Task'>, 'handlerRef' | 'payload' | 'result'> & {
    handlerRef: Ref;
    payload: Types[Ref]['input'];
    /** Null: none, or not yet. */
    result: Types[Ref]['result'] | null;
  };
}[keyof Types & string];

export interface FinishedTask<Types extends TaskTypes, Ref extends keyof Types & string> {
  readonly task: Extract<QueueTask<Types>, { handlerRef: Ref }>;
  /** What the handler returned; undefined if nothing was kept. */
  readonly result: Types[Ref]['result'];
}

export interface TaskFilter {
  queue?: string;
  status?: QueueSchema<'TaskStatus'> | readonly QueueSchema<'TaskStatus'>[];
  handlerRef?: string;
  groupKey?: string;
  /** Created at this time or later. */
  from?: Date | string;
  /** Created before this time. */
  to?: Date | string;
}

export interface ListOptions extends TaskFilter {
  /** Only tasks of this flow. */
  flowId?: string;
  order?: 'newest' | 'oldest' | 'next';
  /** At most this many; all if absent. */
  limit?: number;
}

export interface CancelOptions {
  reason?: string;
  /** False: leaves the children of the task as they are. */
  cascade?: boolean;
}

/** Tasks to cancel that have not started. */
export interface CancelFilter extends Omit<TaskFilter, 'status'>, Omit<CancelOptions, 'cascade'> {
  /** Only count. */
  dryRun?: boolean;
}

export interface TaskChange<Payload = unknown> {
  priority?: number;
  payload?: Payload;
}

type DeepPartial<Value> = Value extends readonly unknown[]
  ? Value
  : Value extends object
    ? { [Name in keyof Value]?: DeepPartial<Value[Name]> | undefined }
    : Value;

export type QueueConfig = Schema<'QueueConfig'>;
export type QueueConfigInput = DeepPartial<Schema<'QueueConfigInput'>>;

const defaultTimeoutMs = 60_000;
/** The longest wait of one request. */
const maxWaitMs = 30_000;
const firstPollMs = 20;
const maxPollMs = 500;
const maxMany = 10_000;
const maxBatch = 1_000;
const maxPage = 500;
const parallelCalls = 32;

/** A queue, in process or on a server: what `openQueue` and `connectQueue` give. */
export class Queue<Types extends TaskTypes> {
  /** Tasks by cron or interval. */
  readonly schedules: Schedules<Types>;
  /** Tasks that failed for good. */
  readonly dead: DeadLetters<Types>;
  protected readonly workers = new Set<Worker>();
  readonly #closed = new AbortController();
  #closing: Promise<void> | undefined;

  constructor(
    protected readonly transport: QueueTransport,
    protected readonly tasks: Tasks<Types>,
  ) {
    requireTasks(tasks);
    const call = this.call;
    this.schedules = new Schedules({ tasks, call, queueNames: () => this.#names() });
    this.dead = new DeadLetters({ tasks, call });
  }

  /** Any operation of the API by its id, in the names of the wire. */
  readonly call: CallOperation = async (operation, ...[request]) => {
    requireOpen(this.#closed.signal.aborted);
    try {
      return await this.transport.call(operation, ...([request] as never));
    } catch (error) {
      throw inCallNames(error, request);
    }
  };

  /** The queue may be left out if the definition of the task names it. */
  submit<Ref extends keyof Types & string>(
    ref: Ref,
    payload: Types[Ref]['input'],
    options?: SubmitOptions,
  ): Promise<SubmittedTask>;
  submit<Ref extends keyof Types & string>(
    queue: string,
    ref: Ref,
    payload: Types[Ref]['input'],
    options?: SubmitOptions,
  ): Promise<SubmittedTask>;
  async submit(...given: readonly unknown[]): Promise<SubmittedTask> {
    return this.#submit(readArguments(this.tasks, given));
  }

  /**
   * Submits up to 10,000 tasks: `submitMany([{ ref, payload, ...options }])`. A task that is refused
   * does not hold up the others: its result has an `error`.
   */
  async submitMany(
    items: readonly ManyItem<Types>[],
    defaults: SubmitOptions = {},
  ): Promise<ManyResult[]> {
    requireOpen(this.#closed.signal.aborted);
    if (items.length > maxMany) {
      throw new ValidationError(`submitMany takes at most ${maxMany} tasks, not ${items.length}.`);
    }
    const results: ManyResult[] = [];
    const byQueue = new Map<string, { index: number; request: SubmitRequest }[]>();
    for (const [index, { ref, payload, ...options }] of items.entries()) {
      try {
        const submission = { ref, payload, options: { ...defaults, ...options } };
        const { queue, request } = await submitRequest(this.tasks, submission);
        const found = byQueue.get(queue);
        if (found) found.push({ index, request });
        else byQueue.set(queue, [{ index, request }]);
      } catch (error) {
        if (!(error instanceof ValidationError)) throw error;
        results[index] = { index, error };
      }
    }
    for (const [queue, entries] of byQueue) {
      for (let from = 0; from < entries.length; from += maxBatch) {
        await this.#submitBatch(queue, entries.slice(from, from + maxBatch), results);
      }
    }
    return results;
  }

  /** Throws TaskFailed if the task ends in the dead-letter queue, WaitTimeout if it takes longer. */
  submitAndWait<Ref extends keyof Types & string>(
    ref: Ref,
    payload: Types[Ref]['input'],
    options?: WaitOptions,
  ): Promise<FinishedTask<Types, Ref>>;
  submitAndWait<Ref extends keyof Types & string>(
    queue: string,
    ref: Ref,
    payload: Types[Ref]['input'],
    options?: WaitOptions,
  ): Promise<FinishedTask<Types, Ref>>;
  async submitAndWait<Ref extends keyof Types & string>(
    ...given: readonly unknown[]
  ): Promise<FinishedTask<Types, Ref>> {
    const { options, ...rest } = readArguments<WaitOptions>(this.tasks, given);
    const { timeoutMs = defaultTimeoutMs, signal, ...submitOptions } = options;
    const endsAt = Date.now() + timeoutMs;
    const { id } = await this.#submit({ ...rest, options: submitOptions });
    return this.#waitForEnd<Ref>(id, { endsAt, timeoutMs, signal });
  }

  /** Waits for the end of a task, with the errors of `submitAndWait`. */
  waitFor(
    id: string,
    { timeoutMs = defaultTimeoutMs, signal }: Pick<WaitOptions, 'timeoutMs' | 'signal'> = {},
  ): Promise<FinishedTask<Types, keyof Types & string>> {
    return this.#waitForEnd(id, { endsAt: Date.now() + timeoutMs, timeoutMs, signal });
  }

  /** Throws an error with the code TASK_NOT_FOUND if there is no such task. */
  async get(id: string): Promise<QueueTask<Types>> {
    return this.#get(id);
  }

  /** Tasks without payload and attempts: `for await (const task of queue.list({ queue }))`. */
  list({ queue, limit = Infinity, ...filter }: ListOptions = {}): Listing<Schema<'Envelope'>> {
    return new Listing(this.#list(queue, limit, filter));
  }

  async stats(queue?: string): Promise<Schema<'Stats'>> {
    const path = { queue: onlyQueue(this.tasks, queue) };
    return fromWire(await this.call('getStats', { path }));
  }

  async queues(): Promise<Schema<'QueueListItem'>[]> {
    return fromWire(await this.call('listQueues'));
  }

  /** One task, whatever it does, or tasks that have not ended, by id or by filter. */
  cancel(id: string, options?: CancelOptions): Promise<Schema<'Envelope'>>;
  cancel(ids: readonly string[], options?: CancelOptions): Promise<{ count: number }>;
  cancel(filter: CancelFilter): Promise<{ count: number }>;
  async cancel(
    which: string | readonly string[] | CancelFilter,
    options: CancelOptions = {},
  ): Promise<Schema<'Envelope'> | { count: number }> {
    if (typeof which === 'string') return this.#cancelTask(which, options);
    return isIds(which) ? this.#cancelIds(which, options) : this.#cancelFilter(which);
  }

  /** Sends a signal to a task, by its id or the unique key that it holds. */
  async signal(
    to: string | { queue: string; uniqueKey: string },
    name: string,
    payload?: unknown,
    { id }: { id?: string } = {},
  ): Promise<Schema<'Signal'>> {
    const body = { name, ...(payload !== undefined && { payload }), ...(id && { id }) };
    if (typeof to === 'string') {
      return fromWire(await this.call('sendSignal', { path: { id: to }, body }));
    }
    const { queue, uniqueKey } = to;
    const keyed = { ...body, unique_key: uniqueKey };
    return fromWire(await this.call('sendQueueSignal', { path: { queue }, body: keyed }));
  }

  /** The task with its children, and theirs. */
  async tree(id: string): Promise<Schema<'TaskTree'>> {
    return fromWire(await this.call('getTaskTree', { path: { id } }));
  }

  /** Tasks that depend on each other: `flow().task('a', ...).task('b', ..., { after: ['a'] })`. */
  flow(flowId?: string): Flow<Types> {
    return new Flow(this.tasks, this.call, flowId, (ids, options) =>
      this.#waitForAll(ids, options),
    );
  }

  /** Makes a task that waits for its time due. */
  async runNow(id: string): Promise<Schema<'Envelope'>> {
    return fromWire(await this.call('runTaskNow', { path: { id } }));
  }

  /** Sets when a task that has not started is due: a time, or a delay in milliseconds. */
  async reschedule(id: string, at: Date | number): Promise<Schema<'Envelope'>> {
    const time = typeof at === 'number' ? new Date(this.transport.now() + at) : at;
    const body = { run_at: timeText(time) };
    return fromWire(await this.call('updateTask', { path: { id }, body }));
  }

  /** Changes a task that has not started. The payload must fit the schema of the task. */
  async update<Ref extends keyof Types & string>(
    id: string,
    { payload, ...change }: TaskChange<Types[Ref]['input']>,
  ): Promise<Schema<'Envelope'>> {
    const body: Record<string, unknown> = toWire(change);
    if (payload !== undefined) {
      const { handlerRef } = await this.get(id);
      await checkPayload(this.tasks, handlerRef, payload);
      body['payload'] = encodeBase64(encodeJson(payload));
      body['payload_content_type'] = payloadContentType;
    }
    return fromWire(await this.call('updateTask', { path: { id }, body }));
  }

  /** Starts no more tasks of the queue. */
  async pause(queue?: string): Promise<void> {
    await this.call('pauseQueue', { path: { queue: onlyQueue(this.tasks, queue) } });
  }

  async resume(queue?: string): Promise<void> {
    await this.call('resumeQueue', { path: { queue: onlyQueue(this.tasks, queue) } });
  }

  /** Creates the queue, or replaces its config. Without a callback it is a pull queue. */
  async configure(name: string, config: QueueConfigInput = {}): Promise<QueueConfig> {
    const body = { callback: { protocol: 'pull' }, ...toWire(config) } as never;
    return fromWire(await this.call('putQueueConfig', { path: { queue: name }, body }));
  }

  /** The config of a queue with every default filled in. */
  async config(name: string): Promise<QueueConfig> {
    return fromWire(await this.call('getQueueConfig', { path: { queue: name } }));
  }

  /** Only a queue without waiting, running and dead tasks can be deleted. */
  async deleteQueue(name: string): Promise<void> {
    await this.call('deleteQueue', { path: { queue: name } });
  }

  /** What happens to tasks, as it happens: `for await (const event of queue.events({ types }))`. */
  events(options: EventOptions = {}): QueueEvents {
    requireOpen(this.#closed.signal.aborted);
    const open: OpenEvents = (query, signal) => this.transport.events(query, signal);
    const signals = [this.#closed.signal, ...(options.signal ? [options.signal] : [])];
    return new QueueEvents(open, { ...options, signal: AbortSignal.any(signals) });
  }

  /** Starts a worker. With `batch`, each handler gets `{ tasks }` and returns a result for each. */
  createWorker(options: WorkerOptions & { batch: object }, handlers: BatchHandlers<Types>): Worker;
  createWorker(options: WorkerOptions, handlers: TaskHandlers<Types> | URL): Worker;
  createWorker(
    options: WorkerOptions,
    handlers: TaskHandlers<Types> | BatchHandlers<Types> | URL,
  ): Worker {
    requireOpen(this.#closing !== undefined);
    const worker = startWorker(this.transport, options, this.tasks, handlers);
    this.started(worker);
    return worker;
  }

  protected started(worker: Worker): void {
    this.workers.add(worker);
  }

  /** Stops the workers that it started, ends its events, and lets go of the queue. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all(Array.from(this.workers, (worker) => worker.stop()));
    // Not before: handlers that still run may use the queue.
    this.#closed.abort();
    await this.transport.close();
  }

  async #submit(submission: Submission): Promise<SubmittedTask> {
    requireOpen(this.#closed.signal.aborted);
    const { queue, request } = await submitRequest(this.tasks, submission);
    try {
      const { id, status } = await this.transport.submit(queue, request);
      return { id, queue, status };
    } catch (error) {
      throw inCallNames(error, request);
    }
  }

  async #submitBatch(
    queue: string,
    entries: readonly { index: number; request: SubmitRequest }[],
    results: ManyResult[],
  ): Promise<void> {
    const requests = entries.map(({ request }) => request);
    const refuse = (index: number, error: unknown, request: SubmitRequest) => {
      results[index] = { index, error: inCallNames(error, request) as ApiError };
    };
    try {
      const answers = await this.transport.submitBatch(queue, requests);
      for (const [at, { index, request }] of entries.entries()) {
        const answer = answers[at]!;
        if ('envelope' in answer) {
          const { id, status } = answer.envelope;
          results[index] = { index, id, queue, status };
        } else refuse(index, new ApiError(answer.status, answer.error), request);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      for (const { index, request } of entries) refuse(index, error, request);
    }
  }

  async #get(id: string, waitMs = 0, signal?: AbortSignal): Promise<QueueTask<Types>> {
    const query = waitMs > 0 ? { wait_ms: waitMs } : {};
    const task = await this.call('getTask', { path: { id }, query, ...(signal && { signal }) });
    const { payload, payload_content_type: contentType } = task;
    const value = decodePayload(payloadBytes(payload), contentType);
    return { ...fromWire(task), payload: value } as unknown as QueueTask<Types>;
  }

  async *#list(
    queue: string | undefined,
    limit: number,
    filter: Omit<ListOptions, 'queue' | 'limit'>,
  ): AsyncGenerator<Schema<'Envelope'>, void, void> {
    let left = limit;
    for (const name of queue === undefined ? await this.#names() : [queue]) {
      let cursor = '';
      do {
        if (left <= 0) return;
        const query = {
          ...toWire(filter),
          limit: Math.min(left, maxPage),
          ...(cursor && { cursor }),
        };
        const page = await this.call('listTasks', { path: { queue: name }, query });
        for (const task of page.tasks.slice(0, left)) yield fromWire(task);
        left -= page.tasks.length;
        cursor = page.next_cursor;
      } while (cursor !== '');
    }
  }

  async #waitForAll(
    ids: readonly string[],
    { timeoutMs = defaultTimeoutMs, signal }: { timeoutMs?: number; signal?: AbortSignal },
  ): Promise<unknown[]> {
    const endsAt = Date.now() + timeoutMs;
    const wait = (id: string) => this.#waitForEnd<string>(id, { endsAt, timeoutMs, signal });
    return Promise.all(ids.map(async (id) => (await wait(id)).result));
  }

  async #names(): Promise<string[]> {
    return (await this.call('listQueues')).map(({ name }) => name);
  }

  async #cancelTask(id: string, options: CancelOptions): Promise<Schema<'Envelope'>> {
    return fromWire(await this.call('cancelTask', { path: { id }, body: toWire(options) }));
  }

  async #cancelIds(ids: readonly string[], options: CancelOptions): Promise<{ count: number }> {
    let count = 0;
    let next = 0;
    const run = async () => {
      while (next < ids.length) {
        const id = ids[next++]!;
        try {
          await this.#cancelTask(id, options);
          count++;
        } catch (error) {
          const code = error instanceof ApiError ? error.code : '';
          // Those that are gone or have ended are passed over.
          if (code !== 'TASK_FINISHED' && code !== 'TASK_NOT_FOUND') throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: parallelCalls }, run));
    return { count };
  }

  async #cancelFilter({ queue, reason, dryRun, ...filter }: CancelFilter) {
    const path = { queue: onlyQueue(this.tasks, queue) };
    const body = { ...toWire({ reason, dryRun }), filter: toWire(filter) };
    for (let count = 0; ;) {
      const result = await this.call('cancelTasks', { path, body });
      count += result.count;
      if (result.complete !== false || dryRun) return { count };
    }
  }

  async #waitForEnd<Ref extends keyof Types & string>(
    id: string,
    wait: { endsAt: number; timeoutMs: number; signal: AbortSignal | undefined },
  ): Promise<FinishedTask<Types, Ref>> {
    let pollMs = firstPollMs;
    for (;;) {
      wait.signal?.throwIfAborted();
      const leftMs = wait.endsAt - Date.now();
      const waitMs = this.transport.canWait === false ? 0 : Math.min(leftMs, maxWaitMs);
      const found = await this.#get(id, Math.max(0, waitMs), wait.signal);
      const task = found as FinishedTask<Types, Ref>['task'];
      if (task.status === 'SUCCEEDED') return { task, result: task.result ?? undefined };
      if (task.status === 'DEAD') throw failed(task);
      if (Date.now() >= wait.endsAt) throw new WaitTimeout(id, wait.timeoutMs);
      // A queue that waits for the end answers only now; any other is polled.
      await pause(Math.min(pollMs, Math.max(1, wait.endsAt - Date.now())), wait.signal);
      pollMs = Math.min(pollMs * 2, maxPollMs);
    }
  }
}

function requireOpen(isClosed: boolean): void {
  if (isClosed) throw new Error('The queue is closed.');
}

function isIds(which: readonly string[] | CancelFilter): which is readonly string[] {
  return Array.isArray(which);
}

function failed({
  id,
  lastError: error,
  deadReason: reason,
}: Pick<Schema<'Task'>, 'id' | 'lastError' | 'deadReason'>): TaskFailed {
  const cause = error ? `${error.errorType}: ${error.message}` : String(reason);
  return new TaskFailed(`The task ${id} failed: ${cause}`, id, error?.errorType ?? null);
}
