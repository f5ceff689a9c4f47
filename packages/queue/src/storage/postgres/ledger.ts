import type { Log } from '@millrace/kit/log';
import type { Connections } from './connections.js';
import { foldLedger } from './statements/counts.sql.js';

const mostEntries = 64;

/** Makes the entries of a queue's ledger one before they are many. */
export class Ledger {
  readonly #entries = new Map<string, number>();
  readonly #folding = new Set<Promise<void>>();

  constructor(
    private readonly connections: Connections,
    private readonly log: Log,
  ) {}

  /** This server has added an entry for each of these queues. */
  added(queues: Iterable<string>): void {
    for (const queue of queues) {
      const entries = (this.#entries.get(queue) ?? 0) + 1;
      this.#entries.set(queue, entries % mostEntries);
      if (entries >= mostEntries) this.#fold(queue);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#folding);
  }

  #fold(queue: string): void {
    const folding = this.connections.ask(foldLedger, [queue]).then(
      () => undefined,
      // It stays as it is, and the next one takes it along.
      (error: unknown) => this.log.debug({ err: error }, 'the counts were not folded'),
    );
    this.#folding.add(folding);
    void folding.then(() => this.#folding.delete(folding));
  }
}
