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

/**
 * Coalesces runs of slow work. A call during a run waits for the next run, because the current one
 * may have missed the caller's change; all waiting callers share that next run.
 */
export class SharedRuns<Result> {
  #running: Promise<Result> | undefined;
  #next: Promise<Result> | undefined;

  constructor(private readonly work: () => Promise<Result>) {}

  run(): Promise<Result> {
    // Also in the moment between the end of a run and the start of the next one.
    if (this.#next) return this.#next;
    if (!this.#running) return this.#start();
    return (this.#next = this.#running.then(
      () => this.#start(),
      () => this.#start(),
    ));
  }

  #start(): Promise<Result> {
    this.#next = undefined;
    const run = this.work().finally(() => {
      if (this.#running === run) this.#running = undefined;
    });
    this.#running = run;
    return run;
  }
}
