import type { Random } from '@millrace/kit/random';
import { type ClaimedTask, interrupted, isClaimed } from '../core/outcome.js';
import type { Queue, SecretLookup } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import { traceOf } from '../core/callback-headers.js';
import {
  QueueChanged,
  StorageUnavailable,
  type Settlement,
  type SettleResult,
  type TaskStore,
} from '../storage/port/task-store.js';
import type { TaskObserver } from '../background/index.js';
import {
  Alarm,
  claimInParts,
  claimRequest,
  type DeliveryEvent,
  hasGroupLimit,
  newLeaseToken,
  QueueState,
  type QueueStateTools,
  type StoreHealth,
} from './queue-state.js';
import { type CallbackOptions, type CallbackResult, handOver, sendCallback } from './callback.js';
import { type Credentials, credentialsFor } from './callback-request.js';
import type { DeliveryMetrics } from './delivery-metrics.js';
import { InFlightRegistry, InFlightTask } from './in-flight.js';
import type { PullServer } from './pull-server.js';
import type { WaitingClaim } from './waiting-claims.js';
import { settledVerdict, settlementOf } from './handler-reports.js';

export interface CoordinatorOptions extends CallbackOptions {
  store: TaskStore;
  observer: TaskObserver;
  random: Random;
  metrics: DeliveryMetrics;
  pullServer: PullServer;
  health: StoreHealth;
  nodeId: string;
  findSecret: SecretLookup;
  isAllowed: (url: string) => boolean;
  /** Tasks that this server runs at the same time, over all queues. */
  maxRunning: number;
  breakerChanged: QueueStateTools['breakerChanged'];
}

/** Calls from the coordinator to the maintenance loop. */
export interface Planner {
  /** Look up when each queue is next due. */
  plan(): void;
  /** A lease was taken that lasts this long. */
  leaseTaken(leaseMs: number): void;
}

/** A finished callback whose result the store does not have yet. */
interface Finished {
  entry: InFlightTask;
  settlement: Settlement;
}

type Claimed = WholeTask & ClaimedTask;

const maxPerClaim = 200;
const maxConcurrentClaims = 32;
const maxPerSettle = 500;
/** An interrupted task waits this long, so that a broken connection cannot cause a busy loop. */
const interruptedWaitMs = 1_000;

/**
 * Owns the state of delivery. Events change that state; then `#dispatch` claims from the queues
 * that have work, in turn. There is no polling.
 *
 * One task passes through the methods from top to bottom:
 * `handle` → `#dispatch` → `#claim` → `#start` → `#finish` → `#settle` → `#release`.
 */
export class Coordinator {
  readonly queues = new Map<string, QueueState>();
  readonly inFlight = new InFlightRegistry();
  /** Queues that can be claimed from, in the order of their turns. */
  readonly #ready = new Set<QueueState>();
  /** Queues whose gauge of running tasks is outdated. */
  readonly #outdatedGauges = new Set<QueueState>();
  readonly #storeRetry: Alarm;
  #finished: Finished[] = [];
  /** Tasks claimed or being claimed, and one for each claim in progress. */
  #running = 0;
  /** How many of those are being settled and take up no capacity. */
  #settling = 0;
  #claims = 0;
  #claimFailures = 0;
  #isStoreAway = false;
  #isStopping = false;
  #hasGivenUp = false;
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly options: CoordinatorOptions,
    private readonly planner: Planner,
  ) {
    this.#storeRetry = new Alarm(options.clock, () => this.handle({ kind: 'store_back' }));
  }

  queue(name: string): QueueState {
    let state = this.queues.get(name);
    if (!state) {
      state = new QueueState(name, this.options, () => this.handle({ kind: 'due', queue: name }));
      this.queues.set(name, state);
    }
    return state;
  }

  handle(event: DeliveryEvent): void {
    switch (event.kind) {
      case 'submitted':
        this.#wake(this.queue(event.queue), event.handlers);
        break;
      case 'due':
        this.#wake(this.queue(event.queue));
        break;
      case 'config_changed':
        this.queue(event.queue).isStale = true;
        this.#wake(this.queue(event.queue));
        break;
      case 'lease_expired':
        this.queue(event.queue).series.leaseExpiries.inc();
        this.queue(event.queue).settled(event.verdict, event.at);
        this.#wake(this.queue(event.queue));
        break;
      case 'settled':
        // The store has reported work that this made possible; the circuit breaker may have closed.
        this.queue(event.queue).settled(event.verdict, event.at);
        this.#considerClaim(this.queue(event.queue));
        break;
      case 'task_expired':
        this.queue(event.queue).series.dead('EXPIRED').inc();
        this.#wake(this.queue(event.queue));
        break;
      case 'cancelled':
        this.queue(event.queue).series.dead('CANCELLED').inc(event.count);
        this.#wake(this.queue(event.queue));
        break;
      case 'planned':
        this.#plan(event.dueByQueue, event.isFullScan);
        break;
      case 'store_away':
        this.#isStoreAway = true;
        this.#storeRetry.ringIn(event.retryInMs);
        break;
      case 'store_back':
        this.#isStoreAway = false;
        break;
      case 'stop':
        this.#stop();
        break;
    }
    this.#dispatch();
  }

  /** Adds a claim of a worker; it ends at once while the server stops. */
  addClaim(queue: string, claim: WaitingClaim): void {
    if (this.#isStopping) return claim.end([]);
    const state = this.queue(queue);
    // Most workers claim again with each task that they get, although nothing more is due.
    if (state.waiting.add(claim)) state.mayHaveWork = true;
    this.#considerClaim(state);
    this.#dispatch();
    if (!state.isClaiming && !this.#ready.has(state)) state.waiting.endUnservable();
  }

  removeClaim(queue: string, claim: WaitingClaim): void {
    this.queues.get(queue)?.waiting.remove(claim);
  }

  /** Resolves after `stop`, once nothing is claimed or being claimed. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#noticeIdle();
    });
  }

  /** Retries no failed settlement: tasks that are left wait for the end of their leases. */
  giveUp(): void {
    this.#hasGivenUp = true;
  }

  /** `handlers`: those that got work; undefined: any. */
  #wake(state: QueueState, handlers?: ReadonlySet<string>): void {
    state.mayHaveWork = true;
    state.waiting.wake(handlers);
    this.#considerClaim(state);
  }

  #considerClaim(state: QueueState): void {
    if (!this.#isStopping && state.canClaim) this.#ready.add(state);
  }

  #plan(dueByQueue: ReadonlyMap<string, number>, isFullScan: boolean): void {
    if (this.#isStopping) return;
    const now = this.options.clock.now();
    for (const name of dueByQueue.keys()) this.queue(name);
    for (const state of this.queues.values()) {
      if (state.plan(dueByQueue.get(state.name), now, isFullScan)) this.#wake(state);
    }
  }

  #stop(): void {
    this.#isStopping = true;
    this.#ready.clear();
    this.#storeRetry.cancel();
    for (const state of this.queues.values()) {
      state.alarm.cancel();
      state.waiting.end();
    }
  }

  /** Starts a claim for each ready queue, in turn, while there is capacity. */
  #dispatch(): void {
    this.#updateGauges();
    for (const state of this.#ready) {
      if (this.#isStoreAway || this.#claims >= maxConcurrentClaims) return;
      if (this.#running - this.#settling >= this.options.maxRunning) return;
      this.#ready.delete(state);
      void this.#claim(state);
    }
  }

  async #claim(state: QueueState): Promise<void> {
    this.#claims++;
    // Reserves capacity for the claim, so that queues get it in turn.
    this.#running++;
    state.isClaiming = true;
    state.mayHaveWork = false;
    try {
      await this.#claimFrom(state);
      this.#claimFailures = 0;
      this.options.health.succeeded('claim');
    } catch (error) {
      state.mayHaveWork = true;
      if (error instanceof QueueChanged) state.isStale = true;
      else this.#claimFailed(error);
    }
    state.isClaiming = false;
    this.#running--;
    this.#claims--;
    this.#considerClaim(state);
    this.#dispatch();
    this.#noticeIdle();
  }

  #claimFailed(error: unknown): void {
    const retryInMs = this.options.health.failed('claim', error, this.#claimFailures++);
    this.handle({ kind: 'store_away', retryInMs });
  }

  async #claimFrom(state: QueueState): Promise<void> {
    const { store, isAllowed, findSecret } = this.options;
    // Not at once in any case: the store may be in the middle of the call that made work.
    const queue = await (state.activeQueue ?? store.getQueue(state.name));
    if (!queue) return this.#forget(state);
    state.update(queue);
    if (queue.config.callback.protocol === 'pull') return this.#serveWorkers(state, queue);
    state.waiting.end();
    const found = credentialsFor(queue, { isAllowed, findSecret });
    state.setHold(found.ok ? undefined : found.reason);
    if (queue.paused || !found.ok || this.#isStopping) return;
    const limit = this.#claimLimit(state, queue);
    if (limit <= 0) {
      state.mayHaveWork = true;
      return;
    }
    const tasks = await this.#take(state, queue, limit);
    for (const task of tasks) this.#start(state, queue, found.credentials, task);
    if (tasks.length >= limit) {
      state.isRateLimited = false;
      state.mayHaveWork = true;
    } else if (!state.mayHaveWork) {
      // Everything due was taken, or a limit blocks the rest.
      this.planner.plan();
    }
  }

  async #serveWorkers(state: QueueState, queue: Queue): Promise<void> {
    state.setHold(undefined);
    if (queue.paused || this.#isStopping) return state.waiting.endUnservable();
    const isShort = await this.options.pullServer.serve(state, queue);
    if (isShort && !state.mayHaveWork) this.planner.plan();
  }

  #claimLimit(state: QueueState, queue: Queue): number {
    const { store, maxRunning } = this.options;
    const batch = state.hasSmallTasks ? store.capabilities.batchSizes?.claim : undefined;
    const ofQueue = queue.config.limits.max_in_flight - state.running + state.settling;
    // This claim itself counts as one.
    const ofServer = maxRunning - this.#running + this.#settling + 1;
    return Math.min(batch ?? maxPerClaim, ofQueue, ofServer);
  }

  async #take(state: QueueState, queue: Queue, limit: number): Promise<Claimed[]> {
    const { store, clock, random, nodeId, metrics } = this.options;
    const { callback, lease } = queue.config;
    const leaseMs = callback.timeout_ms + lease.grace_ms;
    const now = clock.now();
    this.#reserve(state, limit);
    let taken = 0;
    try {
      const newToken = () => newLeaseToken(random);
      const tasks = await claimInParts(state, { limit }, ({ limit: max, ...filter }) =>
        store.claimDue({
          ...claimRequest(queue, { limit: max, now, nodeId, leaseMs, newToken }),
          handlers: filter.handlers,
          excludedHandlers: filter.excludedHandlers,
        }),
      );
      const claimed = tasks.filter(isClaimed);
      taken = claimed.length;
      state.claimed(claimed, now);
      metrics.claimBatch.observe({}, taken);
      if (taken > 0) this.planner.leaseTaken(leaseMs);
      return claimed;
    } finally {
      this.#reserve(state, taken - limit);
    }
  }

  /** Sends the callback; a task claimed while the server began to stop is handed back. */
  #start(state: QueueState, queue: Queue, credentials: Credentials, task: Claimed): void {
    const { clock } = this.options;
    const mark = state.breakers?.start(task.handlerRef) ?? 0;
    const trace = traceOf(task.headers, task.lease.token);
    const entry = new InFlightTask(state, queue, task, trace, mark);
    this.inFlight.add(entry);
    if (this.#isStopping) return this.#finish(entry, { outcome: interrupted(), wasSent: false });
    const now = clock.now();
    // The claim took longer than its lease lasts: the lease expiry settles the task.
    if (entry.leaseEnd <= now) return this.#abandon(entry);
    void sendCallback(entry, { credentials, now }, this.options).then((result) =>
      this.#finish(entry, result),
    );
  }

  #finish(entry: InFlightTask, result: CallbackResult): void {
    const { outcome, wasSent, stored, suspension } = result;
    const { clock, random } = this.options;
    entry.state.series.delivery(outcome.kind).inc();
    entry.state.callEnded(entry.task, entry.breakerMark, outcome.health);
    if (outcome.kind === 'async') return void this.#handOver(entry);
    const now = clock.now();
    const settlement = settlementOf(entry, {
      outcome,
      wasSent,
      now,
      stored,
      suspension,
      chance: outcome.kind === 'failed' ? random.next() : 0,
      handBackAt: this.#isStopping ? now : now + interruptedWaitMs,
    });
    this.#finished.push({ entry, settlement });
    // Callbacks that end in one turn of the event loop are settled in one call.
    if (this.#finished.length === 1) setImmediate(() => this.#settleFinished());
  }

  #settleFinished(): void {
    const all = this.#finished;
    this.#finished = [];
    for (let from = 0; from < all.length; from += maxPerSettle) {
      void this.#settle(all.slice(from, from + maxPerSettle), 0);
    }
  }

  /** Settling can be repeated, so a failed call is retried until the lease ends. */
  async #settle(batch: readonly Finished[], failures: number): Promise<void> {
    const { store, observer, clock, health } = this.options;
    const isOver = this.#hasGivenUp && failures > 0;
    let current: readonly Finished[] = isOver ? [] : batch;
    if (isOver) for (const { entry } of batch) this.#abandon(entry);
    try {
      const now = clock.now();
      const isHeld = ({ entry }: Finished) => entry.leaseEnd > now;
      if (!current.every(isHeld)) current = await this.#heldOf(current);
      if (current.length > 0) {
        const settlements = current.map(({ settlement }) => settlement);
        const settling = store.settle(settlements);
        if (failures === 0 && store.capabilities.claimsFollowSettlements)
          this.#settlingNow(current);
        const results = await settling;
        observer.settled(settlements, results);
        this.#settled(current, results);
        health.succeeded('settle');
      }
    } catch (error) {
      return this.#settleAgain(current, failures, error);
    }
    // A claim for capacity that was not free yet may have taken less than it could.
    if (failures > 0) for (const { entry } of current) this.#wake(entry.state);
    this.#dispatch();
    this.#noticeIdle();
  }

  /** Abandons those whose lease has expired. */
  async #heldOf(batch: readonly Finished[]): Promise<readonly Finished[]> {
    const { store, clock } = this.options;
    const held = await Promise.all(batch.map(({ entry }) => entry.isHeld(store, clock)));
    batch.forEach(({ entry }, i) => held[i] || this.#abandon(entry));
    return batch.filter((_, i) => held[i]);
  }

  async #settleAgain(batch: readonly Finished[], failures: number, error: unknown): Promise<void> {
    const { clock, health } = this.options;
    await clock.sleep(health.failed('settle', error, failures));
    // One settlement that the store rejects must not block the others.
    if (error instanceof StorageUnavailable || batch.length === 1) {
      return this.#settle(batch, failures + 1);
    }
    await Promise.all(batch.map((each) => this.#settle([each], failures + 1)));
  }

  /** The store runs every later claim after these settlements: their capacity is free. */
  #settlingNow(batch: readonly Finished[]): void {
    for (const { entry } of batch) {
      entry.isSettling = true;
      entry.state.settling++;
      this.#settling++;
      this.#capacityFreed(entry);
    }
    this.#dispatch();
  }

  #settled(batch: readonly Finished[], results: readonly SettleResult[]): void {
    const now = this.options.clock.now();
    batch.forEach(({ entry, settlement }, i) => {
      const { kind } = results[i]!;
      const { task } = results[i]!;
      if (kind === 'settled') entry.state.settled(settledVerdict(settlement, task!), now);
      else if (kind === 'lease_lost') entry.state.series.lateAnswers.inc();
      this.#release(entry);
    });
  }

  async #handOver(entry: InFlightTask): Promise<void> {
    await handOver(entry, { ...this.options, hasGivenUp: () => this.#hasGivenUp });
    this.#release(entry);
    this.#dispatch();
    this.#noticeIdle();
  }

  /** The lease ended before the store had the result. */
  #abandon(entry: InFlightTask): void {
    entry.state.series.lateAnswers.inc();
    this.#release(entry);
    this.#noticeIdle();
  }

  #release(entry: InFlightTask): void {
    this.inFlight.remove(entry);
    this.#reserve(entry.state, -1);
    if (!entry.isSettling) return this.#capacityFreed(entry);
    entry.state.settling--;
    this.#settling--;
  }

  #capacityFreed({ state, queue }: InFlightTask): void {
    // The next task of its group may start.
    if (hasGroupLimit(queue.config)) state.mayHaveWork = true;
    this.#considerClaim(state);
  }

  #reserve(state: QueueState, count: number): void {
    state.running += count;
    this.#running += count;
    this.#outdatedGauges.add(state);
  }

  /** Drops the state of a deleted queue. */
  #forget(state: QueueState): void {
    if (state.running > 0) return;
    state.alarm.cancel();
    state.waiting.end();
    this.#ready.delete(state);
    this.#outdatedGauges.delete(state);
    this.queues.delete(state.name);
    this.options.metrics.forget(state.name);
  }

  // Once per turn and not per task: setting a gauge is slow.
  #updateGauges(): void {
    for (const state of this.#outdatedGauges) {
      if (state.isClaiming) continue;
      this.options.metrics.setInFlight(state.name, state.running);
      this.#outdatedGauges.delete(state);
    }
  }

  #noticeIdle(): void {
    if (this.#onIdle && this.#claims === 0 && this.#running === 0) this.#onIdle();
  }
}
