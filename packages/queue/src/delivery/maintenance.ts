import type { Clock } from '@millrace/kit/clock';
import type { TaskStore } from '../storage/port/task-store.js';
import { Alarm } from './state/alarm.js';
import type { Planner } from './coordinator.js';
import type { Emit } from './state/events.js';
import type { LeaseExpiry } from './lease-expiry.js';
import type { Retention } from './retention.js';
import type { StoreHealth } from './state/store-health.js';

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
    if (isFullScan) this.#scanAlarm.ringIn(fullScanMs);
    if (isFullScan || jobs.has('expire')) await leaseExpiry.run();
    const { dueByQueue, upkeepAt } = await store.nextEventAt();
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
