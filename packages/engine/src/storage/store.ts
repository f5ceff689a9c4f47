import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Hash64 } from '../value/hash.js';
import { OverlayFold } from './fold.js';
import type { CommitRow } from '../format/changes.js';
import type { WriteAheadLog } from './log/write-ahead-log.js';
import { Overlay, type Layer } from './overlay/overlay.js';
import { mergeRows, type PendingWrites } from './overlay/pending.js';
import { nameOf } from './overlay/row-map.js';
import type { KeyRange, TableName, TableRow, Tables } from './file/tables.js';

/** A batch of the writer. */
export interface Batch {
  writes: PendingWrites;
  commits: readonly CommitRow[];
  epoch: number;
  /** The batch rolls back commits, whose numbers are reused. */
  isCut: boolean;
  /** The next commit before the batch, or after it if it rolls back commits. */
  start: { firstSeq: number; chain: Hash64 };
}

export interface StoreOptions {
  clock: Clock;
  log: Log;
  /** Called after a layer was folded, or failed to be. */
  onFolded: () => void;
}

/** A snapshot of the store. */
export interface StoreSnapshot {
  tables: Tables;
  layers: readonly Layer[];
  lsn: number;
}

const maxOverlayBytes = 16 * 2 ** 20;

/**
 * The rows of a database: LMDB, and over it the overlay of rows that are in the log and not yet
 * folded into LMDB. Without a log, as when a new store is filled, batches go directly into LMDB.
 */
export class Store {
  readonly overlay = new Overlay();
  readonly #fold: OverlayFold;
  /** The last batch visible to readers. */
  #visibleLsn: number;
  #openReaders = 0;
  #newestReader = -1;

  constructor(
    private file: Tables,
    readonly log: WriteAheadLog | undefined,
    readonly options: StoreOptions,
  ) {
    this.#visibleLsn = log?.lastLsn ?? 0;
    this.#fold = new OverlayFold(this, options);
  }

  /** The LMDB file, without the rows of the overlay. */
  get tables(): Tables {
    return this.file;
  }

  /** The last batch that is durable. */
  get durableLsn(): number {
    return this.log?.lastLsn ?? 0;
  }

  get(table: TableName, key: Uint8Array): Buffer | undefined {
    if (this.overlay.layers.length === 0) return this.file.get(table, key);
    return this.getNamed(table, key, nameOf(key));
  }

  getNamed(table: TableName, key: Uint8Array, name: string): Buffer | undefined {
    const row = this.overlay.find(table, name);
    return row ? row.value : this.file.get(table, key);
  }

  range(table: TableName, range: KeyRange): Iterable<TableRow> {
    return layeredRange(this.file, this.overlay.layers, Infinity, table, range);
  }

  count(table: TableName): number {
    if (!this.overlay.layers.some((layer) => layer.has(table))) return this.file.count(table);
    let count = 0;
    for (const _row of this.range(table, {})) count++;
    return count;
  }

  /** Makes plain reads see the newest state of the file. */
  refresh(): void {
    this.file.refresh();
  }

  /** Opens a snapshot. Call `endSnapshot` when done. */
  snapshot(): StoreSnapshot {
    this.#openReaders++;
    this.#newestReader = this.#visibleLsn;
    return { tables: this.file, layers: this.overlay.layers, lsn: this.#visibleLsn };
  }

  endSnapshot(): void {
    if (--this.#openReaders === 0) this.#newestReader = -1;
  }

  /** Writes a batch. Resolves when it is durable; `onVisible` is called when it may be read. */
  async commit(batch: Batch, onVisible: () => void, relaxed: boolean): Promise<void> {
    const { log } = this;
    if (!log) {
      await this.file.commit((put, remove) => batch.writes.writeTo(put, remove), onVisible);
      this.file.refresh();
      return;
    }
    const show = () => {
      this.#visibleLsn++;
      this.overlay.add(batch.writes, this.#visibleLsn, this.#newestReader);
      onVisible();
    };
    await log.append(batch, relaxed ? show : undefined);
    if (!relaxed) show();
    this.#fold.schedule();
  }

  /** True when the writer must wait for a fold. */
  get isFull(): boolean {
    return this.overlay.layers.length > 1 && this.overlay.bytes >= maxOverlayBytes;
  }

  /** The last batch in the file. */
  get foldedLsn(): number {
    return this.#fold.foldedLsn;
  }

  /** The error of the last fold; undefined when it succeeded. */
  get foldFailure(): unknown {
    return this.#fold.failure;
  }

  /** Folds everything durable into the file. Throws when that fails. */
  fold(): Promise<void> {
    return this.#fold.foldAll();
  }

  /** Starts a fold unless one is running. */
  foldSoon(): void {
    this.#fold.start();
  }

  /** Switches to another file with the same rows. Only when nothing is left to fold. */
  switchTo(tables: Tables): void {
    if (this.overlay.layers.length > 0) throw new Error('The overlay is not empty');
    this.file = tables;
  }

  /** Tries to fold the rest, then closes the log. */
  async close(): Promise<void> {
    await this.#fold.close();
    await this.log?.idle();
    this.log?.close();
  }
}

/** Rows of a range as of batch `lsn`. */
export function layeredRange(
  tables: Pick<Tables, 'range'>,
  layers: readonly Layer[],
  lsn: number,
  table: TableName,
  range: KeyRange,
  txn?: Parameters<Tables['range']>[2],
): Iterable<TableRow> {
  const newer = layers.filter((layer) => layer.has(table));
  if (newer.length === 0) return tables.range(table, range, txn);
  // The limit applies after removed rows are left out, so the file is read without one.
  const { limit: _limit, ...unlimited } = range;
  const rows = newer.map((layer) => layer.range(table, range, lsn));
  return mergeRows(rows, tables.range(table, unlimited, txn), range);
}
