import type { Clock } from '@millrace/kit/clock';

/** A token bucket: limits how often a peer may do something cheap for it and costly for us. */
export class TokenBucket {
  #left: number;
  #countedAt: number;

  constructor(
    private readonly clock: Clock,
    private readonly burst: number,
    private readonly perSecond: number,
  ) {
    this.#left = burst;
    this.#countedAt = clock.monotonic();
  }

  /** False when the bucket is empty. */
  tryTake(count = 1): boolean {
    // The clock is read only when needed: most peers never use up the first burst.
    if (this.#left < count) this.#refill();
    if (this.#left < count) return false;
    this.#left -= count;
    return true;
  }

  #refill(): void {
    const now = this.clock.monotonic();
    const earned = ((now - this.#countedAt) / 1_000) * this.perSecond;
    this.#left = Math.min(this.burst, this.#left + earned);
    this.#countedAt = now;
  }
}
