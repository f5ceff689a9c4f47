import type { Clock } from '@millrace/kit/clock';
import { RequestAbort } from '@millrace/kit/outbound';
import type { ClaimedTask } from '../core/outcome.js';
import type { Queue } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import type { Trace } from '../core/callback-headers.js';
import type { TaskStore } from '../storage/port/task-store.js';
import type { QueueState } from './queue-state.js';

/** A task that this server has claimed and not settled yet. */
export class InFlightTask {
  /** Closes the callback's connection. */
  readonly abort = new RequestAbort();
  /** End of the lease as last known; an extension moves it. */
  leaseEnd: number;
  /** Its settlement is being written, so it no longer takes up capacity. */
  isSettling = false;
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(
    readonly state: QueueState,
    /** With the config under which the task was claimed. */
    readonly queue: Queue,
    readonly task: WholeTask & ClaimedTask,
    readonly trace: Trace,
    readonly breakerMark: number,
  ) {
    this.leaseEnd = task.lease.expiresAt;
  }

  get token(): string {
    return this.task.lease.token;
  }

  /** Asks a shared store about an expired lease: another server may have extended it. */
  async isHeld(store: TaskStore, clock: Clock): Promise<boolean> {
    if (this.leaseEnd > clock.now()) return true;
    if (!store.capabilities.isShared) return false;
    const found = await store.getTask(this.task.id);
    const lease = found && 'lease' in found ? found.lease : null;
    if (lease?.token === this.token) this.leaseEnd = lease.expiresAt;
    return this.leaseEnd > clock.now();
  }

  /** Runs changes of the lease one after the other, so that none shortens another's extension. */
  serialize<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#lastChange.then(change);
    this.#lastChange = turn.catch(() => {});
    return turn;
  }
}

/** The tasks in flight on this server, by task id. */
export class InFlightRegistry {
  /** A task whose lease was lost may be claimed again while its old callback still runs. */
  readonly #all = new Set<InFlightTask>();
  readonly #newest = new Map<string, InFlightTask>();

  get count(): number {
    return this.#all.size;
  }

  add(entry: InFlightTask): void {
    this.#all.add(entry);
    this.#newest.set(entry.task.id, entry);
  }

  remove(entry: InFlightTask): void {
    this.#all.delete(entry);
    if (this.#newest.get(entry.task.id) === entry) this.#newest.delete(entry.task.id);
  }

  /** The task if this server holds it under this lease. */
  find(id: string, token: string): InFlightTask | undefined {
    const entry = this.#newest.get(id);
    return entry?.token === token ? entry : undefined;
  }

  /** Closes the callback connection of a task, if this server runs it. */
  abort(id: string): void {
    this.#newest.get(id)?.abort.abort();
  }

  abortAll(): void {
    for (const entry of this.#all) entry.abort.abort();
  }
}
