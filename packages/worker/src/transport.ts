import { ApiError, createQueueClient, type ClientOptions } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { nodeFetch } from './node-fetch.js';

export type ClaimedTask = QueueSchema<'ClaimedTask'>;
export type SettleItem = QueueSchema<'SettleItem'>;
export type SubmitRequest = QueueSchema<'SubmitTaskRequest'>;

/** The calls of a queue that clients and workers make: over HTTP, or in process. */
export interface QueueTransport {
  submit(queue: string, task: SubmitRequest): Promise<QueueSchema<'SubmitResult'>>;
  /** Waits up to `waitMs` for the end of the task, if the queue can. */
  getTask(id: string, waitMs: number): Promise<QueueSchema<'Task'>>;
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
}

export function httpTransport(options: ClientOptions): QueueTransport {
  const fetch = options.fetch ?? nodeFetch();
  const client = createQueueClient({ ...options, ...(fetch && { fetch }) });
  return {
    submit: (queue, task) => client.submit(queue, task),
    getTask: (id, waitMs) =>
      client.call('getTask', {
        path: { id },
        ...(waitMs > 0 && { query: { wait_ms: waitMs } }),
      }),
    claim: async (queue, body, signal) =>
      (await client.call('claimTasks', { path: { queue }, body, signal })).tasks,
    settle: (queue, items) =>
      client.call('settleTasks', { path: { queue }, body: { items: [...items] } }),
    extend: (id, leaseToken, body) =>
      client.call('extendTask', {
        path: { id },
        body,
        headers: { 'x-queue-lease-token': leaseToken },
      }),
  };
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
