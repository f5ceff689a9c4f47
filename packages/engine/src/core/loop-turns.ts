interface Waiting {
  readonly resume: () => void;
  readonly since: number;
}

/** What a query waits for: its first turn, or to continue. */
export type TurnKind = 'first' | 'next';

/**
 * Shares the event loop among all queries of a database: together they work a few milliseconds per
 * turn, however many they are. Waiting queries continue in order, one per turn. New queries
 * alternate with long-running ones, so that a short query does not wait for all of those.
 */
export class LoopTurns {
  /** Called with the time a query has waited for its turn. */
  onWait: (kind: TurnKind, waitedMs: number) => void = () => undefined;
  readonly #waiting: Record<TurnKind, Waiting[]> = { first: [], next: [] };
  #latest: TurnKind = 'next';
  #startedAt: number | undefined;
  #isScheduled = false;

  constructor(private readonly monotonic: () => number) {}

  /** When the first query of this turn started. */
  get startedAt(): number {
    if (this.#startedAt === undefined) {
      this.#startedAt = this.monotonic();
      this.#schedule();
    }
    return this.#startedAt;
  }

  /** Resolves in a later turn, after earlier waiters of the same kind. */
  wait(kind: TurnKind): Promise<void> {
    return new Promise((resume) => {
      this.#waiting[kind].push({ resume, since: this.monotonic() });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#run);
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    this.#startedAt = undefined;
    const { first, next } = this.#waiting;
    const other = this.#latest === 'next' ? 'first' : 'next';
    const kind = this.#waiting[other].length > 0 ? other : this.#latest;
    const waiting = this.#waiting[kind].shift();
    if (!waiting) return;
    this.#latest = kind;
    // Scheduled before it continues: an immediate set in an immediate runs in the next turn.
    if (first.length + next.length > 0) this.#schedule();
    this.onWait(kind, this.monotonic() - waiting.since);
    waiting.resume();
  };
}
