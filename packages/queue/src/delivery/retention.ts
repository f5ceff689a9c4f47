import type { Clock } from '@millrace/kit/clock';
import type { Queue } from '../core/queue.js';
import type { TaskStore } from '../storage/port/task-store.js';
import type { DeliveryMetrics } from './state/delivery-metrics.js';

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
        this.#nextSweepAt.set(name, clock.monotonic() + pauseMs(queue));
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
function pauseMs(queue: Queue): number {
  const { succeeded_ms: succeededMs, dead_ms: deadMs } = queue.config.retention;
  const shortest = Math.min(succeededMs || Infinity, deadMs || Infinity);
  return Math.min(Math.max(shortest / 10, minPauseMs), listEveryMs);
}
