import { ApiError } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { LeaseLost, TaskCancelled } from './errors.js';
import type { Progress } from './handlers.js';
import type { TaskInfo } from './tasks.js';
import { codeOf, type ClaimedTask, type QueueTransport } from './transport.js';

const watchAfterMs = 500;
const watchMs = 30_000;

/** A claimed task until it is settled. */
export class RunningTask {
  readonly info: TaskInfo;
  #abort: AbortController | undefined;
  leaseEnd: number;
  /** Takes the steps that are recorded when the task is settled. */
  takeSteps: () => Pick<QueueSchema<'SettleItem'>, 'steps'> = () => ({});
  /** The queue said that the lease is gone, as after a cancel: it takes no result any more. */
  isLost = false;
  /** The handler has ended. */
  isSettling = false;

  constructor(
    readonly claimed: ClaimedTask,
    private readonly transport: QueueTransport,
    private readonly leaseMs: number,
  ) {
    const { id, queue, handler_ref, attempt, max_attempts, redrive_count, headers } = claimed;
    this.leaseEnd = Date.now() + leaseMs;
    this.info = {
      id,
      queue,
      handlerRef: handler_ref,
      attempt,
      maxAttempts: max_attempts,
      redriveCount: redrive_count,
      headers,
    };
  }

  /** Made on first use: most handlers use none, and it took 7 % of a worker's CPU time. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#abort?.signal.aborted ?? false;
  }

  get #controller(): AbortController {
    return (this.#abort ??= new AbortController());
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  /** Somebody cancelled the task: its result is not wanted. */
  cancel(): void {
    this.isLost = true;
    this.abort(new TaskCancelled(`The task ${this.info.id} was cancelled`));
  }

  /** The lease is gone, and the task may run elsewhere. */
  lose(cause?: unknown): void {
    this.isLost = true;
    this.abort(new LeaseLost(`The lease of task ${this.info.id} is lost`, { cause }));
  }

  /**
   * Aborts the handler soon after a cancel, over a connection that does not report it: waits for
   * the end of the task. Returns how to stop. Handlers that end before it begins cost no request.
   */
  watch(): () => void {
    const over = new AbortController();
    const timer = setTimeout(() => void this.#watch(over.signal), watchAfterMs);
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { id, lease_token: token } = this.claimed;
    const request = {
      path: { id },
      query: { wait_ms: watchMs },
      headers: { 'x-queue-lease-token': token },
      signal,
    };
    for (let startedAt = Date.now(); !signal.aborted; startedAt = Date.now()) {
      const status = await this.transport.call('getTask', request).then(
        (task) => task.status,
        (error: unknown) => codeOf(error),
      );
      if (signal.aborted || this.isLost) return;
      // A role that may only read tasks that it holds is refused when the lease is gone.
      const isOver = status === 'DEAD' || status === 'FORBIDDEN' || status === 'TASK_NOT_FOUND';
      if (isOver) await this.extend().catch(() => undefined);
      // A server that is away, draining or overloaded: the next extension of the lease finds out.
      if (isOver || Date.now() - startedAt < watchMs / 2) return;
    }
  }

  /** Extends the lease. Aborts the handler if the lease is lost. */
  async extend(progress?: Progress): Promise<void> {
    const { id, lease_token: token } = this.claimed;
    const sentAt = Date.now();
    try {
      const body = { extend_ms: this.leaseMs, ...(progress && { progress }) };
      await this.transport.extend(id, token, body);
      this.leaseEnd = Math.max(this.leaseEnd, sentAt + this.leaseMs);
    } catch (error) {
      if (isCancelled(error)) this.cancel();
      else if (codeOf(error) === 'LEASE_LOST' || codeOf(error) === 'TASK_NOT_FOUND') {
        this.lose(error);
      } else if (this.leaseEnd <= Date.now()) {
        this.abort(new LeaseLost(`The lease of task ${id} is lost`, { cause: error }));
      }
      throw error;
    }
  }
}

function isCancelled(error: unknown): boolean {
  const body = error instanceof ApiError ? (error.body as { reason?: unknown } | undefined) : {};
  return body?.reason === 'CANCELLED';
}
