import {
  hasConflict,
  nextRow,
  type Row,
  type RowBatch,
  type RowBatchResult,
  type RowKey,
  type RowPut,
  type RowRange,
} from '../../../src/storage/port/task-store.js';
import { compareText } from './claim-order.js';

/** The rows of all queues. */
export class RowMap {
  readonly #rows = new Map<string, Row>();

  get(key: RowKey): Row | undefined {
    return this.#rows.get(idOf(key));
  }

  list({ table, queue, key, from = '', before, isReverse, limit, hasBodies }: RowRange): Row[] {
    const found = [...this.#rows.values()]
      .filter((row) => row.table === table && (queue === undefined || row.queue === queue))
      .filter((row) => row.key >= from && (before === undefined || row.key < before))
      .filter((row) => key === undefined || row.key === key)
      .toSorted((a, b) => compareText(a.queue, b.queue) || compareText(a.key, b.key));
    if (isReverse) found.reverse();
    return structuredClone(found.slice(0, limit)).map(({ body, ...row }) =>
      hasBodies && body ? { ...row, body } : row,
    );
  }

  write(
    { puts = [], removals = [], now }: RowBatch,
    exists: (queue: string) => boolean,
  ): RowBatchResult {
    for (const put of puts) {
      const isThere = exists(put.queue);
      if (!isThere && put.ifRevision !== undefined) return { kind: 'queue_not_found' };
      if (isThere && hasConflict(put, this.get(put))) return { kind: 'conflict' };
    }
    const rows = puts.flatMap((put) => (exists(put.queue) ? (this.put(put, now) ?? []) : []));
    let removed = 0;
    for (const removal of removals) {
      for (const row of this.list(removal)) if (this.#rows.delete(idOf(row))) removed++;
    }
    return { kind: 'written', rows, removed, inserted: [] };
  }

  /** The caller has compared the revision. */
  put(put: RowPut, now: number): Row | undefined {
    const before = this.get(put);
    const row = nextRow(put, before, now);
    if (!row) return undefined;
    this.#rows.set(idOf(row), structuredClone({ ...row, body: row.body ?? before?.body }));
    return row;
  }

  deleteOf(queue: string): void {
    for (const [id, row] of this.#rows) if (row.queue === queue) this.#rows.delete(id);
  }
}

function idOf({ table, queue, key }: RowKey): string {
  return JSON.stringify([table, queue, key]);
}
