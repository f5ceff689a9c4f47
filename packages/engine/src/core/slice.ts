import type { LoopTurns, TurnKind } from './loop-turns.js';

export interface SliceOptions {
  /** Milliseconds that never go backwards. */
  monotonic: () => number;
  /** Shared with all other queries; without it this one has its own share of every turn. */
  turns?: LoopTurns | undefined;
  /** Gives other work its turn. */
  pause?: (kind: TurnKind) => Promise<void>;
  budgetMs?: number;
}

// Reading the clock for each record would cost as much as testing it.
const workPerCheck = 64;
// A query that has worked less than this has not had its first turn yet.
const minWorkMs = 1;

/**
 * Keeps a long query from holding up everything else in the process: after every few
 * milliseconds of work it asks for a pause, in which the event loop has its turn.
 */
export class Slice {
  readonly #monotonic: () => number;
  readonly #turns: LoopTurns | undefined;
  readonly #turn: (kind: TurnKind) => Promise<void>;
  readonly #budgetMs: number;
  /** When the event loop last had its turn, for a slice without shared turns. */
  #turnAt: number;
  #enteredAt: number;
  #busyMs = 0;
  /** The first record is enough for a check: many queries may begin in one turn. */
  #work = workPerCheck;

  constructor(options: SliceOptions) {
    this.#monotonic = options.monotonic;
    this.#turns = options.turns;
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
    const turnAt = this.#turns?.startedAt ?? this.#turnAt;
    return this.#monotonic() - turnAt >= this.#budgetMs;
  }

  async pause(): Promise<void> {
    this.leave();
    await this.#turn(this.#busyMs < minWorkMs ? 'first' : 'next');
    this.enterAnew();
  }

  /** Before the work begins: waits where this turn of the event loop is used up already. */
  async begin(): Promise<void> {
    if (this.due()) await this.pause();
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
