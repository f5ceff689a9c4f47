/** Counting semaphore with a FIFO queue. */
export class Semaphore {
  #free: number;
  readonly #waiting: ((isIn: boolean) => void)[] = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  /** Runs the work when a permit is free; undefined, without running it, when aborted before. */
  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result | undefined> {
    if (!(await this.#acquire(signal))) return undefined;
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #acquire(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const step = (isIn: boolean) => {
        signal.removeEventListener('abort', giveUp);
        resolve(isIn);
      };
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(step), 1);
        step(false);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(step);
    });
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next) next(true);
    else this.#free++;
  }
}
