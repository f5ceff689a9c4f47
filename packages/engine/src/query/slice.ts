export interface SliceOptions {
  /** Milliseconds that never go backwards. */
  monotonic: () => number;
  /** Gives other work its turn. */
  pause?: () => Promise<void>;
  budgetMs?: number;
}

// Reading the clock for each record would cost as much as testing it.
const workPerCheck = 64;

/**
 * Keeps a long query from holding up everything else in the process: after every few
 * milliseconds of work it asks for a pause, in which the event loop has its turn.
 */
export class Slice {
  readonly #monotonic: () => number;
  readonly #turn: () => Promise<void>;
  readonly #budgetMs: number;
  /** When the event loop last had its turn. */
  #turnAt: number;
  #enteredAt: number;
  #busyMs = 0;
  #work = 0;

  constructor(options: SliceOptions) {
    this.#monotonic = options.monotonic;
    this.#turn = options.pause ?? nextTurn;
    this.#budgetMs = options.budgetMs ?? 4;
    this.#turnAt = this.#enteredAt = this.#monotonic();
  }

  /** Notes one record of this size; true when a pause is due. */
  spend(bytes: number): boolean {
    this.#work += 1 + (bytes >>> 10);
    if (this.#work < workPerCheck) return false;
    this.#work = 0;
    return this.due();
  }

  due(): boolean {
    return this.#monotonic() - this.#turnAt >= this.#budgetMs;
  }

  async pause(): Promise<void> {
    this.leave();
    await this.#turn();
    this.enterAnew();
  }

  /** As `enter`, after a wait in which the event loop had its turn. */
  enterAnew(): void {
    this.enter();
    this.#turnAt = this.#enteredAt;
  }

  /**
   * The query waits for its caller: what follows is not its time. Nor is it a turn of the event
   * loop, for the caller may ask for more at once.
   */
  leave(): void {
    this.#busyMs += this.#monotonic() - this.#enteredAt;
  }

  enter(): void {
    this.#enteredAt = this.#monotonic();
  }

  /** Time spent at work so far. */
  get elapsedMs(): number {
    return this.#busyMs + this.#monotonic() - this.#enteredAt;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
