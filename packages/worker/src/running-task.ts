import type { Progress, TaskInfo } from './handlers.js';
import { codeOf, type ClaimedTask, type QueueTransport } from './transport.js';

/** A claimed task while its handler runs. */
export class RunningTask {
  #abort: AbortController | undefined;
  leaseEnd: number;
  /** The queue said that the lease is gone, as after a cancel: it takes no result any more. */
  isLost = false;

  constructor(
    readonly claimed: ClaimedTask,
    private readonly transport: QueueTransport,
    private readonly leaseMs: number,
  ) {
    this.leaseEnd = Date.now() + leaseMs;
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

  get info(): TaskInfo {
    const { id, queue, handler_ref, attempt, max_attempts, redrive_count, headers } = this.claimed;
    return {
      id,
      queue,
      handlerRef: handler_ref,
      attempt,
      maxAttempts: max_attempts,
      redriveCount: redrive_count,
      headers,
    };
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
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
      const isLost = codeOf(error) === 'LEASE_LOST' || codeOf(error) === 'TASK_NOT_FOUND';
      this.isLost ||= isLost;
      if (isLost || this.leaseEnd <= Date.now()) {
        this.abort(new Error(`The lease of task ${id} is lost`, { cause: error }));
      }
      throw error;
    }
  }
}
