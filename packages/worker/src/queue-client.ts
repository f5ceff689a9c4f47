import type { ClientOptions } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { pause } from './pause.js';
import { TaskFailed, WaitTimeout } from './errors.js';
import { encodePayload, payloadContentType } from './payload.js';
import { validatePayload, type Tasks, type TaskTypes } from './tasks.js';
import { httpTransport, type QueueTransport, type SubmitRequest } from './transport.js';

export interface SubmitOptions {
  /** A ULID; submitting it again changes nothing. */
  id?: string;
  delayMs?: number;
  runAt?: Date | string;
  expiresAt?: Date | string;
  /** 0 to 9, higher first; 4 if absent. */
  priority?: number;
  groupKey?: string;
  headers?: Readonly<Record<string, string>>;
  /** While a task with this key waits or runs, a second submit returns that task. */
  uniqueKey?: string;
  uniqueForMs?: number;
}

export interface WaitOptions extends SubmitOptions {
  /** How long to wait for the end of the task; 60 s if absent. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface SubmittedTask {
  readonly id: string;
  readonly queue: string;
  readonly status: QueueSchema<'TaskStatus'>;
}

export interface FinishedTask {
  readonly task: QueueSchema<'Task'>;
  /** What the handler returned; undefined if nothing was kept. */
  readonly result: unknown;
}

/** Submits tasks whose payloads have the types of their definitions. */
export interface TaskQueue<Types extends TaskTypes> {
  submit<Ref extends keyof Types & string>(
    queue: string,
    ref: Ref,
    payload: Types[Ref]['input'],
    options?: SubmitOptions,
  ): Promise<SubmittedTask>;
  /** Throws TaskFailed if the task ends in the dead-letter queue, WaitTimeout if it takes longer. */
  submitAndWait<Ref extends keyof Types & string>(
    queue: string,
    ref: Ref,
    payload: Types[Ref]['input'],
    options?: WaitOptions,
  ): Promise<FinishedTask>;
  getTask(id: string): Promise<QueueSchema<'Task'>>;
}

const defaultTimeoutMs = 60_000;
/** The longest wait of one request. */
const maxWaitMs = 30_000;
const firstPollMs = 20;
const maxPollMs = 500;

export function createQueueClient<Types extends TaskTypes>(
  options: ClientOptions,
  tasks: Tasks<Types>,
): TaskQueue<Types> {
  return taskQueue(httpTransport(options), tasks);
}

/** The client of any transport. */
export function taskQueue<Types extends TaskTypes>(
  transport: QueueTransport,
  tasks: Tasks<Types>,
): TaskQueue<Types> {
  const submit = async (queue: string, ref: string, payload: unknown, options: SubmitOptions) => {
    await validatePayload(tasks, ref, payload);
    const { id, status } = await transport.submit(queue, submitRequest(ref, payload, options));
    return { id, queue, status };
  };
  return {
    submit: (queue, ref, payload, options = {}) => submit(queue, ref, payload, options),
    submitAndWait: async (queue, ref, payload, options = {}) => {
      const { timeoutMs = defaultTimeoutMs, signal, ...rest } = options;
      const endsAt = Date.now() + timeoutMs;
      const { id } = await submit(queue, ref, payload, rest);
      return waitForEnd(transport, id, { endsAt, timeoutMs, signal });
    },
    getTask: (id) => transport.getTask(id, 0),
  };
}

function submitRequest(ref: string, payload: unknown, options: SubmitOptions): SubmitRequest {
  const { id, delayMs, runAt, expiresAt, priority, groupKey, headers } = options;
  const { uniqueKey, uniqueForMs } = options;
  const request = {
    handler_ref: ref,
    ...(payload !== undefined && {
      payload: encodePayload(payload),
      payload_content_type: payloadContentType,
    }),
    id,
    delay_ms: delayMs,
    run_at: timeText(runAt),
    expires_at: timeText(expiresAt),
    priority,
    group_key: groupKey,
    headers,
    unique_key: uniqueKey,
    unique_for_ms: uniqueForMs,
  };
  const given = Object.entries(request).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as unknown as SubmitRequest;
}

function timeText(time: Date | string | undefined): string | undefined {
  return time instanceof Date ? time.toISOString() : time;
}

async function waitForEnd(
  transport: QueueTransport,
  id: string,
  wait: { endsAt: number; timeoutMs: number; signal: AbortSignal | undefined },
): Promise<FinishedTask> {
  let pollMs = firstPollMs;
  for (;;) {
    wait.signal?.throwIfAborted();
    const leftMs = wait.endsAt - Date.now();
    const task = await transport.getTask(id, Math.max(0, Math.min(leftMs, maxWaitMs)));
    if (task.status === 'SUCCEEDED') {
      return { task, result: task.result ?? undefined };
    }
    if (task.status === 'DEAD') throw failed(task);
    if (Date.now() >= wait.endsAt) throw new WaitTimeout(id, wait.timeoutMs);
    // A queue that waits for the end answers only now; any other is polled.
    await pause(Math.min(pollMs, Math.max(1, wait.endsAt - Date.now())));
    pollMs = Math.min(pollMs * 2, maxPollMs);
  }
}

function failed({ id, last_error: error, dead_reason: reason }: QueueSchema<'Task'>): TaskFailed {
  const cause = error ? `${error.error_type}: ${error.message}` : String(reason);
  return new TaskFailed(`The task ${id} failed: ${cause}`, id, error?.error_type ?? null);
}
