const maxTurnBytes = 4 * 1024 * 1024;

/** Counts bytes of one kind of work within a turn of the event loop. */
export class TurnBytes {
  #bytes = 0;

  /** The rest of the work should wait for another turn, so that others get theirs. */
  get isSpent(): boolean {
    return this.#bytes > maxTurnBytes;
  }

  add(bytes: number): void {
    if (this.#bytes === 0) setImmediate(this.#reset);
    this.#bytes += bytes;
  }

  readonly #reset = (): void => void (this.#bytes = 0);
}
