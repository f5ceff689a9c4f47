import type { Timer } from '@millrace/kit/clock';
import type { Core } from '../core/core.js';

type Wake = () => void;

/** A round shorter than this is nobody's burden. */
const shortMs = 0.5;

/** A round goes on for so long before others have their turn. */
const sliceMs = 2;

/**
 * Wakes the watches when commits are on disk. Where many watch, one round of them takes longer than
 * the next commit is away: then there is as long a rest after a round as the round took, so that
 * watches use half of the event loop at most and get several commits at a time.
 */
export class FanOut {
  readonly #wakes = new Set<Wake>();
  #isUnderWay = false;
  /** There were commits after the round under way began. */
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

  /** Calls `wake`, which must not throw, when there may be news. Returns how to stop. */
  add(wake: Wake): () => void {
    this.#wakes.add(wake);
    return () => void this.#wakes.delete(wake);
  }

  #onDurable(): void {
    if (this.core.closed) return this.#notifyEnd();
    if (this.#isUnderWay) this.#isBehind = true;
    else if (!this.#rest && this.#wakes.size > 0) this.#start();
  }

  /** The last word must not wait: nobody comes back to say it. */
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
    // Those that were woken may work in the microtasks that follow; when they are done, this runs.
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
