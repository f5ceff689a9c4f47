import type { TurnKind } from '@millrace/engine/core/loop-turns';

const leastShare = 0.05;
const cut = 0.5;
const growth = 0.1;

/** Where work waits: for the event loop, for the writer, or for the turns that queries share. */
export type Queue = 'loop' | 'writer' | TurnKind;

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
  /** Start of the current period above the target, per queue. */
  readonly #aboveSince = new Map<Queue, number>();

  constructor(
    private readonly targetMs: number,
    private readonly intervalMs: number,
  ) {}

  /** Admitted share of calls, from 0 to 1. */
  get share(): number {
    return this.#share;
  }

  /** Records the queue delay of one item. */
  observe(queue: Queue, delayMs: number, now: number): void {
    if (delayMs <= this.targetMs) this.#aboveSince.delete(queue);
    else if (!this.#aboveSince.has(queue)) this.#aboveSince.set(queue, now);
    if (now - this.#intervalStart < this.intervalMs) return;
    this.#share = this.#isStanding(now)
      ? Math.max(leastShare, this.#share * cut)
      : Math.min(1, this.#share + growth);
    this.#intervalStart = now;
  }

  /** Whether one more call is admitted. */
  admits(now: number): boolean {
    // After an idle interval nothing is waiting.
    if (now - this.#intervalStart > 4 * this.intervalMs) {
      this.#share = 1;
      this.#aboveSince.clear();
      this.#intervalStart = now;
    }
    if (this.#share === 1) return true;
    this.#credit += this.#share;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }

  #isStanding(now: number): boolean {
    for (const since of this.#aboveSince.values()) {
      if (now - since >= this.intervalMs) return true;
    }
    return false;
  }
}
