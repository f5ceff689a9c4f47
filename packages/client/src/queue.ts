import {
  queueOperations,
  type QueueOperationId,
  type QueueOperations,
  type QueueSchema,
} from '@millrace/contract/queue';
import { ApiError } from './api-error.js';
import { createClient, type ApiClient, type ClientOptions } from './operations.js';
import { SharedSubmits } from './shared-submits.js';
import { newUlid } from './ulid.js';

/** Without the webhooks, which the server sends. */
type Served = Pick<QueueOperations, QueueOperationId>;

export type TaskToSubmit = QueueSchema<'SubmitTaskRequest'>;

export interface QueueApi extends ApiClient<Served> {
  /**
   * Submits a task so that it is stored once, even when a response is lost: the task gets an id
   * before the first attempt, and each retry carries the same one. Submits that arrive while others
   * are under way share a request.
   */
  submit(
    queue: string,
    task: TaskToSubmit,
    options?: SubmitOptions,
  ): Promise<QueueSchema<'SubmitResult'>>;
  /** The same for up to 1,000 tasks in one request; a result for each, in order. */
  submitBatch(
    queue: string,
    tasks: readonly TaskToSubmit[],
    options?: SubmitOptions,
  ): Promise<QueueSchema<'BatchResult'>>;
}

export interface SubmitOptions {
  /** Attempts in all. */
  attempts?: number;
  /** How to wait; for tests. */
  wait?: (ms: number) => Promise<void>;
}

/** Statuses after which the same task may be sent again; its id makes that harmless. */
const retryable = new Set([429, 502, 503, 504]);
const maxWaitMs = 30_000;

export function createQueueApi(options: ClientOptions): QueueApi {
  const client = createClient<Served>(queueOperations, options);
  const shared = new SharedSubmits({
    submitTask: (queue, body) => client.call('submitTask', { path: { queue }, body }),
    submitBatch: (queue, body) => client.call('submitBatch', { path: { queue }, body }),
  });
  return {
    ...client,
    submit: (queue, task, retries) => {
      const body = withId(task);
      return retried(() => shared.submit(queue, body), retries);
    },
    submitBatch: (queue, tasks, retries) => {
      const body = tasks.map(withId);
      return retried(() => client.call('submitBatch', { path: { queue }, body }), retries);
    },
  };
}

function withId(task: TaskToSubmit): TaskToSubmit {
  return { ...task, id: task.id ?? newUlid() };
}

async function retried<Result>(
  run: () => Promise<Result>,
  { attempts = 5, wait = pause }: SubmitOptions = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const isFinal = error instanceof ApiError && !retryable.has(error.status);
      if (isFinal || attempt >= attempts) throw error;
      await wait(backoffMs(attempt, error));
    }
  }
}

function backoffMs(attempt: number, error: unknown): number {
  const requested = error instanceof ApiError ? error.retryAfterMs : undefined;
  const backoff = 100 * 2 ** attempt * (0.5 + Math.random() / 2);
  return Math.min(maxWaitMs, requested ?? backoff);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
