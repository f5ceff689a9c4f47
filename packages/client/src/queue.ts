import type { QueuePaths, QueueSchema } from '@millrace/contract/queue';
import { bodyOf, Problem } from './problem.js';
import { requestsTo, type ClientOptions } from './requests.js';
import { newUlid } from './ulid.js';

export type TaskToSubmit = QueueSchema<'SubmitTaskRequest'>;
export type QueueClient = ReturnType<typeof queueClient>;

export interface SubmitOptions {
  /** How often to try in all. */
  attempts?: number;
  /** How to wait; for tests. */
  wait?: (ms: number) => Promise<void>;
}

/** Answers after which the same task may be sent again, for its id makes that harmless. */
const passing = new Set([429, 502, 503, 504]);
const longestWaitMs = 30_000;

/** The queue's operations by method and path, and `submit`. */
export function queueClient(options: ClientOptions) {
  const requests = requestsTo<QueuePaths>(options);
  return Object.assign(requests, {
    /**
     * Submits a task so that it is stored once, whatever happens to the answer: the task gets an
     * id before the first try, and a try that failed on the way is repeated with the same one.
     */
    async submit(
      queue: string,
      task: TaskToSubmit,
      { attempts = 5, wait = pause }: SubmitOptions = {},
    ): Promise<QueueSchema<'SubmitResult'>> {
      const body = { ...task, id: task.id ?? newUlid() };
      for (let attempt = 1; ; attempt++) {
        try {
          const params = { path: { queue } };
          return await bodyOf(requests.POST('/v1/queues/{queue}/tasks', { params, body }));
        } catch (error) {
          const isFinal = error instanceof Problem && !passing.has(error.status);
          if (isFinal || attempt >= attempts) throw error;
          await wait(pauseMs(attempt, error));
        }
      }
    },
  });
}

function pauseMs(attempt: number, error: unknown): number {
  const asked = error instanceof Problem ? error.retryAfterMs : undefined;
  const backoff = 100 * 2 ** attempt * (0.5 + Math.random() / 2);
  return Math.min(longestWaitMs, asked ?? backoff);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
