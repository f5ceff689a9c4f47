// Allows for rounding errors of fractional times.
const tolerance = 1e-6;

/**
 * Token bucket: `perSecond` on average, with bursts of at most `burst`, by default one second's
 * worth. Times are monotonic milliseconds.
 */
export class TokenBucket {
  #perSecond: number;
  #capacity: number;
  #tokens: number;
  #filledAt: number;

  constructor(perSecond: number, now: number, burst = Math.max(1, perSecond)) {
    this.#perSecond = perSecond;
    this.#capacity = burst;
    this.#tokens = burst;
    this.#filledAt = now;
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  /** A changed rate keeps the remaining tokens, up to the new capacity of one second's worth. */
  setRate(perSecond: number, now: number): void {
    if (perSecond === this.#perSecond) return;
    this.#fill(now);
    this.#perSecond = perSecond;
    this.#capacity = Math.max(1, perSecond);
    this.#tokens = Math.min(this.#tokens, this.#capacity);
  }

  /** How many of `wanted` tokens are available. */
  peek(wanted: number, now: number): number {
    this.#fill(now);
    return Math.min(wanted, Math.floor(this.#tokens + tolerance));
  }

  take(count: number): void {
    this.#tokens -= count;
  }

  /** False when there are too few. The clock is read only then: most peers never use up a burst. */
  tryTake(count: number, clock: { monotonic(): number }): boolean {
    if (this.#tokens < count) this.#fill(clock.monotonic());
    if (this.#tokens < count) return false;
    this.#tokens -= count;
    return true;
  }

  /** Time until one more token is available. */
  waitMs(now: number): number {
    this.#fill(now);
    return this.#tokens + tolerance >= 1 ? 0 : ((1 - this.#tokens) / this.#perSecond) * 1000;
  }

  /** True if the bucket is full and can be dropped. */
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
