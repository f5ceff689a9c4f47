import type { Random } from '@millrace/kit/random';

const firstDelayMs = 50;
const maxDelayMs = 2_000;

/**
 * How long to wait before the next try: longer each time, and never the same for all, so that the
 * clients of a server that comes back do not all arrive at once.
 */
export class Backoff {
  #delayMs = firstDelayMs;

  constructor(private readonly random: Random) {}

  /** The next delay, not shorter than the server asked for. */
  next(atLeastMs = 0): number {
    const delayMs = this.#delayMs;
    this.#delayMs = Math.min(delayMs * 2, maxDelayMs);
    return atLeastMs + delayMs * (0.5 + this.random.next() / 2);
  }

  /** After a success. */
  reset(): void {
    this.#delayMs = firstDelayMs;
  }
}
