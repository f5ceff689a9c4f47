import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { isClaimed, type ClaimedTask } from '../core/attempt-record.js';
import type { Queue, SecretLookup } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import { withStarts } from '../core/start-window.js';
import type { TaskStore } from '../storage/task-store.js';
import { Alarm } from './alarm.js';
import { credentialsOf, type Credentials } from './credentials.js';
import { Lane, type LaneTools } from './lane.js';
import { newLeaseToken } from './lease-token.js';
import type { Run } from './run.js';
import type { Runner } from './runner.js';
import type { StoreHealth } from './store-health.js';

export interface DispatcherTools extends LaneTools {
  store: TaskStore;
  clock: Clock;
  random: Random;
  health: StoreHealth;
  runner: Runner;
  nodeId: string;
  findSecret: SecretLookup;
  isAllowed: (url: string) => boolean;
  /** Tasks that this server runs at the same time, over all queues. */
  maxRunning: number;
  /** A lease was taken that ends in so many milliseconds. */
  leaseTaken: (lastsMs: number) => void;
  /** A claim took less than it could: find out what falls due later, and when. */
  cameShort: () => void;
  /** A claim or a run has ended. */
  ended: () => void;
}

const mostPerClaim = 200;
/** On average. A store that would rather have larger claims gets them: they are in memory as a whole. */
const smallTaskBytes = 4_096;
const mostClaimsAtOnce = 32;

/**
 * Claims due tasks and hands them to the runner. It never polls: a queue is looked at when the store
 * hints at work, when a task falls due, and when a place becomes free while there was more to do.
 * Queues that have work take turns, a batch each.
 */
export class Dispatcher {
  readonly lanes = new Map<string, Lane>();
  /** Queues that can be claimed from now, in the order of their turns. */
  readonly #ready = new Set<Lane>();
  /** Those whose number of running tasks is not shown yet. */
  readonly #changed = new Set<Lane>();
  readonly #afterFailure: Alarm;
  #running = 0;
  #ending = 0;
  #claims = 0;
  #failures = 0;
  #isResting = false;
  #isStopping = false;

  constructor(private readonly tools: DispatcherTools) {
    this.#afterFailure = new Alarm(tools.clock, () => {
      this.#isResting = false;
      this.pump();
    });
  }

  /** Nothing is claimed or being claimed. */
  get isIdle(): boolean {
    return this.#claims === 0 && this.#running === 0;
  }

  lane(name: string): Lane {
    let lane = this.lanes.get(name);
    if (!lane) {
      lane = new Lane(name, this.tools, (woken) => this.wake(woken));
      this.lanes.set(name, lane);
    }
    return lane;
  }

  /** The queue may have work now. */
  wake(lane: Lane): void {
    lane.mayHaveWork = true;
    this.#consider(lane);
    this.pump();
  }

  /** Their ends are with the store, and what is claimed from now on comes after them. */
  ending(runs: Iterable<Run>): void {
    for (const run of runs) {
      run.isEnding = true;
      run.lane.ending++;
      this.#ending++;
      this.#placeIsFree(run);
    }
    this.pump();
  }

  release(run: Run): void {
    this.#free(run.lane, 1);
    if (!run.isEnding) return this.#placeIsFree(run);
    run.lane.ending--;
    this.#ending--;
  }

  stop(): void {
    this.#isStopping = true;
    this.#ready.clear();
    this.#afterFailure.cancel();
    for (const lane of this.lanes.values()) lane.alarm.cancel();
  }

  pump(): void {
    this.#showInFlight();
    for (const lane of this.#ready) {
      if (this.#isResting || this.#claims >= mostClaimsAtOnce) return;
      if (this.#running - this.#ending >= this.tools.maxRunning) return;
      this.#ready.delete(lane);
      void this.#claim(lane);
    }
  }

  /** Deletes what is known of a queue that is gone. */
  forget(lane: Lane): void {
    if (lane.running > 0) return;
    lane.alarm.cancel();
    this.#ready.delete(lane);
    this.#changed.delete(lane);
    this.lanes.delete(lane.name);
    this.tools.metrics.forget(lane.name);
  }

  #placeIsFree({ lane, queue }: Run): void {
    // The next of its group may go.
    if (queue.config.ordering.mode === 'group') lane.mayHaveWork = true;
    this.#consider(lane);
  }

  #consider(lane: Lane): void {
    if (this.#isStopping || !lane.mayHaveWork || lane.isClaiming) return;
    if (lane.isStale || (!lane.isFull && lane.allowance() > 0)) this.#ready.add(lane);
  }

  async #claim(lane: Lane): Promise<void> {
    this.#claims++;
    // Holds a place for what it may find, so that queues wait for their turns and not for luck.
    this.#running++;
    lane.isClaiming = true;
    lane.mayHaveWork = false;
    try {
      await this.#claimFrom(lane);
      this.#failures = 0;
      this.tools.health.answered('claim');
    } catch (error) {
      lane.mayHaveWork = true;
      this.#isResting = true;
      this.#afterFailure.ringIn(this.tools.health.failed('claim', error, this.#failures++));
    }
    lane.isClaiming = false;
    this.#running--;
    this.#claims--;
    this.#consider(lane);
    this.pump();
    this.tools.ended();
  }

  async #claimFrom(lane: Lane): Promise<void> {
    const queue = await this.tools.store.getQueue(lane.name);
    if (!queue) return this.forget(lane);
    lane.adopt(queue);
    const credentials = this.#credentialsFor(lane, queue);
    if (queue.paused || !credentials || this.#isStopping) return;
    const limit = this.#limitOf(lane, queue);
    if (limit <= 0) {
      lane.mayHaveWork = true;
      return;
    }
    const tasks = await this.#take(lane, queue, limit);
    for (const task of tasks) {
      if (this.#isStopping) this.tools.runner.handBack(lane, queue, task);
      else this.tools.runner.start(lane, queue, credentials, task);
    }
    if (tasks.length >= limit) {
      lane.isRateLimited = false;
      lane.mayHaveWork = true;
    } else if (!lane.mayHaveWork) {
      this.tools.cameShort();
    }
  }

  #limitOf(lane: Lane, queue: Queue): number {
    const { max_in_flight: most } = queue.config.limits;
    const places = this.tools.maxRunning - this.#running + this.#ending + 1;
    const free = most - lane.running + lane.ending;
    const claimed = lane.hasSmallTasks
      ? this.tools.store.capabilities.batchSizes?.claim
      : undefined;
    return Math.min(claimed ?? mostPerClaim, free, places, lane.allowance());
  }

  async #take(lane: Lane, queue: Queue, limit: number): Promise<(WholeTask & ClaimedTask)[]> {
    const { store, clock, random, nodeId, metrics } = this.tools;
    const { callback, lease, limits, ordering } = queue.config;
    const leaseMs = callback.timeout_ms + lease.grace_ms;
    const now = clock.now();
    this.#free(lane, -limit);
    let taken = 0;
    try {
      const tasks = await store.claimDue({
        queue: lane.name,
        limit,
        now,
        nodeId,
        leaseExpiresAt: now + leaseMs,
        newToken: () => newLeaseToken(random),
        maxInFlight: limits.max_in_flight,
        dispatchPerSecond: limits.dispatch_per_second,
        fifoGroups: ordering.mode === 'group',
      });
      const claimed = tasks.filter(isClaimed);
      taken = claimed.length;
      lane.lastClaimAt = now;
      if (taken > 0) lane.hasSmallTasks = bytesOf(claimed) <= smallTaskBytes * taken;
      if (taken > 0 && limits.dispatch_per_second > 0) {
        lane.starts = withStarts(lane.starts, now, taken, limits.dispatch_per_second);
      }
      metrics.claimBatch.observe({}, taken);
      if (taken > 0) this.tools.leaseTaken(leaseMs);
      return claimed;
    } finally {
      this.#free(lane, limit - taken);
    }
  }

  /** Undefined: the queue is held, and none of its tasks is tried. */
  #credentialsFor(lane: Lane, queue: Queue): Credentials | undefined {
    const { callback } = queue.config;
    const result = this.tools.isAllowed(callback.url)
      ? credentialsOf(queue.name, callback, this.tools.findSecret)
      : { ok: false as const, reason: 'its callback URL is not on the allowlist' };
    lane.setHold(result.ok ? undefined : result.reason);
    return result.ok ? result.credentials : undefined;
  }

  #free(lane: Lane, places: number): void {
    lane.running -= places;
    this.#running -= places;
    this.#changed.add(lane);
  }

  // For each group of changes once: a gauge is slow to set.
  #showInFlight(): void {
    for (const lane of this.#changed) {
      if (lane.isClaiming) continue;
      this.tools.metrics.setInFlight(lane.name, lane.running);
      this.#changed.delete(lane);
    }
  }
}

function bytesOf(tasks: readonly WholeTask[]): number {
  return tasks.reduce((sum, { payload }) => sum + payload.length, 0);
}
