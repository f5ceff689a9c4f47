const leastShare = 0.05;
const cut = 0.5;
const growth = 0.1;

/** Where work waits: for the event loop to come to it, or for its turn in the writer. */
export type Queue = 'loop' | 'writer';

/**
 * Decides how much work to take in, by how long work waits before it is begun.
 *
 * As CoDel does for packets: a delay that falls below the target now and then is that of a burst,
 * so only one that stayed above it for a whole interval counts. While it stays, the share of calls
 * taken in shrinks with each interval; when it is below, the share grows again, more slowly.
 */
export class Shedder {
  #share = 1;
  #credit = 0;
  #intervalStart = 0;
  #calls = 0;
  /** Since when the delay of a queue has been above the target. */
  readonly #aboveSince = new Map<Queue, number>();
  readonly #lastDelay = new Map<Queue, number>();

  constructor(
    private readonly targetMs: number,
    private readonly intervalMs: number,
    /** So few calls that wait are never the trouble: to shed them would not help. */
    private readonly fewCalls: number,
  ) {}

  /** The share of calls that is taken in, from 0 to 1. */
  get share(): number {
    return this.#share;
  }

  /** One piece of work waited this long. `inFlight`: calls that are under way. */
  observe(queue: Queue, delayMs: number, now: number, inFlight: number): void {
    this.#lastDelay.set(queue, delayMs);
    if (delayMs <= this.targetMs) this.#aboveSince.delete(queue);
    else if (!this.#aboveSince.has(queue)) this.#aboveSince.set(queue, now);
    const elapsedMs = now - this.#intervalStart;
    if (elapsedMs < this.intervalMs) return;
    // As many calls wait as come in while one waits (Little's law), or are in flight.
    const worst = Math.max(...this.#lastDelay.values());
    const waiting = Math.max(inFlight, (this.#calls / elapsedMs) * worst);
    if (waiting > this.fewCalls && this.#isStanding(now)) {
      this.#share = Math.max(leastShare, this.#share * cut);
    } else {
      this.#share = Math.min(1, this.#share + growth);
    }
    this.#begin(now);
  }

  /** True when one more call may be taken in. */
  admits(now: number): boolean {
    // Nobody came for a while, so nobody waits.
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
