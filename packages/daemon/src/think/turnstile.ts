/** Lets only so many through at once; the others wait in line. */
export class Turnstile {
  #free: number;
  readonly #line: ((isIn: boolean) => void)[] = [];

  constructor(width: number) {
    this.#free = width;
  }

  /** Runs the work when there is room; undefined, and no work, when the signal comes first. */
  async pass<Result>(
    signal: AbortSignal,
    work: () => Promise<Result>,
  ): Promise<Result | undefined> {
    if (!(await this.#enter(signal))) return undefined;
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #enter(signal: AbortSignal): Promise<boolean> {
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
        this.#line.splice(this.#line.indexOf(step), 1);
        step(false);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#line.push(step);
    });
  }

  #leave(): void {
    const next = this.#line.shift();
    if (next) next(true);
    else this.#free++;
  }
}
