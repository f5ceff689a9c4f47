const maxTurnBytes = 4 * 1024 * 1024;

/** Counts the bytes that were encoded within one turn of the event loop. */
export class TurnBytes {
  #bytes = 0;

  /** The byte budget of this turn is used up; the rest should wait for the next turn. */
  get isSpent(): boolean {
    return this.#bytes > maxTurnBytes;
  }

  add(bytes: number): void {
    if (this.#bytes === 0) setImmediate(this.#reset);
    this.#bytes += bytes;
  }

  readonly #reset = (): void => void (this.#bytes = 0);
}
