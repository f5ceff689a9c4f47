import type { Log } from '@millrace/kit/log';
import type { Connections } from '../connection/connections.js';
import { foldCounters } from '../statements/counts.sql.js';
import { lockForClaims } from '../statements/room.sql.js';

interface QueueCounters {
  /** Entries that this server added since its last fold. */
  added: number;
  /** The first entry that counts. */
  first: number;
  /** Later folds: the entry that each wrote, and its monotonic time. */
  folds: readonly { entry: number; at: number }[];
  /** Monotonic time of the next fold from entry 0 on. */
  wholeAt: number;
  isFolding: boolean;
}

const maxEntries = 64;
/** Transactions that run during a fold commit within this time. */
const slackMs = 2_000;
/** Those that take longer are counted after this time. */
const wholeIntervalMs = 30_000;
const restFactor = 100;

/**
 * The counts of a queue are the sum of its counter entries (table `ledger`). Every commit adds an
 * entry instead of updating a row, so commits do not wait for each other. This folds the entries
 * into one before they are many. Folded entries stay in the index until vacuum, so counting starts
 * after them. An entry that commits during a fold precedes the entry of the fold, so counting
 * starts at a fold only after a later fold has included such entries. A fold holds the claim lock
 * of the queue, so `max_in_flight` stays exact.
 */
export class Counters {
  readonly #queues = new Map<string, QueueCounters>();
  readonly #folding = new Set<Promise<void>>();

  constructor(
    private readonly connections: Pick<Connections, 'transact'>,
    private readonly monotonic: () => number,
    private readonly log: Log,
  ) {}

  /** This server added an entry for each of these queues. */
  added(queues: Iterable<string>): void {
    for (const queue of queues) {
      const counters = this.#countersOf(queue);
      if (++counters.added >= maxEntries) this.#fold(queue, counters);
    }
  }

  /** The entry at which to start counting. */
  firstEntry(queue: string): number {
    const counters = this.#countersOf(queue);
    if (this.monotonic() >= counters.wholeAt || this.#isFirstDue(counters))
      this.#fold(queue, counters);
    return counters.first;
  }

  async close(): Promise<void> {
    await Promise.all(this.#folding);
  }

  #countersOf(queue: string): QueueCounters {
    let counters = this.#queues.get(queue);
    if (!counters) {
      counters = { added: 0, first: 0, folds: [], wholeAt: -Infinity, isFolding: false };
      this.#queues.set(queue, counters);
    }
    return counters;
  }

  /** The second fold is the first that can be counted from. */
  #isFirstDue({ first, folds }: QueueCounters): boolean {
    return first === 0 && folds.length > 0 && folds[0]!.at <= this.monotonic() - slackMs;
  }

  #fold(queue: string, counters: QueueCounters): void {
    if (counters.isFolding) return;
    counters.isFolding = true;
    counters.added = 0;
    const folding = this.#foldEntries(queue, counters)
      // The next fold includes these entries.
      .catch((error: unknown) => this.log.debug({ err: error }, 'failed to fold counters'))
      .finally(() => {
        counters.isFolding = false;
        this.#folding.delete(folding);
      });
    this.#folding.add(folding);
  }

  async #foldEntries(queue: string, counters: QueueCounters): Promise<void> {
    const startedAt = this.monotonic();
    const isWhole = startedAt >= counters.wholeAt;
    if (isWhole) counters.wholeAt = startedAt + wholeIntervalMs;
    const from = isWhole ? 0 : counters.first;
    const [row] = await this.connections.transact(async (transaction) => {
      const locked = transaction.query(lockForClaims, [[queue]]);
      const folded = transaction.queryLast<{ entry: number }>(foldCounters, [queue, from]);
      const [, rows] = await Promise.all([locked, folded]);
      return rows;
    });
    const now = this.monotonic();
    if (isWhole) counters.wholeAt = now + Math.max(wholeIntervalMs, restFactor * (now - startedAt));
    const gathered = counters.folds.findLastIndex(({ at }) => at <= startedAt - slackMs);
    if (gathered !== -1) counters.first = counters.folds[gathered]!.entry;
    const folds = counters.folds.slice(gathered + 1);
    counters.folds = row ? [...folds, { entry: row.entry, at: now }] : folds;
  }
}
