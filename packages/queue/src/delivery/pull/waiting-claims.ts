import type { WholeTask } from '../../core/task.js';
import type { ClaimedTask } from '../../core/attempt-record.js';
import type { WorkerIdentity } from '../../storage/task-store.js';

/** A request of a worker for tasks. */
export interface PullRequest extends WorkerIdentity {
  limit: number;
  waitMs: number;
  leaseMs: number;
  /** Only tasks for these handlers; absent: any. */
  handlers?: readonly string[] | undefined;
  /** Aborted when the client disconnects. */
  signal?: AbortSignal | undefined;
}

export type PulledTask = WholeTask & ClaimedTask;

/** A claim that waits for its first task. */
export class WaitingClaim {
  /** Claims with the same filter find the same tasks. */
  readonly filter: string;
  readonly #end: (tasks: readonly PulledTask[]) => void;
  isOver = false;
  #isBeingServed = false;
  #isWaitOver: boolean;

  constructor(
    readonly request: PullRequest,
    /** Identifies the worker in lease tokens. */
    readonly workerKey: string,
    end: (tasks: readonly PulledTask[]) => void,
  ) {
    this.filter = request.handlers ? JSON.stringify(request.handlers.toSorted()) : anyHandler;
    this.#end = end;
    this.#isWaitOver = request.waitMs === 0;
  }

  get isWaitOver(): boolean {
    return this.#isWaitOver && !this.#isBeingServed;
  }

  /** The store is claiming for it. */
  beginServing(): void {
    this.#isBeingServed = true;
  }

  /** `isAnswered`: the store had nothing more for it. */
  endServing(isAnswered: boolean): void {
    this.#isBeingServed = false;
    if (isAnswered && this.#isWaitOver) this.end([]);
  }

  /** Ends it, or lets a claim of the store that runs for it be the last. */
  endWait(): void {
    this.#isWaitOver = true;
    if (!this.#isBeingServed) this.end([]);
  }

  end(tasks: readonly PulledTask[]): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#end(tasks);
  }
}

const anyHandler = '';

/** The waiting claims of one queue, in the order of their arrival. */
export class WaitingClaims {
  readonly #claims = new Set<WaitingClaim>();
  /** Filters that found nothing to claim since the last `wake`. */
  readonly #drained = new Set<string>();

  get size(): number {
    return this.#claims.size;
  }

  add(claim: WaitingClaim): void {
    this.#claims.add(claim);
  }

  remove(claim: WaitingClaim): void {
    this.#claims.delete(claim);
  }

  /** There may be work again for every filter. */
  wake(): void {
    this.#drained.clear();
  }

  drained(filter: string): void {
    this.#drained.add(filter);
  }

  /** Whether a claim of the store could find tasks for one of them. */
  get canBeServed(): boolean {
    if (this.#drained.size === 0) return this.#claims.size > 0;
    if (this.#drained.has(anyHandler)) return false;
    return this.#next() !== undefined;
  }

  /**
   * The first claim that can be served, and those that can be served with it by one claim of the
   * store of about `maxTasks`.
   */
  nextAlike(maxTasks: number): WaitingClaim[] {
    const first = this.canBeServed ? this.#next() : undefined;
    const alike: WaitingClaim[] = [];
    if (!first) return alike;
    let wanted = 0;
    for (const claim of this.#claims) {
      const { filter, request } = claim;
      if (filter !== first.filter || request.leaseMs !== first.request.leaseMs) continue;
      alike.push(claim);
      wanted += request.limit;
      if (wanted >= maxTasks) break;
    }
    return alike;
  }

  /** Nothing can be claimed now: ends the claims that do not wait. */
  endUnservable(): void {
    for (const claim of this.#claims) if (claim.isWaitOver) claim.end([]);
  }

  /** Ends all of them without tasks. */
  end(): void {
    for (const claim of this.#claims) claim.end([]);
  }

  #next(): WaitingClaim | undefined {
    for (const claim of this.#claims) if (!this.#drained.has(claim.filter)) return claim;
    return undefined;
  }
}
