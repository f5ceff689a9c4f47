import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { DeliveryMetrics } from './delivery-metrics.js';

const minPauseMs = 50;
const maxPauseMs = 2_000;

/** Tracks which store calls fail, logs each outage once, and computes the backoff. */
export class StoreHealth {
  readonly #failing = new Set<string>();

  constructor(
    private readonly log: Log,
    private readonly random: Random,
    private readonly metrics: DeliveryMetrics,
  ) {}

  /** Returns the pause before the next try, after this many failures in a row. */
  failed(call: string, error: unknown, failures: number): number {
    this.metrics.storeFailures.inc({ call });
    if (!this.#failing.has(call)) {
      this.#failing.add(call);
      this.log.warn({ call, err: error, reason: messageOf(error) }, 'store call failed, retrying');
    }
    const full = Math.min(maxPauseMs, minPauseMs * 2 ** Math.min(failures, 20));
    return full / 2 + (full / 2) * this.random.next();
  }

  succeeded(call: string): void {
    if (!this.#failing.delete(call)) return;
    this.log.info({ call }, 'store call succeeded again');
  }
}
