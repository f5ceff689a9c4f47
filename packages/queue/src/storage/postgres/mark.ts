/** What takes so long to be committed comes to lie before the mark. */
const slackMs = 10_000;
const wholeEveryMs = 60_000;
const restFactor = 100;

/**
 * Where to begin a walk over times of which each new one lies in the future. What is past was dealt
 * with, but is still there until the database cleans up. Now and then a walk is whole: it begins at
 * the beginning.
 */
export class Mark {
  #from = 0;
  #lowest = Infinity;
  /** By the steady clock. */
  #wholeAt = -Infinity;

  constructor(private readonly monotonic: () => number) {}

  get from(): number {
    return this.#from;
  }

  /** Where the next walk begins, when each is to be whole for which it is time. */
  begin(): number {
    this.#lowest = Infinity;
    const now = this.monotonic();
    if (now < this.#wholeAt) return this.#from;
    this.#wholeAt = now + wholeEveryMs;
    return 0;
  }

  /** A whole walk took so long: the next one comes accordingly later. */
  tookWhole(tookMs: number): void {
    const restMs = Math.max(wholeEveryMs, restFactor * tookMs);
    this.#wholeAt = this.monotonic() + restMs;
  }

  /** Everything was dealt with up to this time. */
  raise(upTo: number): void {
    this.#from = Math.max(0, Math.min(upTo - slackMs, this.#lowest));
  }

  /** There is something to deal with at this time. */
  lower(at: number): void {
    this.#from = Math.min(this.#from, at);
    this.#lowest = Math.min(this.#lowest, at);
  }
}
