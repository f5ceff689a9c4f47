import type { LastError } from '../../../core/task.js';
import type { Connections } from '../connection/connections.js';
import { LowWaterMark } from './low-water-mark.js';
import type { TaskColumns } from './task-columns.js';
import type { Statement } from '../connection/statement.js';
import { nextExpiry } from '../statements/next-due.sql.js';

/** A longer search for the next expiry is cancelled. */
const maxSearchMs = 500;
/** After that, tasks are expired at this interval, and the search is tried again later. */
const pollMs = 1_000;
const restMs = 20_000;

/** Expires pending tasks, and finds the time of the next expiry. */
export class Expiries {
  readonly #mark: LowWaterMark;
  /** Monotonic time of the next search. */
  #searchAt = -Infinity;
  #hasStarted = false;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
    private readonly expireTasks: Statement,
  ) {
    this.#mark = new LowWaterMark(monotonic);
  }

  /** A pending task expires at this time. */
  notePending(expiresAt: number): void {
    this.#mark.lower(expiresAt);
  }

  async expire(request: { now: number; limit: number; error: LastError }): Promise<TaskColumns[]> {
    const { now, limit, error } = request;
    if (!this.#hasStarted) await this.#start(now);
    const { from } = this.#mark;
    const values = [now, limit, JSON.stringify(error), from];
    const found = await this.connections.query<TaskColumns>(this.expireTasks, values);
    if (found.length < limit) this.#mark.raise(now);
    return found;
  }

  /** If the first scan would take too long, it starts near now; a later whole search goes back. */
  async #start(now: number): Promise<void> {
    const first = await this.connections.queryWithin(maxSearchMs, nextExpiry, [0]);
    this.#hasStarted = true;
    if (!first) this.#mark.raise(now);
  }

  /** When the next pending task expires. */
  async next(now: number): Promise<number | undefined> {
    const startedAt = this.monotonic();
    if (startedAt < this.#searchAt) return now + pollMs;
    const from = this.#mark.begin();
    const rows = await this.connections.queryWithin<{ at: number }>(maxSearchMs, nextExpiry, [
      from,
    ]);
    if (from === 0) this.#mark.tookWhole(this.monotonic() - startedAt);
    if (!rows) {
      this.#searchAt = this.monotonic() + restMs;
      return now + pollMs;
    }
    const at = rows[0]?.at;
    if (at !== undefined) this.#mark.lower(at);
    return at;
  }
}
