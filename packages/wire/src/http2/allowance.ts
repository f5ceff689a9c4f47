import type { Clock } from '@millrace/kit/clock';

/** How often a peer may do what is allowed once but would be an attack in great numbers. */
export class Allowance {
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

  /** False when it is used up. */
  spend(count = 1): boolean {
    // Time is looked at only when it matters: most peers never use the first burst up.
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
