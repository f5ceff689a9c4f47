import { PermanentError } from './errors.js';
import { decodePayload } from './payload.js';
import { validatePayload, type Tasks, type TaskTypes } from './tasks.js';

/** What a handler learns of its task. */
export interface TaskInfo {
  readonly id: string;
  readonly queue: string;
  readonly handlerRef: string;
  /** From 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly redriveCount: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Progress {
  /** 0 to 100; null: unknown. */
  percent?: number | null;
  message?: string;
}

export interface HandlerCall<Payload> {
  readonly payload: Payload;
  readonly task: TaskInfo;
  /** Aborted when the lease is lost, the task is cancelled or the worker stops. */
  readonly signal: AbortSignal;
  /**
   * Reports progress, and keeps the lease. In a callback it needs the `url` of `createHandler`;
   * without it nothing is reported.
   */
  readonly progress: (progress: Progress) => Promise<void>;
}

/** One handler for each task. What it returns is the result of the task. */
export type TaskHandlers<Types extends TaskTypes> = {
  [Ref in keyof Types]: (call: HandlerCall<Types[Ref]['output']>) => unknown;
};

/** Handlers without the types of their tasks. */
export type AnyHandlers = Readonly<Record<string, (call: HandlerCall<never>) => unknown>>;

export interface RunRequest extends Omit<HandlerCall<unknown>, 'payload'> {
  readonly bytes: Uint8Array;
  readonly contentType: string;
}

/** Checks the payload and calls the handler of the task. */
export async function runHandler(
  tasks: Tasks<TaskTypes>,
  handlers: AnyHandlers,
  request: RunRequest,
): Promise<unknown> {
  const { bytes, contentType, task, progress } = request;
  const { handlerRef } = task;
  const handler = Object.hasOwn(handlers, handlerRef) ? handlers[handlerRef] : undefined;
  if (!handler) throw new PermanentError(`There is no handler for ${handlerRef}`);
  const payload = await validatePayload(tasks, handlerRef, decodePayload(bytes, contentType));
  return handler({
    payload: payload as never,
    task,
    // Read on demand, which may create it.
    get signal() {
      return request.signal;
    },
    progress,
  });
}
