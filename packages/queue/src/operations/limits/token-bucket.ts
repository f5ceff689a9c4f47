// Times have fractions, so half a second later may be a hair less: the token is there all the same.
const dust = 1e-6;

/**
 * Lets `perSecond` through on average and at most a second's worth at once. Time arrives as
 * monotonic milliseconds.
 */
export class TokenBucket {
  #perSecond = 0;
  #capacity = 0;
  #tokens = 0;
  #filledAt: number;

  constructor(perSecond: number, now: number) {
    this.#filledAt = now;
    this.setRate(perSecond, now);
    this.#tokens = this.#capacity;
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  /** A changed rate keeps what is left, as far as it fits. */
  setRate(perSecond: number, now: number): void {
    if (perSecond === this.#perSecond) return;
    this.#fill(now);
    this.#perSecond = perSecond;
    this.#capacity = Math.max(1, perSecond);
    this.#tokens = Math.min(this.#tokens, this.#capacity);
  }

  /** How many of `wanted` may go. */
  peek(wanted: number, now: number): number {
    this.#fill(now);
    return Math.min(wanted, Math.floor(this.#tokens + dust));
  }

  take(count: number): void {
    this.#tokens -= count;
  }

  /** How long until one more may go. */
  waitMs(now: number): number {
    this.#fill(now);
    return this.#tokens + dust >= 1 ? 0 : ((1 - this.#tokens) / this.#perSecond) * 1000;
  }

  /** True when it is as good as new, and may be forgotten. */
  isFull(now: number): boolean {
    this.#fill(now);
    return this.#tokens >= this.#capacity;
  }

  #fill(now: number): void {
    const elapsedMs = Math.max(0, now - this.#filledAt);
    this.#filledAt = now;
    this.#tokens = Math.min(this.#capacity, this.#tokens + (elapsedMs * this.#perSecond) / 1000);
  }
}
