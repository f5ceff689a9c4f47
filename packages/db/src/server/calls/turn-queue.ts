/**
 * Work of one kind that arrives piece by piece in a turn of the event loop and is done in one go
 * at its end. One piece alone waits for nothing but the others that are already there. Among many,
 * each finds its code and data still in the processor's caches: taken one by one between the
 * network's own work, calls cost more than twice as much.
 */
export class TurnQueue<Item> {
  #waiting: Item[] = [];

  /** `run` must not throw: the others wait behind it. */
  constructor(private readonly run: (item: Item) => void) {}

  push(item: Item): void {
    this.#waiting.push(item);
    if (this.#waiting.length === 1) setImmediate(this.#runAll);
  }

  readonly #runAll = (): void => {
    const items = this.#waiting;
    this.#waiting = [];
    for (const item of items) this.run(item);
  };
}
