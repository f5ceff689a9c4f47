import type { Log } from '@millrace/kit/log';
import type { Connections } from '../connection/connections.js';
import { sweepMarks } from '../statements/low-water-marks.sql.js';

interface QueueSweep {
  /** Monotonic time of the next sweep; Infinity while one runs. */
  nextAt: number;
  hasWarned: boolean;
}

const minIntervalMs = 1_000;
/** A sweep runs for at most a twentieth of the time. */
const restFactor = 20;
const maxSweepMs = 30_000;
const slowMs = 1_000;
const slowMessage =
  'dead rows slow down claims; a long transaction may hold them, see backend_xmin in ' +
  'pg_stat_activity and pg_replication_slots';

/**
 * Lowers low-water marks to tasks that became ready below them because their commit took long.
 * Runs beside the claims, which do not wait for it.
 */
export class LowWaterMarkSweeper {
  readonly #queues = new Map<string, QueueSweep>();
  readonly #running = new Set<Promise<void>>();

  constructor(
    private readonly connections: Pick<Connections, 'queryWithin'>,
    private readonly monotonic: () => number,
    private readonly log: Log,
  ) {}

  sweepIfDue(queue: string): void {
    let sweep = this.#queues.get(queue);
    if (!sweep) {
      sweep = { nextAt: -Infinity, hasWarned: false };
      this.#queues.set(queue, sweep);
    }
    if (this.monotonic() < sweep.nextAt) return;
    sweep.nextAt = Infinity;
    const running = this.#sweep(queue, sweep).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  forget(queue: string): void {
    this.#queues.delete(queue);
  }

  async close(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #sweep(queue: string, sweep: QueueSweep): Promise<void> {
    const startedAt = this.monotonic();
    try {
      await this.connections.queryWithin(maxSweepMs, sweepMarks, [queue]);
    } catch (error) {
      this.log.debug({ err: error, queue }, 'low-water mark sweep failed');
    }
    const tookMs = this.monotonic() - startedAt;
    const isSlow = tookMs > slowMs;
    if (isSlow && !sweep.hasWarned) this.log.warn({ queue, took_ms: tookMs }, slowMessage);
    sweep.hasWarned = isSlow;
    sweep.nextAt = this.monotonic() + Math.max(minIntervalMs, restFactor * tookMs);
  }
}
