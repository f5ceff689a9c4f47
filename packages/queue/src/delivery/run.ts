import type { Queue } from '../core/queue.js';
import type { ClaimedTask } from '../core/attempt-record.js';
import type { WholeTask } from '../core/task.js';
import type { Trace } from '../core/trace.js';
import type { Lane } from './lane.js';

/** One attempt that this server is making. */
export class Run {
  /** The end of the lease as last known. */
  leaseEnd: number;
  /** Its end is with the store: another may be claimed for its place. */
  isEnding = false;
  #changes: Promise<unknown> = Promise.resolve();

  constructor(
    readonly lane: Lane,
    /** With the config under which the task was claimed. */
    readonly queue: Queue,
    readonly task: WholeTask & ClaimedTask,
    readonly trace: Trace,
    /** From the circuit breaker. */
    readonly mark: number,
    readonly startedAt: number,
  ) {
    this.leaseEnd = task.lease.expiresAt;
  }

  /** Changes of one lease go one after the other, so that none shortens what another gave. */
  inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#changes.then(change);
    this.#changes = turn.catch(() => {});
    return turn;
  }
}
