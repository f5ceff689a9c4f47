interface SliceOptions {
  /** Milliseconds that never go backwards. */
  monotonic: () => number;
  /** Shared with all other queries; without it this query has its own budget per turn. */
  turns?: LoopTurns | undefined;
  /** Yields to other work. */
  pause?: (kind: TurnKind) => Promise<void>;
  budgetMs?: number;
}

// Reading the clock for each record would cost as much as testing it.
const workPerCheck = 64;
// A query that has worked less than this has not had its first turn yet.
const minWorkMs = 1;

/**
 * Keeps a long query from blocking the process: after every few milliseconds of work it requests a
 * pause, in which the event loop runs other work.
 */
export class Slice {
  readonly #monotonic: () => number;
  readonly #turns: LoopTurns | undefined;
  readonly #turn: (kind: TurnKind) => Promise<void>;
  readonly #budgetMs: number;
  /** When the event loop last ran, for a slice without shared turns. */
  #turnAt: number;
  #enteredAt: number;
  #busyMs = 0;
  /** Check at the first record: many queries may start in one turn. */
  #work = workPerCheck;

  constructor(options: SliceOptions) {
    this.#monotonic = options.monotonic;
    this.#turns = options.turns;
    this.#turn = options.pause ?? nextTurn;
    this.#budgetMs = options.budgetMs ?? 4;
    this.#turnAt = this.#enteredAt = this.#monotonic();
  }

  /** Counts one record of this size; true when a pause is due. */
  spend(bytes: number): boolean {
    this.#work += 1 + (bytes >>> 10);
    if (this.#work < workPerCheck) return false;
    this.#work = 0;
    return this.due();
  }

  due(): boolean {
    const turnAt = this.#turns?.startedAt ?? this.#turnAt;
    return this.#monotonic() - turnAt >= this.#budgetMs;
  }

  async pause(): Promise<void> {
    this.leave();
    await this.#turn(this.#busyMs < minWorkMs ? 'first' : 'next');
    this.enterAnew();
  }

  /** Call before the work starts: waits if the budget of this turn is already used up. */
  async begin(): Promise<void> {
    if (this.due()) await this.pause();
  }

  /** As `enter`, after a wait in which the event loop has run. */
  enterAnew(): void {
    this.enter();
    this.#turnAt = this.#enteredAt;
  }

  /**
   * The query waits for its caller: the time until the next `enter` does not count as work. It does
   * not count as an event-loop turn either, because the caller may ask for more at once.
   */
  leave(): void {
    this.#busyMs += this.#monotonic() - this.#enteredAt;
  }

  enter(): void {
    this.#enteredAt = this.#monotonic();
  }

  /** Working time so far. */
  get elapsedMs(): number {
    return this.#busyMs + this.#monotonic() - this.#enteredAt;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

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
