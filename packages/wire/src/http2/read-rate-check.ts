import { ReadRate } from '@millrace/kit/peer-memory';

/** Checks the read rate of a peer from a running total, sampled every few seconds. */
export class ReadRateCheck {
  readonly #rate = new ReadRate();
  #takenBefore: number | undefined;

  /** `takenBytes`: running total of bytes read by the peer. True when it is too slow. */
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
