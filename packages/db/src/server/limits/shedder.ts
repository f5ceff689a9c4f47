// Long enough for a burst to pass: only a delay that stays is a queue that grows.
const intervalMs = 500;
const leastShare = 0.05;
const cut = 0.5;
const growth = 0.1;

/** Where work waits: for the event loop to come to it, or for its turn in the writer. */
export type Queue = 'loop' | 'writer';

/**
 * Decides how much work to take in, by how long work waits before it is begun.
 *
 * As CoDel does for packets: a queue that is empty now and then is a good queue, so only the
 * smallest delay of an interval counts. While that stays above the target, the share of calls
 * taken in shrinks with each interval; when it is below, the share grows again, more slowly.
 */
export class Shedder {
  #share = 1;
  #credit = 0;
  #intervalStart = 0;
  #calls = 0;
  readonly #smallest = new Map<Queue, number>();

  constructor(
    private readonly targetMs: number,
    /** So few calls that wait are never the trouble: to shed them would not help. */
    private readonly fewCalls: number,
  ) {}

  /** The share of calls that is taken in, from 0 to 1. */
  get share(): number {
    return this.#share;
  }

  /** One piece of work waited this long. `inFlight`: calls that are under way. */
  observe(queue: Queue, delayMs: number, now: number, inFlight: number): void {
    this.#smallest.set(queue, Math.min(this.#smallest.get(queue) ?? Infinity, delayMs));
    const elapsedMs = now - this.#intervalStart;
    if (elapsedMs < intervalMs) return;
    const worst = Math.max(...this.#smallest.values());
    // As many calls wait as come in while one waits (Little's law), or are under way.
    const waiting = Math.max(inFlight, (this.#calls / elapsedMs) * worst);
    if (waiting > this.fewCalls && worst > this.targetMs) {
      this.#share = Math.max(leastShare, this.#share * cut);
    } else {
      this.#share = Math.min(1, this.#share + growth);
    }
    this.#begin(now);
  }

  /** True when one more call may be taken in. */
  admits(now: number): boolean {
    // Nobody came for a while, so nobody waits.
    if (now - this.#intervalStart > 4 * intervalMs) {
      this.#share = 1;
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
    this.#smallest.clear();
    this.#calls = 0;
  }
}
