import type { Random } from '@millrace/kit/random';

const firstDelayMs = 50;
const maxDelayMs = 2_000;

/** Exponential backoff with jitter, so that clients do not all reconnect at the same time. */
export class Backoff {
  #delayMs = firstDelayMs;

  constructor(private readonly random: Random) {}

  /** The next delay, at least the one the server requested. */
  next(atLeastMs = 0): number {
    const delayMs = this.#delayMs;
    this.#delayMs = Math.min(delayMs * 2, maxDelayMs);
    return atLeastMs + delayMs * (0.5 + this.random.next() / 2);
  }

  /** Resets the delay after a success. */
  reset(): void {
    this.#delayMs = firstDelayMs;
  }
}
