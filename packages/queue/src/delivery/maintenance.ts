import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import type { TaskObserver } from '../background/index.js';
import {
  attemptRecord,
  type ClaimedTask,
  isClaimed,
  lastErrorOf,
  urlWithoutQuery,
  verdictOnEndedLease,
} from '../core/outcome.js';
import type { Queue } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import type { Settlement, TaskStore } from '../storage/port/task-store.js';
import type { Planner } from './coordinator.js';
import type { DeliveryMetrics } from './delivery-metrics.js';
import { Alarm, type Emit, type StoreHealth } from './queue-state.js';

export interface MaintenanceOptions {
  store: TaskStore;
  clock: Clock;
  health: StoreHealth;
  leaseExpiry: LeaseExpiry;
  retention: Retention;
  emit: Emit;
}

/**
 * Another server may have crashed, a clock may have been set, a hint may have been lost: this often
 * everything is checked, so that an expired lease is found well within five seconds.
 */
const fullScanMs = 2_000;
/** Minimum interval between two reads of due times. */
const pauseMs = 20;

type Job = 'plan' | 'expire' | 'full_scan';

/** Handles everything that falls due with time: tasks, leases, expiries and retention. */
export class Maintenance implements Planner {
  readonly #expiryAlarm: Alarm;
  readonly #scanAlarm: Alarm;
  readonly #stopping = new AbortController();
  #jobs = new Set<Job>();
  #failures = 0;
  #onFirstRun: (() => void) | undefined;
  #loop: Promise<void> | undefined;
  #sweep: Promise<void> | undefined;

  constructor(private readonly options: MaintenanceOptions) {
    this.#expiryAlarm = new Alarm(options.clock, () => this.#request('expire'));
    this.#scanAlarm = new Alarm(options.clock, () => this.#request('full_scan'));
  }

  /** Resolves after the first scan, also if it failed; then it is retried. */
  async start(): Promise<void> {
    const firstRun = new Promise<void>((resolve) => (this.#onFirstRun = resolve));
    this.#request('full_scan');
    await firstRun;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.options.retention.stop();
    this.#expiryAlarm.cancel();
    this.#scanAlarm.cancel();
    await Promise.all([this.#loop, this.#sweep]);
  }

  plan(): void {
    this.#request('plan');
  }

  leaseTaken(leaseMs: number): void {
    if (!this.#stopping.signal.aborted) this.#expiryAlarm.ringIn(leaseMs);
  }

  #request(job: Job): void {
    if (this.#stopping.signal.aborted) return;
    this.#jobs.add(job);
    this.#loop ??= this.#runJobs();
  }

  async #runJobs(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#jobs.size > 0 && !signal.aborted) {
      const jobs = this.#jobs;
      this.#jobs = new Set();
      let restMs = pauseMs;
      try {
        await this.#run(jobs);
        this.#failures = 0;
        this.options.health.succeeded('upkeep');
      } catch (error) {
        for (const job of jobs) this.#jobs.add(job);
        restMs = this.options.health.failed('upkeep', error, this.#failures++);
      }
      this.#onFirstRun?.();
      if (this.#jobs.size > 0) await this.#rest(restMs);
    }
    this.#loop = undefined;
  }

  async #run(jobs: ReadonlySet<Job>): Promise<void> {
    const { store, clock, leaseExpiry, emit } = this.options;
    const isFullScan = jobs.has('full_scan');
    const isUpkeep = isFullScan || jobs.has('expire');
    if (isFullScan) this.#scanAlarm.ringIn(fullScanMs);
    if (isUpkeep) await leaseExpiry.run();
    // Of a store in this process, every end and what follows from it are one commit.
    if (isFullScan && store.capabilities.isShared) await store.wake(clock.now());
    const { dueByQueue, upkeepAt } = await store.nextEventAt({ mayBeEarly: !isUpkeep });
    if (upkeepAt !== undefined) this.leaseTaken(Math.max(pauseMs, upkeepAt - clock.now()));
    emit({ kind: 'planned', dueByQueue, isFullScan });
    if (isFullScan) this.#sweep ??= this.#sweepRetention();
  }

  async #sweepRetention(): Promise<void> {
    const { retention, health } = this.options;
    try {
      await retention.sweep();
      health.succeeded('retention');
    } catch (error) {
      health.failed('retention', error, 0);
    }
    this.#sweep = undefined;
  }

  async #rest(delayMs: number): Promise<void> {
    const { signal } = this.#stopping;
    await this.options.clock.sleep(delayMs, signal).catch((reason: unknown) => {
      if (!signal.aborted) throw reason;
    });
  }
}

export interface LeaseExpiryOptions {
  store: TaskStore;
  observer: TaskObserver;
  clock: Clock;
  random: Random;
  onLeaseExpired: (queue: string, token: string) => void;
  emit: Emit;
}

const maxLeasesPerStep = 200;
const maxTasksPerStep = 500;

/** Ends expired leases, whichever server took them, and tasks that expired before a claim. */
export class LeaseExpiry {
  constructor(private readonly options: LeaseExpiryOptions) {}

  async run(): Promise<void> {
    await this.#expireLeases();
    await this.#expireTasks();
  }

  async #expireLeases(): Promise<void> {
    const { store, clock, observer } = this.options;
    const queues = new Map<string, Queue | undefined>();
    for (;;) {
      const now = clock.now();
      const ended = await store.endedLeases({ now, limit: maxLeasesPerStep });
      const settlements: Settlement[] = [];
      for (const task of ended.filter(isClaimed)) {
        if (!queues.has(task.queue)) queues.set(task.queue, await store.getQueue(task.queue));
        const queue = queues.get(task.queue);
        if (queue) settlements.push(this.#settlementOf(task, queue, now));
      }
      if (settlements.length === 0) return;
      const results = await store.settle(settlements);
      observer.settled(settlements, results);
      results.forEach((result, i) => {
        if (result.kind !== 'settled') return;
        const { verdict } = settlements[i]!;
        const { queue } = result.task;
        this.options.onLeaseExpired(queue, settlements[i]!.token);
        this.options.emit({ kind: 'lease_expired', queue, verdict, at: now });
      });
      if (ended.length < maxLeasesPerStep) return;
    }
  }

  #settlementOf(task: WholeTask & ClaimedTask, queue: Queue, now: number): Settlement {
    const verdict = verdictOnEndedLease({
      attempt: task.attempt,
      policy: queue.config.retry,
      options: task.options,
      now,
      chance: this.options.random.next(),
    });
    const failure = {
      errorType: 'LEASE_EXPIRED',
      message: task.lease.isAsync
        ? 'The lease ran out before the handler reported the end of its work'
        : 'The lease ran out before the attempt was settled',
      httpStatus: null,
    };
    const attempt = attemptRecord(task, {
      outcome: 'LEASE_EXPIRED',
      now,
      errorType: failure.errorType,
      message: failure.message,
      nextAttemptAt: 'dueAt' in verdict ? verdict.dueAt : null,
      url: task.lease.isAsync ? urlWithoutQuery(queue.config.callback.url) : null,
    });
    const error = lastErrorOf(failure, now);
    return { id: task.id, token: task.lease.token, now, verdict, attempt, error, expiredBy: now };
  }

  async #expireTasks(): Promise<void> {
    const { store, clock, observer, emit } = this.options;
    for (;;) {
      const expired = await store.expireTasks({ now: clock.now(), limit: maxTasksPerStep });
      for (const { queue } of expired) {
        observer.expired(queue);
        emit({ kind: 'task_expired', queue });
      }
      if (expired.length < maxTasksPerStep) return;
    }
  }
}

export interface RetentionOptions {
  store: TaskStore;
  clock: Clock;
  metrics: DeliveryMetrics;
  /** Names of the queues that this server has seen. */
  knownQueues: () => Iterable<string>;
}

/** Small, because an in-process store does nothing else during a step. */
const maxPerStep = 100;
const minPerStep = 10;
/** Steps shrink when they take longer than this, and grow when they take less than half of it. */
const longStepMs = 6;
/** A sweep rests this many times as long as it works: its steps delay the tasks that arrive. */
const restFactor = 4;
/** After this long a sweep uses the largest step and rests less, or it would never catch up. */
const patienceMs = 60_000;
const listEveryMs = 60_000;
const minPauseMs = 1_000;

/** Deletes finished tasks at the end of their retention, and old tombstones. */
export class Retention {
  /** By queue, in monotonic time. */
  readonly #nextSweepAt = new Map<string, number>();
  #isStopping = false;
  #listedAt = -Infinity;
  #perStep = minPerStep * 2;

  constructor(private readonly options: RetentionOptions) {}

  stop(): void {
    this.#isStopping = true;
  }

  /** The retention may have changed: the next sweep includes the queue. */
  queueChanged(queue: string): void {
    this.#nextSweepAt.set(queue, 0);
  }

  /** Sweeps the queues whose time has come. */
  async sweep(): Promise<void> {
    const { store, clock, knownQueues } = this.options;
    await this.#inSteps((limit) => store.deleteRetained({ now: clock.now(), limit }));
    if (clock.monotonic() - this.#listedAt >= listEveryMs) {
      // Another server may have created queues.
      for (const { name } of await store.listQueues()) this.#include(name);
      await this.#inSteps((limit) => store.deleteTombstones({ now: clock.now(), limit }));
      this.#listedAt = clock.monotonic();
    }
    for (const name of knownQueues()) this.#include(name);
    for (const [name, dueAt] of this.#nextSweepAt) {
      if (dueAt > clock.monotonic() || this.#isStopping) continue;
      const queue = await store.getQueue(name);
      if (queue) {
        await this.#sweepQueue(queue);
        this.#nextSweepAt.set(name, clock.monotonic() + sweepPauseMs(queue));
      } else this.#nextSweepAt.delete(name);
    }
  }

  #include(queue: string): void {
    if (!this.#nextSweepAt.has(queue)) this.#nextSweepAt.set(queue, 0);
  }

  async #sweepQueue(queue: Queue): Promise<void> {
    const { succeeded_ms: succeededMs, dead_ms: deadMs } = queue.config.retention;
    // 0: no limit.
    if (succeededMs > 0) await this.#delete(queue.name, 'SUCCEEDED', succeededMs);
    if (deadMs > 0) await this.#delete(queue.name, 'DEAD', deadMs);
  }

  async #delete(queue: string, status: 'SUCCEEDED' | 'DEAD', retentionMs: number): Promise<void> {
    const { store, clock, metrics } = this.options;
    await this.#inSteps(async (limit) => {
      const now = clock.now();
      const endedBefore = now - retentionMs;
      const deleted = await store.deleteFinished({ queue, status, endedBefore, now, limit });
      if (deleted > 0) metrics.tasksDeleted.inc({ queue, status }, deleted);
      return deleted;
    });
  }

  /** At least half of the store's time is left for delivery, and most of it at first. */
  async #inSteps(step: (limit: number) => Promise<number>): Promise<void> {
    const { clock, store } = this.options;
    const beganAt = clock.monotonic();
    while (!this.#isStopping) {
      const startedAt = clock.monotonic();
      const isPatient = startedAt - beganAt < patienceMs;
      const limit =
        store.capabilities.batchSizes?.deletion ?? (isPatient ? this.#perStep : maxPerStep);
      if ((await step(limit)) < limit) return;
      const tookMs = clock.monotonic() - startedAt;
      this.#adapt(tookMs);
      if (tookMs > 0) await clock.sleep(isPatient ? tookMs * restFactor : tookMs);
    }
  }

  /** Old rows are scattered: on a slow disk a large step would block new tasks. */
  #adapt(tookMs: number): void {
    if (tookMs > longStepMs) this.#perStep = Math.max(minPerStep, this.#perStep >> 1);
    else if (tookMs < longStepMs / 2) this.#perStep = Math.min(maxPerStep, this.#perStep * 2);
  }
}

/** A tenth of the shortest retention, between a second and a minute. */
function sweepPauseMs(queue: Queue): number {
  const { succeeded_ms: succeededMs, dead_ms: deadMs } = queue.config.retention;
  const shortest = Math.min(succeededMs || Infinity, deadMs || Infinity);
  return Math.min(Math.max(shortest / 10, minPauseMs), listEveryMs);
}
