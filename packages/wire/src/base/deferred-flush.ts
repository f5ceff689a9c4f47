/** Writes what is queued. */
export interface Flushable {
  flush(): void;
}

/**
 * Flushes each target once, after the callbacks and promises of the current tick have run, so that
 * their responses share a write.
 */
export class DeferredFlush {
  #waiting: Flushable[] = [];

  defer(target: Flushable): void {
    // nextTick from a microtask runs after all pending microtasks.
    if (this.#waiting.push(target) === 1) queueMicrotask(this.#arm);
  }

  readonly #arm = () => process.nextTick(this.#run);

  readonly #run = () => {
    const targets = this.#waiting;
    this.#waiting = [];
    for (const target of targets) target.flush();
  };
}
