/** Something that writes what has come together. */
export interface Flushable {
  flush(): void;
}

/**
 * Calls everyone who asked for it once, when all that is ready at this moment has been done:
 * after the callbacks and promises that are due, so that their answers share a write.
 */
export class TurnEnd {
  #waiting: Flushable[] = [];

  defer(line: Flushable): void {
    // A tick that is asked for by a promise comes after all promises that are due.
    if (this.#waiting.push(line) === 1) queueMicrotask(this.#arm);
  }

  readonly #arm = () => process.nextTick(this.#run);

  readonly #run = () => {
    const lines = this.#waiting;
    this.#waiting = [];
    for (const line of lines) line.flush();
  };
}
