import { ReadRate } from '@millrace/kit/peer-memory';

/** Judges whether a reader keeps up, from a running total that is looked at every few seconds. */
export class ReaderCheck {
  readonly #rate = new ReadRate();
  #takenBefore: number | undefined;

  /** `takenBytes`: all that the reader ever took. True when it is too slow. */
  isTooSlow(now: number, isWaiting: boolean, takenBytes: number): boolean {
    if (!isWaiting) {
      this.#takenBefore = undefined;
      this.#rate.drained();
      return false;
    }
    this.#rate.taken(takenBytes - (this.#takenBefore ?? takenBytes));
    this.#takenBefore = takenBytes;
    this.#rate.waiting(now);
    return this.#rate.isTooSlow(now);
  }
}
