import type { Core } from './core.js';
import type { KeyRange, TableRow } from '../storage/file/tables.js';

/**
 * Raw key-value rows beside the records, for a program in the same process that keeps its own order
 * and writes too often to publish each change. They share commits with records and are included in
 * compaction and full backups. They are not in the change log, so watches, followers and
 * incremental backups do not have them. Keys have 1 to 1,978 bytes and sort bytewise.
 */
export interface RowReader {
  get(key: Buffer): Buffer | undefined;
  /** Rows in key order. Rows written during the iteration may or may not be included. */
  range(range: KeyRange): Iterable<TableRow>;
}

export interface RowWriter extends RowReader {
  put(key: Buffer, value: Buffer): void;
  remove(key: Buffer): void;
}

/** Inside a writer job: also sees rows that are not in the file yet. */
export function rowWriter({ writer }: Core): RowWriter {
  return {
    get: (key) => writer.get('rows', key),
    range: (range) => writer.range('rows', range),
    put: (key, value) => writer.put('rows', key, value),
    remove: (key) => writer.remove('rows', key),
  };
}

/** Calls `read` with one snapshot of the rows. */
export function readRows<Result>(core: Core, read: (rows: RowReader) => Result): Result {
  const view = core.snapshot();
  try {
    return read({
      get: (key) => view.get('rows', key),
      range: (range) => view.rows('rows', range),
    });
  } finally {
    view.done();
  }
}
