import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import type { TaskObserver } from '../background/index.js';
import { attemptRecord, isClaimed, type LeasedTask, type TargetHealth } from '../core/outcome.js';
import type { Queue } from '../core/queue.js';
import { QueueChanged, type Settlement, type TaskStore } from '../storage/port/task-store.js';
import type { WorkerActivity } from './worker-activity.js';
import {
  Alarm,
  claimInParts,
  claimRequest,
  newLeaseToken,
  type QueueState,
} from './queue-state.js';
import type { DeliveryMetrics } from './delivery-metrics.js';
import type { PulledTask, WaitingClaim } from './waiting-claims.js';

export interface PullServerOptions {
  store: TaskStore;
  observer: TaskObserver;
  clock: Clock;
  random: Random;
  metrics: DeliveryMetrics;
  leases: PulledLeases;
  workers: WorkerActivity;
  nodeId: string;
  /** A lease was taken that lasts this long. */
  leaseTaken: (leaseMs: number) => void;
}

const maxPerClaim = 200;
const maxTurnMs = 10;

/** Claims tasks of pull queues for the workers that wait for them. */
export class PullServer {
  constructor(private readonly options: PullServerOptions) {}

  /** Serves waiting claims until none can be served. True: some came short of their limit. */
  async serve(state: QueueState, queue: Queue): Promise<boolean> {
    let isShort = false;
    let turnEndsAt = this.options.clock.monotonic() + maxTurnMs;
    for (;;) {
      // A store in this process may answer without a turn of the event loop.
      if (this.options.clock.monotonic() > turnEndsAt) {
        await new Promise((resolve) => setImmediate(resolve));
        turnEndsAt = this.options.clock.monotonic() + maxTurnMs;
      }
      const claims = state.waiting.nextAlike(maxPerClaim);
      if (claims.length === 0) {
        state.waiting.endUnservable();
        return isShort;
      }
      const wanted = claims.reduce((sum, { request }) => sum + request.limit, 0);
      const limit = Math.min(wanted, maxPerClaim, state.maxTasksBySize);
      if (limit <= 0) {
        state.waiting.endUnservable();
        state.mayHaveWork = true;
        return false;
      }
      // Work that arrives from now on may be missed by the claim.
      state.mayHaveWork = false;
      const tasks = await this.#serve(state, queue, claims, limit);
      if (tasks.length > 0) state.waiting.served(claims[0]!);
      if (tasks.length >= limit) continue;
      isShort = true;
      if (!state.mayHaveWork) state.waiting.drained(claims[0]!);
    }
  }

  async #serve(
    state: QueueState,
    queue: Queue,
    claims: readonly WaitingClaim[],
    limit: number,
  ): Promise<PulledTask[]> {
    for (const claim of claims) claim.beginServing();
    let isAnswered = true;
    try {
      const tasks = await this.#take(state, queue, claims, limit);
      if (tasks.length > 0) await this.#handOut(state, claims, tasks);
      return tasks;
    } catch (error) {
      // They are served again after the queue was read.
      isAnswered = !(error instanceof QueueChanged);
      throw error;
    } finally {
      for (const claim of claims) claim.endServing(isAnswered);
    }
  }

  async #take(
    state: QueueState,
    queue: Queue,
    claims: readonly WaitingClaim[],
    limit: number,
  ): Promise<PulledTask[]> {
    const { store, clock, random, nodeId, metrics, leaseTaken } = this.options;
    const { leaseMs, handlers, labels = [] } = claims[0]!.request;
    // Each token names the worker that gets its task. A store may use only the later ones, if it
    // has to repeat the claim.
    let at = -1;
    let left = 0;
    const now = clock.now();
    const newToken = () => {
      if (left-- === 0) left = claims[(at = (at + 1) % claims.length)]!.request.limit - 1;
      return `${newLeaseToken(random)}.${claims[at]!.workerKey}`;
    };
    const tasks = await claimInParts(state, { limit, handlers }, ({ limit: max, ...filter }) =>
      store.claimDue({
        ...claimRequest(queue, { limit: max, now, nodeId, leaseMs, newToken }),
        handlers: filter.handlers,
        excludedHandlers: filter.excludedHandlers,
        labels,
        isImmediate: true,
      }),
    );
    const claimed = tasks.filter(isClaimed);
    state.claimed(claimed, now);
    metrics.claimBatch.observe({}, claimed.length);
    if (claimed.length > 0) leaseTaken(leaseMs);
    return claimed;
  }

  /** Each task goes to the worker that its token names, if that still waits. */
  async #handOut(
    state: QueueState,
    claims: readonly WaitingClaim[],
    tasks: readonly PulledTask[],
  ): Promise<void> {
    const { leases, workers } = this.options;
    const left = [...tasks];
    const unwanted: PulledTask[] = [];
    for (const claim of claims) {
      const share = takeShare(left, claim);
      if (share.length === 0) continue;
      workers.claimed(state.name, claim.workerKey, share.length);
      if (claim.isOver) {
        unwanted.push(...share);
        continue;
      }
      for (const task of share) leases.add(task, state);
      claim.end(share);
    }
    if (unwanted.length > 0) await this.#handBack(state, unwanted);
  }

  /** The client disconnected during the claim. */
  async #handBack(state: QueueState, tasks: readonly PulledTask[]): Promise<void> {
    const { store, observer, clock, workers } = this.options;
    const now = clock.now();
    const settlements = tasks.map((task) => handedBack(task, now));
    for (const { token } of settlements) workers.settled(state.name, token, 'handed_back');
    observer.settled(settlements, await store.settle(settlements));
    state.mayHaveWork = true;
  }
}

/** Removes from `tasks` those for this claim, in order. */
function takeShare(tasks: PulledTask[], { workerKey, request }: WaitingClaim): PulledTask[] {
  const share = tasks
    .filter(({ lease }) => lease.token.endsWith(`.${workerKey}`))
    .slice(0, request.limit);
  for (const task of share) tasks.splice(tasks.indexOf(task), 1);
  return share;
}

export interface PulledLease {
  /** Without its payload, which the worker has. */
  task: LeasedTask & { handlerRef: string };
  state: QueueState;
  breakerMark: number;
  leaseEnd: number;
}

/**
 * Leases that workers took from this server, by token. They save a read of the task when it is
 * settled here; a lease that is not found here is looked up in the store.
 */
export class PulledLeases {
  readonly #leases = new Map<string, PulledLease>();
  readonly #alarm: Alarm;
  readonly #listeners = new Set<(token: string) => void>();

  /** `isShared`: other servers extend and settle leases too. */
  constructor(
    private readonly clock: Clock,
    private readonly isShared: boolean,
  ) {
    this.#alarm = new Alarm(clock, () => this.#dropExpired());
  }

  add(task: PulledTask, state: QueueState): void {
    const { id, queue, handlerRef, attempt, redriveCount, headers, lease, options } = task;
    const breakerMark = state.breakers?.start(handlerRef) ?? 0;
    this.#leases.set(lease.token, {
      task: { id, queue, handlerRef, attempt, redriveCount, headers, lease, options },
      state,
      breakerMark,
      leaseEnd: lease.expiresAt,
    });
    this.#alarm.ringIn(lease.expiresAt - this.clock.now());
  }

  /** The lease if the task is held under it. */
  find(id: string, token: string): Readonly<PulledLease> | undefined {
    const found = this.#leases.get(token);
    return found?.task.id === id && found.leaseEnd > this.clock.now() ? found : undefined;
  }

  extended(token: string, leaseEnd: number): void {
    const found = this.#leases.get(token);
    if (found) found.leaseEnd = leaseEnd;
  }

  /** The lease was settled or has expired. */
  ended(token: string, health: TargetHealth): void {
    if (!this.#leases.has(token)) return;
    this.#drop(token, health);
    for (const listener of this.#listeners) listener(token);
  }

  #drop(token: string, health: TargetHealth): void {
    const found = this.#leases.get(token)!;
    this.#leases.delete(token);
    found.state.callEnded(found.task, found.breakerMark, health);
  }

  /**
   * Calls the listener with the token of each lease that ends on this server. Returns the
   * unsubscribe function.
   */
  onEnded(listener: (token: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.#alarm.cancel();
  }

  /** Leases that were settled on another server, or whose end was found there. */
  #dropExpired(): void {
    const now = this.clock.now();
    let next = Infinity;
    for (const [token, { leaseEnd }] of this.#leases) {
      if (leaseEnd <= now) {
        // Another server may have extended it.
        if (this.isShared) this.#drop(token, 'unknown');
        else this.ended(token, 'unknown');
      } else next = Math.min(next, leaseEnd);
    }
    if (next < Infinity) this.#alarm.ringIn(next - now);
  }
}

/** Settles a claim whose worker did not get the task. It does not count as an attempt. */
export function handedBack(task: LeasedTask, now: number): Settlement {
  const message = 'The worker disconnected before it received the task';
  return {
    id: task.id,
    token: task.lease.token,
    now,
    verdict: { kind: 'handed_back', dueAt: now },
    attempt: attemptRecord(task, { outcome: 'INTERRUPTED', now, message, traceId: null }),
  };
}
