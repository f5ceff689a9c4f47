import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock } from '@millrace/kit/clock';
import { hundredths } from './machine.js';

/** Sampling resolution: each sample wakes the process, without running JavaScript. */
const intervalMs = 200;
const windowMs = 15_000;
/** Minimum number of samples for a percentile. */
const fewest = 10;

type Histogram = Pick<
  ReturnType<typeof monitorEventLoopDelay>,
  'count' | 'percentile' | 'reset' | 'enable' | 'disable'
>;

/** Event loop delay: the 99th percentile of about the last 15 seconds. */
export class LoopDelay {
  readonly #histogram: Histogram;
  #since: number;
  #last: number | null = null;

  constructor(
    private readonly clock: Clock,
    histogram: Histogram = monitorEventLoopDelay({ resolution: intervalMs }),
  ) {
    this.#histogram = histogram;
    this.#since = clock.monotonic();
    histogram.enable();
  }

  p99Ms(): number | null {
    if (this.#histogram.count < fewest) return this.#last;
    // The histogram measures the time between two samples.
    const value = hundredths(Math.max(0, this.#histogram.percentile(99) / 1e6 - intervalMs));
    const now = this.clock.monotonic();
    if (now - this.#since >= windowMs) {
      this.#since = now;
      this.#last = value;
      this.#histogram.reset();
    }
    return value;
  }

  close(): void {
    this.#histogram.disable();
  }
}
