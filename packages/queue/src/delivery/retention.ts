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

/** Few, for nothing else is done meanwhile: a task that comes in now must not wait for old ones. */
const perStep = 100;
const allQueuesEveryMs = 60_000;
const shortestPauseMs = 1_000;

/** Deletes finished tasks that have been kept long enough, and old tombstones. */
export class Retention {
  #isStopping = false;
  #allQueuesAt = -Infinity;

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
      await this.#inSteps(() => store.deleteTombstones({ now: clock.now(), limit: perStep }));
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
    await this.#inSteps(async () => {
      const now = clock.now();
      const ask = { queue, status, endedBefore: now - keptMs, now, limit: perStep };
      const deleted = await store.deleteFinished(ask);
      if (deleted > 0) metrics.tasksDeleted.inc({ queue, status }, deleted);
      return deleted;
    });
  }

  /** As long at rest as at work, so that half of the store is left to the tasks that live. */
  async #inSteps(step: () => Promise<number>): Promise<void> {
    const { clock } = this.tools;
    while (!this.#isStopping) {
      const startedAt = clock.monotonic();
      if ((await step()) < perStep) return;
      const tookMs = clock.monotonic() - startedAt;
      if (tookMs > 0) await clock.sleep(tookMs);
    }
  }
}

/** Short retentions are looked after often, long ones once a minute. */
function pauseMs(queue: Queue): number {
  const { succeeded_ms: succeededMs, dead_ms: deadMs } = queue.config.retention;
  const shortest = Math.min(succeededMs || Infinity, deadMs || Infinity);
  return Math.min(Math.max(shortest / 10, shortestPauseMs), allQueuesEveryMs);
}
