/** Transactions that take longer to commit are found by the next whole scan. */
const slackMs = 10_000;
const wholeIntervalMs = 60_000;
const restFactor = 100;

/**
 * Where to start a scan over times. Everything before was handled, but stays in the index until
 * vacuum. Now and then a scan is whole: it starts at 0.
 */
export class LowWaterMark {
  #from = 0;
  #lowest = Infinity;
  /** Monotonic time of the next whole scan. */
  #wholeAt = -Infinity;

  constructor(private readonly monotonic: () => number) {}

  get from(): number {
    return this.#from;
  }

  /** Where the next scan starts, if it may be a whole one. */
  begin(): number {
    this.#lowest = Infinity;
    const now = this.monotonic();
    if (now < this.#wholeAt) return this.#from;
    this.#wholeAt = now + wholeIntervalMs;
    return 0;
  }

  /** The slower a whole scan was, the later the next one. */
  tookWhole(tookMs: number): void {
    this.#wholeAt = this.monotonic() + Math.max(wholeIntervalMs, restFactor * tookMs);
  }

  /** Everything up to this time was handled. */
  raise(upTo: number): void {
    this.#from = Math.max(0, Math.min(upTo - slackMs, this.#lowest));
  }

  /** There is something to handle at this time. */
  lower(at: number): void {
    this.#from = Math.min(this.#from, at);
    this.#lowest = Math.min(this.#lowest, at);
  }
}
