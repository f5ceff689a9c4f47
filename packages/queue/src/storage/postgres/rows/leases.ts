import type { WholeTask } from '../../../core/task.js';
import type { Connections } from '../connection/connections.js';
import { LowWaterMark } from './low-water-mark.js';
import { endedLeases, sweepClaims } from '../statements/ended-leases.sql.js';
import { toWholeTask, type WholeColumns } from './task-columns.js';

/** Claims read at a time: few when only the first held lease is wanted. */
const fewClaims = 16;
const manyClaims = 512;
const noEnd = Number.MAX_SAFE_INTEGER;

/** Finds expired leases, and when the next lease expires. */
export class Leases {
  readonly #mark: LowWaterMark;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
  ) {
    this.#mark = new LowWaterMark(monotonic);
  }

  /** A lease of this server expires at this time. It is below the mark if a clock was set back. */
  taken(expiresAt: number): void {
    this.#mark.lower(expiresAt);
  }

  /** Tasks whose lease expired by `now`, the oldest first. */
  async ended({ now, limit }: { now: number; limit: number }): Promise<WholeTask[]> {
    const from = this.#mark.begin();
    const startedAt = this.monotonic();
    const heldUntil = await this.#firstHeld({ from, by: now, limit: manyClaims });
    if (from === 0) this.#mark.tookWhole(this.monotonic() - startedAt);
    this.#mark.raise(heldUntil ?? now);
    if (heldUntil === undefined) return [];
    const values = [now, limit, manyClaims, heldUntil];
    const found = await this.connections.query<WholeColumns>(endedLeases, values);
    return found.map(toWholeTask);
  }

  /** When the next lease expires. */
  nextEnd(): Promise<number | undefined> {
    return this.#firstHeld({ from: this.#mark.from, by: noEnd, limit: fewClaims });
  }

  async #firstHeld(request: {
    from: number;
    by: number;
    limit: number;
  }): Promise<number | undefined> {
    const { from, by, limit } = request;
    for (;;) {
      const [row] = await this.connections.query<{ seen: number; held_until: number | null }>(
        sweepClaims,
        [by, limit, from],
      );
      const { seen, held_until: heldUntil } = row!;
      if (heldUntil !== null) return heldUntil;
      if (seen < limit) return undefined;
    }
  }
}
