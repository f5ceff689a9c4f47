import { bigintArray, smallintArray } from './arrays.js';
import type { Connections } from './connections.js';
import { priorities, type Floors } from './floors.js';
import { oldestOfFirst, oldestPending } from './statements/counts.sql.js';

/** A longer search is given up, and not begun again for so long. */
const mostSearchMs = 1_000;
const restMs = 60_000;
const allLanes = smallintArray(priorities);

/**
 * When the oldest task was created that waits. Where so much is dead that the search for it takes
 * long, the first in each line stand for it: one that is tried again may then be overlooked.
 */
export class OldestPending {
  /** When to search again, by the steady clock. */
  readonly #searchAt = new Map<string, number>();

  constructor(
    private readonly connections: Connections,
    private readonly floors: Floors,
    private readonly monotonic: () => number,
  ) {}

  async of(queue: string): Promise<number | null> {
    const searchAt = this.#searchAt.get(queue) ?? -Infinity;
    if (this.monotonic() >= searchAt) {
      this.#searchAt.delete(queue);
      const rows = await this.connections.askWithin<CreatedAt>(mostSearchMs, oldestPending, [
        queue,
      ]);
      if (rows) return rows[0]?.created_at ?? null;
      this.#searchAt.set(queue, this.monotonic() + restMs);
    }
    const values = [
      this.floors.queueNo(queue) ?? 0,
      allLanes,
      bigintArray(this.floors.above(queue)),
      this.floors.scheduledFrom(queue),
    ];
    const [row] = await this.connections.ask<CreatedAt>(oldestOfFirst, values);
    return row!.created_at;
  }
}

interface CreatedAt {
  created_at: number | null;
}
