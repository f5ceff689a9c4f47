import type { Log } from '@millrace/kit/log';
import type { Connections } from './connections.js';
import { foldLedger } from './statements/counts.sql.js';
import { lockGates } from './statements/room.sql.js';

interface QueueLedger {
  /** Entries that this server has added since it made them one. */
  added: number;
  /** Before this entry there is none. */
  first: number;
  /** Later entries that others were folded into, and when, by the steady clock. */
  folds: readonly { entry: number; at: number }[];
  /** When to fold from the very first entry on. */
  wholeAt: number;
  isFolding: boolean;
}

const mostEntries = 64;
/** What was being committed when a fold was made is committed so much later. */
const slackMs = 2_000;
/** What took even longer is counted after this time. */
const wholeEveryMs = 30_000;
const restFactor = 100;

/**
 * Makes the entries of a queue's ledger one before they are many. What was folded is still there until
 * the database cleans up, so counting does not begin at the very first entry.
 *
 * An entry that was being committed during a fold lies before what the fold made. So counting begins at
 * a fold only when a later one has gathered what had been left behind. Folds hold the gate of the
 * queue: no claim is left behind, and more are never in flight than are counted.
 */
export class Ledger {
  readonly #queues = new Map<string, QueueLedger>();
  readonly #folding = new Set<Promise<void>>();

  constructor(
    private readonly connections: Pick<Connections, 'transact'>,
    private readonly monotonic: () => number,
    private readonly log: Log,
  ) {}

  /** This server has added an entry for each of these queues. */
  added(queues: Iterable<string>): void {
    for (const queue of queues) {
      const ledger = this.#ledgerOf(queue);
      if (++ledger.added >= mostEntries) this.#fold(queue, ledger);
    }
  }

  /** At which entry to begin to count. */
  firstEntry(queue: string): number {
    const ledger = this.#ledgerOf(queue);
    if (this.monotonic() >= ledger.wholeAt || this.#isFirstDue(ledger)) this.#fold(queue, ledger);
    return ledger.first;
  }

  async close(): Promise<void> {
    await Promise.all(this.#folding);
  }

  #ledgerOf(queue: string): QueueLedger {
    let ledger = this.#queues.get(queue);
    if (!ledger) {
      ledger = { added: 0, first: 0, folds: [], wholeAt: -Infinity, isFolding: false };
      this.#queues.set(queue, ledger);
    }
    return ledger;
  }

  /** The second fold is the first from which to count. */
  #isFirstDue({ first, folds }: QueueLedger): boolean {
    return first === 0 && folds.length > 0 && folds[0]!.at <= this.monotonic() - slackMs;
  }

  #fold(queue: string, ledger: QueueLedger): void {
    if (ledger.isFolding) return;
    ledger.isFolding = true;
    ledger.added = 0;
    const folding = this.#makeOne(queue, ledger)
      // It stays as it is, and the next one takes it along.
      .catch((error: unknown) => this.log.debug({ err: error }, 'the counts were not folded'))
      .finally(() => {
        ledger.isFolding = false;
        this.#folding.delete(folding);
      });
    this.#folding.add(folding);
  }

  async #makeOne(queue: string, ledger: QueueLedger): Promise<void> {
    const startedAt = this.monotonic();
    const isWhole = startedAt >= ledger.wholeAt;
    if (isWhole) ledger.wholeAt = startedAt + wholeEveryMs;
    const from = isWhole ? 0 : ledger.first;
    const [row] = await this.connections.transact(async (transaction) => {
      const locked = transaction.ask(lockGates, [[queue]]);
      const folded = transaction.askLast<{ entry: number }>(foldLedger, [queue, from]);
      const [, rows] = await Promise.all([locked, folded]);
      return rows;
    });
    const now = this.monotonic();
    if (isWhole) ledger.wholeAt = now + Math.max(wholeEveryMs, restFactor * (now - startedAt));
    const gathered = ledger.folds.findLastIndex(({ at }) => at <= startedAt - slackMs);
    if (gathered !== -1) ledger.first = ledger.folds[gathered]!.entry;
    const folds = ledger.folds.slice(gathered + 1);
    ledger.folds = row ? [...folds, { entry: row.entry, at: now }] : folds;
  }
}
