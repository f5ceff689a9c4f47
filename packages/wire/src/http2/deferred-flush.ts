/** Something that writes what has come together. */
export interface Flushable {
  flush(): void;
}

/**
 * Calls everyone who asked for it once, when all that is ready at this moment has been done:
 * after the callbacks and promises that are due, so that their answers share a write.
 */
export class DeferredFlush {
  #waiting: Flushable[] = [];

  defer(target: Flushable): void {
    // A tick that is asked for by a promise comes after all promises that are due.
    if (this.#waiting.push(target) === 1) queueMicrotask(this.#arm);
  }

  readonly #arm = () => process.nextTick(this.#run);

  readonly #run = () => {
    const targets = this.#waiting;
    this.#waiting = [];
    for (const target of targets) target.flush();
  };
}
