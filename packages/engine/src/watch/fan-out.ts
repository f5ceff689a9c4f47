import type { Timer } from '@millrace/kit/clock';
import type { Core } from '../core/core.js';

type Wake = () => void;

/** After a round shorter than this no pause is needed. */
const shortMs = 0.5;

/** Maximum time of a round before it yields. */
const sliceMs = 2;

/**
 * Wakes the watches when commits are on disk. With many watches one round may take longer than the
 * time to the next commit: then a pause as long as the round follows it, so that watches use at
 * most half of the event loop and get several commits at a time.
 */
export class FanOut {
  readonly #wakes = new Set<Wake>();
  #isUnderWay = false;
  /** There were commits after the current round started. */
  #isBehind = false;
  #restUntil = 0;
  #rest: Timer | undefined;

  /** Calls `onRoundEnd` after each round. */
  constructor(
    private readonly core: Core,
    private readonly onRoundEnd: () => void,
  ) {
    core.onDurable(() => this.#onDurable());
  }

  /**
   * Calls `wake`, which must not throw, when there may be new commits. Returns a function to stop.
   */
  add(wake: Wake): () => void {
    this.#wakes.add(wake);
    return () => void this.#wakes.delete(wake);
  }

  #onDurable(): void {
    if (this.core.closed) return this.#notifyEnd();
    if (this.#isUnderWay) this.#isBehind = true;
    else if (!this.#rest && this.#wakes.size > 0) this.#start();
  }

  /** The end is announced at once: no later round would do it. */
  #notifyEnd(): void {
    this.#rest?.cancel();
    for (const wake of this.#wakes) wake();
  }

  #start(): void {
    const { clock } = this.core;
    const restMs = this.#restUntil - clock.monotonic();
    if (restMs <= 0) return this.#round();
    this.#rest = clock.after(restMs, () => {
      this.#rest = undefined;
      this.#round();
    });
  }

  #round(): void {
    this.#isUnderWay = true;
    this.#isBehind = false;
    const wakes = this.#wakes.values();
    this.#goOn(wakes, wakes.next(), this.core.clock.monotonic());
  }

  #goOn(wakes: Iterator<Wake>, first: IteratorResult<Wake>, startedAt: number): void {
    const { clock } = this.core;
    const until = clock.monotonic() + sliceMs;
    for (let next = first; !next.done; next = wakes.next()) {
      if (clock.monotonic() >= until) {
        setImmediate(() => this.#goOn(wakes, next, startedAt));
        return;
      }
      next.value();
    }
    // Woken watches may work in the microtasks that follow; this runs after them.
    setImmediate(() => this.#endRound(startedAt));
  }

  #endRound(startedAt: number): void {
    const now = this.core.clock.monotonic();
    const tookMs = now - startedAt;
    this.#restUntil = tookMs > shortMs ? now + tookMs : now;
    this.#isUnderWay = false;
    this.onRoundEnd();
    if (this.#isBehind && !this.core.closed) this.#start();
  }
}
