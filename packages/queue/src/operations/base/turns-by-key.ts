/** Runs calls with the same key one after the other. */
export class TurnsByKey {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<Result>(key: string, call: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve();
    // A failed call does not hold up the next one.
    const mine = before.then(call, call);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
