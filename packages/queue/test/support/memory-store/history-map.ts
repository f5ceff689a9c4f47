import {
  addTotals,
  noTotals,
  type HistoryRow,
  type HistoryTotals,
} from '../../../src/core/history.js';
import type { HistoryQuery, HistoryWrite } from '../../../src/storage/port/task-store.js';

/** The history of all queues. */
export class HistoryMap {
  readonly #rows = new Map<string, HistoryRow>();
  readonly #totals = new Map<string, HistoryTotals>();

  write({ rows, totals, prune }: HistoryWrite, exists: (queue: string) => boolean): void {
    for (const row of rows.filter(({ queue }) => exists(queue))) {
      this.#rows.set(textOf(row), structuredClone(row));
    }
    for (const { queue, ...more } of totals.filter((each) => exists(each.queue))) {
      this.#totals.set(queue, addTotals(this.totalsOf(queue), more));
    }
    const written = new Set(rows.map(({ queue }) => queue));
    for (const [key, row] of this.#rows) {
      const limit = prune.find(({ stepS }) => stepS === row.stepS);
      if (limit && written.has(row.queue) && row.at < limit.before) this.#rows.delete(key);
    }
  }

  read({ queue, stepS, from }: HistoryQuery): HistoryRow[] {
    const rows = [...this.#rows.values()]
      .filter((row) => row.queue === queue && row.stepS === stepS)
      .toSorted((a, b) => a.at - b.at || (a.instance < b.instance ? -1 : 1));
    const first = rows.findIndex(({ at }) => at >= from);
    const start = first === -1 ? rows.length : first;
    return structuredClone(rows.slice(Math.max(0, start - 1)));
  }

  totalsOf(queue: string): HistoryTotals {
    return this.#totals.get(queue) ?? noTotals;
  }

  deleteOf(queue: string): void {
    this.#totals.delete(queue);
    for (const [key, row] of this.#rows) if (row.queue === queue) this.#rows.delete(key);
  }
}

function textOf({ queue, stepS, at, instance }: HistoryRow): string {
  return JSON.stringify([queue, stepS, at, instance]);
}
