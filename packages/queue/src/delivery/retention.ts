import type { Clock } from '@millrace/kit/clock';
import type { Queue } from '../core/queue.js';
import type { TaskStore } from '../storage/task-store.js';
import type { DeliveryMetrics } from './delivery-metrics.js';
import type { Lane } from './lane.js';

export interface RetentionTools {
  store: TaskStore;
  clock: Clock;
  metrics: DeliveryMetrics;
  lanes: () => Iterable<Lane>;
  lane: (queue: string) => Lane;
}

/**
 * Few, for nothing else is done meanwhile: a task that comes in now must not wait for old ones. A store
 * that is another process says itself how many.
 */
const mostPerStep = 100;
const fewestPerStep = 10;
/** Steps shrink when they take longer than this, and grow when they take less than half of it. */
const longStepMs = 6;
/** Who has had no end of deleting for so long deletes as many as may be, or would never catch up. */
const patienceMs = 60_000;
const allQueuesEveryMs = 60_000;
const shortestPauseMs = 1_000;

/** Deletes finished tasks that have been kept long enough, and old tombstones. */
export class Retention {
  #isStopping = false;
  #allQueuesAt = -Infinity;
  #perStep = fewestPerStep * 2;

  constructor(private readonly tools: RetentionTools) {}

  stop(): void {
    this.#isStopping = true;
  }

  /** Looks through those queues whose time has come. */
  async sweep(): Promise<void> {
    const { store, clock } = this.tools;
    if (clock.monotonic() - this.#allQueuesAt >= allQueuesEveryMs) {
      // Another server may have made queues that this one has never heard of.
      for (const queue of await store.listQueues()) this.tools.lane(queue.name);
      await this.#inSteps((limit) => store.deleteTombstones({ now: clock.now(), limit }));
      this.#allQueuesAt = clock.monotonic();
    }
    for (const lane of this.tools.lanes()) {
      if (lane.nextSweepAt > clock.monotonic() || this.#isStopping) continue;
      const queue = await store.getQueue(lane.name);
      if (queue) await this.#sweepQueue(queue);
      lane.nextSweepAt = clock.monotonic() + (queue ? pauseMs(queue) : allQueuesEveryMs);
    }
  }

  async #sweepQueue(queue: Queue): Promise<void> {
    const { succeeded_ms: succeededMs, dead_ms: deadMs } = queue.config.retention;
    // 0 keeps them for good.
    if (succeededMs > 0) await this.#delete(queue.name, 'SUCCEEDED', succeededMs);
    if (deadMs > 0) await this.#delete(queue.name, 'DEAD', deadMs);
  }

  async #delete(queue: string, status: 'SUCCEEDED' | 'DEAD', keptMs: number): Promise<void> {
    const { store, clock, metrics } = this.tools;
    await this.#inSteps(async (limit) => {
      const now = clock.now();
      const ask = { queue, status, endedBefore: now - keptMs, now, limit };
      const deleted = await store.deleteFinished(ask);
      if (deleted > 0) metrics.tasksDeleted.inc({ queue, status }, deleted);
      return deleted;
    });
  }

  /** As long at rest as at work, so that half of the store is left to the tasks that live. */
  async #inSteps(step: (limit: number) => Promise<number>): Promise<void> {
    const { clock, store } = this.tools;
    const beganAt = clock.monotonic();
    while (!this.#isStopping) {
      const startedAt = clock.monotonic();
      const isPatient = startedAt - beganAt < patienceMs;
      const limit =
        store.capabilities.batchSizes?.deletion ?? (isPatient ? this.#perStep : mostPerStep);
      if ((await step(limit)) < limit) return;
      const tookMs = clock.monotonic() - startedAt;
      this.#adapt(tookMs);
      if (tookMs > 0) await clock.sleep(tookMs);
    }
  }

  /** Old rows lie scattered, and a disk that is slow with them holds up whoever comes meanwhile. */
  #adapt(tookMs: number): void {
    if (tookMs > longStepMs) this.#perStep = Math.max(fewestPerStep, this.#perStep >> 1);
    else if (tookMs < longStepMs / 2) this.#perStep = Math.min(mostPerStep, this.#perStep * 2);
  }
}

/** Short retentions are looked after often, long ones once a minute. */
function pauseMs(queue: Queue): number {
  const { succeeded_ms: succeededMs, dead_ms: deadMs } = queue.config.retention;
  const shortest = Math.min(succeededMs || Infinity, deadMs || Infinity);
  return Math.min(Math.max(shortest / 10, shortestPauseMs), allQueuesEveryMs);
}
