/** Lets work that concerns the same thing happen one after the other, in the order it came. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async in<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}
