import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { isClaimed } from '../../core/attempt-record.js';
import type { Queue } from '../../core/queue.js';
import { QueueChanged, type TaskStore } from '../../storage/port/task-store.js';
import type { TaskObserver } from '../../background/index.js';
import type { DeliveryMetrics } from '../state/delivery-metrics.js';
import { claimRequest, newLeaseToken } from '../state/claim-request.js';
import type { QueueState } from '../state/queue-state.js';
import { handedBack } from './handed-back.js';
import type { PulledLeases } from './pulled-leases.js';
import type { PulledTask, WaitingClaim } from '../state/waiting-claims.js';
import type { WorkerActivity } from './worker-activity.js';

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
      const limit = Math.min(wanted, maxPerClaim, state.maxTasksBySize, state.allowance());
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
    const { leaseMs, handlers } = claims[0]!.request;
    // Each token names the worker that gets its task. A store may use only the later ones, if it
    // has to repeat the claim.
    const keys = claims.flatMap(({ request, workerKey }) =>
      Array.from({ length: request.limit }, () => workerKey),
    );
    let tokens = 0;
    const now = clock.now();
    const newToken = () => `${newLeaseToken(random)}.${keys[tokens++ % keys.length]!}`;
    const tasks = await store.claimDue({
      ...claimRequest(queue, { limit, now, nodeId, leaseMs, newToken }),
      handlers,
      isImmediate: true,
    });
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
