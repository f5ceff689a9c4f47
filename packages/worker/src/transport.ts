import {
  ApiError,
  createQueueApi,
  type ApiClient,
  type ClientOptions,
  type QueueApi,
} from '@millrace/client';
import type { QueueOperationId, QueueOperations, QueueSchema } from '@millrace/contract/queue';
import { restEvents, type OpenEvents } from './events.js';
import { nodeFetch } from './node-fetch.js';
import { encodeBase64 } from './payload.js';

/** A payload is base64 where only JSON is sent. */
type WithBytes<Task extends { payload?: string }> = Omit<Task, 'payload'> & {
  payload: string | Uint8Array;
};
export type ClaimedTask = WithBytes<QueueSchema<'ClaimedTask'>>;
export type SettleItem = QueueSchema<'SettleItem'>;
/** Without bytes, the task has no payload. */
export type SubmitRequest = Omit<QueueSchema<'SubmitTaskRequest'>, 'payload'> & {
  payload?: Uint8Array;
};

/** Any operation of the contract, by its id. */
export type CallOperation = ApiClient<Pick<QueueOperations, QueueOperationId>>['call'];

/** A queue as clients and workers use it: in process, or on a server. Refusals are `ApiError`s. */
export interface QueueTransport {
  submit(
    queue: string,
    task: SubmitRequest,
  ): Promise<Pick<QueueSchema<'SubmitResult'>, 'id' | 'status'>>;
  /** At most 1,000 tasks; a result for each, in order. */
  submitBatch(
    queue: string,
    tasks: readonly SubmitRequest[],
  ): Promise<readonly QueueSchema<'BatchItemResult'>[]>;
  claim(
    queue: string,
    request: QueueSchema<'ClaimRequest'>,
    signal: AbortSignal,
  ): Promise<ClaimedTask[]>;
  settle(
    queue: string,
    items: readonly SettleItem[],
  ): Promise<readonly QueueSchema<'SettleItemResult'>[]>;
  /** Throws an error with the code LEASE_LOST if the lease is lost. */
  extend(
    id: string,
    leaseToken: string,
    body: QueueSchema<'ExtendTaskRequest'>,
  ): Promise<{ lease_expires_at: string | null }>;
  /** Records steps under the lease of the task; as they are stored, in order. */
  recordSteps(
    id: string,
    body: QueueSchema<'RecordStepsRequest'>,
  ): Promise<{ steps: readonly QueueSchema<'Step'>[] }>;
  readonly call: CallOperation;
  readonly events: OpenEvents;
  /** Reports running tasks whose work is to stop, where the queue says so by itself. */
  onStopped?(listener: (id: string, how: 'cancelled' | 'lost') => void): () => void;
  /** The connection was lost, and is there again: leases may be lost. */
  onReconnected?(listener: () => void): () => void;
  /** True: calls of one turn of the event loop are sent together anyway. */
  readonly batchesCalls?: boolean;
  /** Creates the queues of a worker, where that is for the program to do. */
  ensureQueues?(names: readonly string[]): void;
  /** False: `wait_ms` of a call may never end. */
  readonly canWait?: boolean;
  /** Milliseconds since the epoch. */
  now(): number;
  close(): Promise<void>;
}

/** Calls the REST API of a server. */
export function httpTransport(
  options: ClientOptions & { urls?: readonly string[] },
): QueueTransport {
  const { fetch = nodeFetch(), urls = [options.url], token } = options;
  const api = createQueueApi({ ...options, ...(fetch && { fetch }) });
  return {
    submit: (queue, task) => api.submit(queue, inJson(task)),
    submitBatch: (queue, tasks) => submitBatch(api, queue, tasks.map(inJson)),
    claim: async (queue, body, signal) =>
      (await api.call('claimTasks', { path: { queue }, body, signal })).tasks,
    settle: (queue, items) =>
      api.call('settleTasks', { path: { queue }, body: { items: [...items] } }),
    extend: (id, leaseToken, body) =>
      api.call('extendTask', {
        path: { id },
        body,
        headers: { 'x-queue-lease-token': leaseToken },
      }),
    recordSteps: async (id, body) =>
      (await api.call('recordSteps', { path: { id }, body })) as { steps: QueueSchema<'Step'>[] },
    call: api.call,
    events: (query, signal) => restEvents({ urls, token }, query, signal),
    now: () => Date.now(),
    close: () => Promise.resolve(),
  };
}

function inJson({ payload, ...task }: SubmitRequest): QueueSchema<'SubmitTaskRequest'> {
  return payload === undefined ? task : { ...task, payload: encodeBase64(payload) };
}

/** Far below the 16 MiB of a request; all but the payload is counted with a fixed size. */
const maxBatchBytes = 4 * 1024 * 1024;
const itemBytes = 2_048;

/** In as many requests as the size of the payloads needs. */
async function submitBatch(
  api: QueueApi,
  queue: string,
  tasks: readonly QueueSchema<'SubmitTaskRequest'>[],
): Promise<QueueSchema<'BatchItemResult'>[]> {
  const results: QueueSchema<'BatchItemResult'>[] = [];
  for (let from = 0, to = 0; from < tasks.length; from = to) {
    let bytes = 0;
    do bytes += itemBytes + (tasks[to++]!.payload?.length ?? 0);
    while (to < tasks.length && bytes + (tasks[to]!.payload?.length ?? 0) < maxBatchBytes);
    const part = await api.submitBatch(queue, tasks.slice(from, to));
    results.push(...part.map((result) => ({ ...result, index: result.index + from })));
  }
  return results;
}

/** Refusals in a row after which an overloaded server is reported. */
const maxQuietRefusals = 10;

/** Reports errors, but not that a server is briefly overloaded: the call is repeated anyway. */
export class ErrorReporter {
  #refusals = 0;

  constructor(private readonly report: (error: unknown) => void) {}

  /** Returns the least time until the next try. */
  failed(error: unknown): number {
    this.#refusals = codeOf(error) === 'RATE_LIMITED' ? this.#refusals + 1 : 0;
    if (this.#refusals === 0 || this.#refusals % maxQuietRefusals === 0) this.report(error);
    return error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  }

  succeeded(): void {
    this.#refusals = 0;
  }
}

/** The machine code of a refusal, whatever the transport; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  if (error instanceof ApiError) return error.code;
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
