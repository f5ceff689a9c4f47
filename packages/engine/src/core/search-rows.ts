import {
  decodeDirectory,
  directoryKey,
  encodeDirectory,
  segmentRange,
  type Directory,
} from '../format/search-pages.js';
import { prefixed } from '../format/keys.js';
import type { KeyRange } from '../storage/file/in-place.js';
import type { TableName, TableRow } from '../storage/file/tables.js';

/** Rows as the writer has them. */
export interface IndexRows {
  get(table: TableName, key: Buffer): Buffer | undefined;
  range(table: TableName, range: KeyRange): Iterable<TableRow>;
  set(table: TableName, key: Buffer, value: Buffer | undefined): void;
}

/** The rows of one search index. */
export class SearchRows {
  constructor(
    readonly index: number,
    private readonly rows: IndexRows,
  ) {}

  get(key: Buffer): Buffer | undefined {
    return this.rows.get('index', prefixed(this.index, key));
  }

  set(key: Buffer, value: Buffer | undefined): void {
    this.rows.set('index', prefixed(this.index, key), value);
  }

  range({ start, end }: { start: Buffer; end: Buffer }, limit?: number): Iterable<TableRow> {
    const range = { start: prefixed(this.index, start), end: prefixed(this.index, end) };
    return this.rows.range('index', limit === undefined ? range : { ...range, limit });
  }

  get directory(): Directory {
    return decodeDirectory(this.get(directoryKey));
  }

  set directory(directory: Directory) {
    this.set(directoryKey, encodeDirectory(directory));
  }

  /** Removes up to `limit` pages of a segment. Returns whether there may be more. */
  removePages(segment: number, limit: number): boolean {
    const rows = Array.from(this.range(segmentRange(segment), limit));
    for (const { key } of rows) this.rows.set('index', key, undefined);
    return rows.length === limit;
  }
}
