import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { DeliveryMetrics } from './delivery-metrics.js';

const shortestPauseMs = 50;
const longestPauseMs = 2_000;

/** Which calls of the store fail, told to the log once for each outage, and how long to wait. */
export class StoreHealth {
  readonly #failing = new Set<string>();

  constructor(
    private readonly log: Log,
    private readonly random: Random,
    private readonly metrics: DeliveryMetrics,
  ) {}

  /** Returns the pause before the next try, after so many failures in a row. */
  failed(call: string, error: unknown, failures: number): number {
    this.metrics.storeFailures.inc({ call });
    if (!this.#failing.has(call)) {
      this.#failing.add(call);
      const message = `the store fails to ${call}, trying again: ${messageOf(error)}`;
      this.log.warn({ call, err: error }, message);
    }
    const full = Math.min(longestPauseMs, shortestPauseMs * 2 ** Math.min(failures, 20));
    return full / 2 + (full / 2) * this.random.next();
  }

  answered(call: string): void {
    if (!this.#failing.delete(call)) return;
    this.log.info({ call }, `the store answers to ${call} again`);
  }
}
