import type { Core } from './core.js';
import type { KeyRange, TableRow } from '../storage/file/tables.js';

/**
 * Rows of bytes beside the records: for a program in the same process that keeps an order of its
 * own and writes too much to have each write told to others. They go out in the same commits as
 * records, compaction carries them, and a full backup does. They are not in the change log, so no
 * watch, follower or increment knows of them. Keys have 1 to 1,978 bytes and sort as bytes.
 */
export interface RowReader {
  get(key: Buffer): Buffer | undefined;
  /** Rows in order of their keys. Rows written while the range is walked may or may not come. */
  range(range: KeyRange): Iterable<TableRow>;
}

export interface RowWriter extends RowReader {
  put(key: Buffer, value: Buffer): void;
  remove(key: Buffer): void;
}

/** Inside a job of the writer: sees what is on its way to the file. */
export function rowWriter({ writer }: Core): RowWriter {
  return {
    get: (key) => writer.get('rows', key),
    range: (range) => writer.range('rows', range),
    put: (key, value) => writer.put('rows', key, value),
    remove: (key) => writer.remove('rows', key),
  };
}

/** Calls `read` with one state of the file that nobody changes meanwhile. */
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
