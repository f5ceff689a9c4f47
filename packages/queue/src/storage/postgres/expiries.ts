import type { LastError } from '../../core/task.js';
import type { Connections } from './connections.js';
import { Mark } from './mark.js';
import type { TaskColumns } from './rows.js';
import type { Statement } from './statement.js';
import { nextExpiry } from './statements/next-events.sql.js';

/** A longer search for the next one is given up. */
const mostSearchMs = 500;
/** When nobody knows, it is time to expire tasks so much later, and to search so much later. */
const againMs = 1_000;
const restMs = 20_000;

/** Ends tasks that expired while they waited, and finds out when the next one does. */
export class Expiries {
  readonly #mark: Mark;
  /** By the steady clock. */
  #searchAt = -Infinity;
  #hasBegun = false;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
    private readonly expireTasks: Statement,
  ) {
    this.#mark = new Mark(monotonic);
  }

  /** A task that waits expires at this time. */
  awaits(expiresAt: number): void {
    this.#mark.lower(expiresAt);
  }

  async expire(ask: { now: number; limit: number; error: LastError }): Promise<TaskColumns[]> {
    const { now, limit, error } = ask;
    if (!this.#hasBegun) await this.#begin(now);
    const { from } = this.#mark;
    const values = [now, limit, JSON.stringify(error), from];
    const found = await this.connections.ask<TaskColumns>(this.expireTasks, values);
    if (found.length < limit) this.#mark.raise(now);
    return found;
  }

  /** Where the first walk would take too long, it begins near now; the next whole search goes back. */
  async #begin(now: number): Promise<void> {
    const first = await this.connections.askWithin(mostSearchMs, nextExpiry, [0]);
    this.#hasBegun = true;
    if (!first) this.#mark.raise(now);
  }

  /** When the next task expires. */
  async next(now: number): Promise<number | undefined> {
    const startedAt = this.monotonic();
    if (startedAt < this.#searchAt) return now + againMs;
    const from = this.#mark.begin();
    const rows = await this.connections.askWithin<{ at: number }>(mostSearchMs, nextExpiry, [from]);
    if (from === 0) this.#mark.tookWhole(this.monotonic() - startedAt);
    if (!rows) {
      this.#searchAt = this.monotonic() + restMs;
      return now + againMs;
    }
    const at = rows[0]?.at;
    if (at !== undefined) this.#mark.lower(at);
    return at;
  }
}
