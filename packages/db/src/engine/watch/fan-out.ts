import type { Timer } from '@millrace/kit/clock';
import type { Core } from '../core.js';

/** A round shorter than this is nobody's burden. */
const shortMs = 0.5;

/**
 * Wakes the watches when commits are on disk. Where many watch, one round of them takes longer than
 * the next commit is away: then there is as long a rest after a round as the round took, so that
 * watches have half of the event loop at most and are told of several commits at a time.
 */
export class FanOut {
  readonly #wakes = new Set<() => void>();
  #restUntil = 0;
  #rest: Timer | undefined;

  constructor(private readonly core: Core) {
    core.onDurable(() => this.#onDurable());
  }

  /** Calls `wake` when there may be news. Returns how to stop. */
  add(wake: () => void): () => void {
    this.#wakes.add(wake);
    return () => void this.#wakes.delete(wake);
  }

  #onDurable(): void {
    const { clock, closed } = this.core;
    // The last word must not wait: nobody comes back to say it.
    if (closed) this.#rest?.cancel();
    else if (this.#rest || this.#wakes.size === 0) return;
    const restMs = closed ? 0 : this.#restUntil - clock.monotonic();
    if (restMs <= 0) return this.#round();
    this.#rest = clock.after(restMs, () => {
      this.#rest = undefined;
      this.#round();
    });
  }

  #round(): void {
    const { clock } = this.core;
    const startedAt = clock.monotonic();
    for (const wake of this.#wakes) wake();
    // Those that were woken work in the microtasks that follow; when they are done, this runs.
    setImmediate(() => {
      const now = clock.monotonic();
      const tookMs = now - startedAt;
      this.#restUntil = tookMs > shortMs ? now + tookMs : now;
    });
  }
}
