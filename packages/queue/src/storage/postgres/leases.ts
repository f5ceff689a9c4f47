import type { WholeTask } from '../../core/task.js';
import type { Connections } from './connections.js';
import { Mark } from './mark.js';
import { toWholeTask, type WholeColumns } from './rows.js';
import { endedLeases, sweepClaims } from './statements/ended-leases.sql.js';

/** Claims that are looked at together: a few where the first that is held is all that is asked for. */
const fewClaims = 16;
const manyClaims = 512;
const noEnd = Number.MAX_SAFE_INTEGER;

/** Finds out which leases have ended, and when the next one does. */
export class Leases {
  readonly #mark: Mark;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
  ) {
    this.#mark = new Mark(monotonic);
  }

  /** A lease of this server ends at this time: maybe before the mark, where a clock was set back. */
  taken(expiresAt: number): void {
    this.#mark.lower(expiresAt);
  }

  /** Tasks whose lease has run out by `now`, the longest past first. */
  async ended({ now, limit }: { now: number; limit: number }): Promise<WholeTask[]> {
    const from = this.#mark.begin();
    const startedAt = this.monotonic();
    const heldUntil = await this.#firstHeld({ from, by: now, most: manyClaims });
    if (from === 0) this.#mark.tookWhole(this.monotonic() - startedAt);
    this.#mark.raise(heldUntil ?? now);
    if (heldUntil === undefined) return [];
    const values = [now, limit, manyClaims, heldUntil];
    const found = await this.connections.ask<WholeColumns>(endedLeases, values);
    return found.map(toWholeTask);
  }

  /** When the first lease ends. */
  nextEnd(): Promise<number | undefined> {
    return this.#firstHeld({ from: this.#mark.from, by: noEnd, most: fewClaims });
  }

  async #firstHeld(ask: { from: number; by: number; most: number }): Promise<number | undefined> {
    const { from, by, most } = ask;
    for (;;) {
      const [row] = await this.connections.ask<{ seen: number; held_until: number | null }>(
        sweepClaims,
        [by, most, from],
      );
      const { seen, held_until: heldUntil } = row!;
      if (heldUntil !== null) return heldUntil;
      if (seen < most) return undefined;
    }
  }
}
