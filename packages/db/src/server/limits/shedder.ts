const leastShare = 0.05;
const cut = 0.5;
const growth = 0.1;

/** Where work waits: for the event loop or for the writer. */
export type Queue = 'loop' | 'writer';

/**
 * Decides how many calls to admit from the queue delay, like CoDel does for packets: a delay that
 * drops below the target now and then is a burst, so only a delay that stays above the target for a
 * whole interval counts. While it stays, the admitted share shrinks every interval; below the
 * target it grows again, more slowly.
 */
export class Shedder {
  #share = 1;
  #credit = 0;
  #intervalStart = 0;
  #calls = 0;
  /** Start of the current period above the target, per queue. */
  readonly #aboveSince = new Map<Queue, number>();
  readonly #lastDelay = new Map<Queue, number>();

  constructor(
    private readonly targetMs: number,
    private readonly intervalMs: number,
    /** With this few waiting calls, shedding would not help. */
    private readonly fewCalls: number,
  ) {}

  /** Admitted share of calls, from 0 to 1. */
  get share(): number {
    return this.#share;
  }

  /** Records the queue delay of one item. `inFlight` is the number of calls in flight. */
  observe(queue: Queue, delayMs: number, now: number, inFlight: number): void {
    this.#lastDelay.set(queue, delayMs);
    if (delayMs <= this.targetMs) this.#aboveSince.delete(queue);
    else if (!this.#aboveSince.has(queue)) this.#aboveSince.set(queue, now);
    const elapsedMs = now - this.#intervalStart;
    if (elapsedMs < this.intervalMs) return;
    // Queue length by Little's law (arrivals during the delay), or the calls in flight if more.
    const worst = Math.max(...this.#lastDelay.values());
    const waiting = Math.max(inFlight, (this.#calls / elapsedMs) * worst);
    if (waiting > this.fewCalls && this.#isStanding(now)) {
      this.#share = Math.max(leastShare, this.#share * cut);
    } else {
      this.#share = Math.min(1, this.#share + growth);
    }
    this.#begin(now);
  }

  /** Whether one more call is admitted. */
  admits(now: number): boolean {
    // After an idle interval nothing is waiting.
    if (now - this.#intervalStart > 4 * this.intervalMs) {
      this.#share = 1;
      this.#aboveSince.clear();
      this.#lastDelay.clear();
      this.#begin(now);
    }
    this.#calls++;
    if (this.#share === 1) return true;
    this.#credit += this.#share;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }

  #begin(now: number): void {
    this.#intervalStart = now;
    this.#calls = 0;
  }

  #isStanding(now: number): boolean {
    for (const since of this.#aboveSince.values()) {
      if (now - since >= this.intervalMs) return true;
    }
    return false;
  }
}
