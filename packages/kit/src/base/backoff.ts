import type { Random } from './clock-and-random.js';

export interface BackoffPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Default: 2. */
  readonly multiplier?: number;
}

/**
 * Exponential backoff after `failures` failures in a row: half of the delay is fixed, half random,
 * so that what failed together is not retried together. `chance` is in [0, 1).
 */
export function backoffMs(policy: BackoffPolicy, failures: number, chance: number): number {
  const { initialMs, maxMs, multiplier = 2 } = policy;
  const fullMs = Math.min(maxMs, initialMs * multiplier ** Math.max(0, failures - 1));
  return fullMs / 2 + (fullMs / 2) * chance;
}

/** The delays of one caller that retries until it succeeds. */
export class Backoff {
  #failures = 0;

  constructor(
    private readonly policy: BackoffPolicy,
    private readonly random: Random,
  ) {}

  /** The next delay, at least the one the server requested. */
  next(atLeastMs = 0): number {
    return atLeastMs + backoffMs(this.policy, ++this.#failures, this.random.next());
  }

  /** Resets the delay after a success. */
  reset(): void {
    this.#failures = 0;
  }
}
