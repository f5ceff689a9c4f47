import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import {
  type Layer,
  Overlay,
  mergeRows,
  PendingWrites,
  nameOf,
  type Rows,
} from './overlay/overlay.js';
import {
  type Tables,
  type TableName,
  type TableRow,
  decodeState,
  stateRow,
} from './file/tables.js';
import type { Hash64 } from '../value/bytes.js';
import type { CommitRow } from '../format/record.js';
import { WriteAheadLog, type LogOptions } from './log/write-ahead-log.js';
import type { KeyRange } from './file/in-place.js';
import { basename, dirname, join } from 'node:path';
import { frameRows } from './log/segment.js';

/** The row of `meta` with the LSN of the last batch in the file. */
export const foldedRow = Buffer.from('folded_lsn');

/**
 * How long a batch stays in the overlay before it is folded, unless its layer is full earlier. An
 * fsync of the log takes two to four times as long while a fold syncs its file, so folds are rare.
 */
const foldAfterMs = 1_000;
const retryAfterMs = 1_000;

/** The LSN of the last batch in the file. */
export function foldedLsn(tables: Pick<Tables, 'get'>): number {
  const row = tables.get('meta', foldedRow);
  return row ? row.readUIntBE(0, 6) : 0;
}

export function encodeLsn(lsn: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(lsn, 0, 6);
  return bytes;
}

/** The store whose overlay is folded. */
interface FoldedStore {
  readonly tables: Tables;
  readonly overlay: Overlay;
  readonly durableLsn: number;
}

/**
 * Folds the overlay: moves its layers into LMDB, the oldest first, each in one synced transaction.
 * So the file always ends at a complete batch, and stores which one.
 */
export class OverlayFold {
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;
  /** Why the last fold failed. */
  failure: unknown;
  /** The last batch in the file. */
  foldedLsn: number;

  constructor(
    private readonly store: FoldedStore,
    private readonly options: { clock: Clock; log: Log; onFolded: () => void },
  ) {
    this.foldedLsn = foldedLsn(store.tables);
  }

  /** Called after each batch: folds full layers now, and the rest after a delay. */
  schedule(): void {
    const oldest = this.store.overlay.layers.at(-1);
    if (this.#running || this.#isClosed || !oldest) return;
    const hasFailed = this.failure !== undefined;
    if (oldest.isSealed && !hasFailed && oldest.lastLsn <= this.store.durableLsn) this.start();
    else {
      const delayMs = hasFailed ? retryAfterMs : foldAfterMs;
      this.#timer ??= this.options.clock.after(delayMs, () => this.start());
    }
  }

  /** Starts a fold unless one is running. An error is stored in `failure`. */
  start(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#running || this.#isClosed) return;
    this.#running = this.#foldDue()
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
        this.options.onFolded();
        this.schedule();
      });
  }

  /** Folds the whole overlay. */
  async foldAll(): Promise<void> {
    // A finished fold may start the next one.
    while (this.#running) await this.#running;
    this.#timer?.cancel();
    this.#timer = undefined;
    const folding = this.#foldLayers(() => true);
    this.#running = folding.catch(() => undefined).finally(() => (this.#running = undefined));
    await folding;
    this.options.onFolded();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#running;
    if (this.store.overlay.layers.length === 0) return;
    await this.#foldLayers(() => true).catch((error: unknown) => {
      // Nothing is lost: the next open finds it in the log.
      this.options.log.error({ err: error }, 'fold on close failed');
    });
  }

  /** Folds the layer that was open when the fold started, and full ones after it. */
  async #foldDue(): Promise<void> {
    let isFirst = true;
    await this.#foldLayers((layer) => {
      const isDue = isFirst || layer.isSealed;
      isFirst = false;
      return isDue;
    });
  }

  async #foldLayers(isDue: (layer: Layer) => boolean): Promise<void> {
    const { store } = this;
    for (;;) {
      const oldest = store.overlay.layers.at(-1);
      if (!oldest || !isDue(oldest)) return;
      // With relaxed durability readers see batches that are not durable yet: those must wait.
      if (oldest.lastLsn > store.durableLsn) return;
      oldest.isSealed = true;
      try {
        await this.#foldLayer(oldest);
        this.failure = undefined;
      } catch (error) {
        this.failure = error;
        this.options.log.error({ err: error }, 'fold failed');
        throw error;
      }
    }
  }

  async #foldLayer(layer: Layer): Promise<void> {
    const { store } = this;
    const { tables } = store;
    await tables.commit((put, remove) => {
      layer.forEach((table, { key, value }) => {
        if (value) put(table, key, value);
        else remove(table, key);
      });
      put('meta', foldedRow, encodeLsn(layer.lastLsn));
    });
    tables.refresh();
    store.overlay.drop(layer);
    this.foldedLsn = layer.lastLsn;
  }
}

/** A batch of the writer. */
export interface Batch {
  writes: PendingWrites;
  commits: readonly CommitRow[];
  epoch: number;
  /** The batch rolls back commits, whose numbers are reused. */
  isCut: boolean;
  /** Nobody else waits for the event loop to write. */
  isAlone?: boolean;
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
    if (!log) return this.commitDerived(batch.writes, onVisible);
    const show = () => {
      this.#visibleLsn++;
      this.overlay.add(batch.writes, this.#visibleLsn, this.#newestReader);
      onVisible();
    };
    await log.append(batch, relaxed ? show : undefined);
    if (!relaxed) show();
    this.#fold.schedule();
  }

  /** As `commit`, directly to the file: batches before it may still be in the overlay. */
  async commitDerived(rows: Rows, onVisible: () => void): Promise<void> {
    await this.file.commit((put, remove) => rows.writeTo(put, remove), onVisible);
    this.file.refresh();
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

/** The row of `meta` with the name of the log directory, beside the store. */
export const logRow = Buffer.from('log');

/** The name of the log of a new store. */
export function logNameFor(store: string): string {
  return basename(store).replace(/^store-(\d+)\.mdb$/, 'log-$1');
}

/** The directory of the log of a store. */
export function logDirectoryOf(tables: Tables): string {
  const name = tables.get('meta', logRow)?.toString() ?? logNameFor(tables.path);
  return join(dirname(tables.path), name);
}

/** A log, and its batches that are not in the store yet. */
export class OpenedLog {
  private constructor(
    readonly log: WriteAheadLog,
    private readonly batches: readonly { frame: Buffer; lsn: number }[],
  ) {}

  static async open(tables: Tables, options: Omit<LogOptions, 'directory'>): Promise<OpenedLog> {
    const { seq, chain } = decodeState(tables.get('meta', stateRow));
    const batches: { frame: Buffer; lsn: number }[] = [];
    const log = await WriteAheadLog.open(
      { ...options, directory: logDirectoryOf(tables) },
      foldedLsn(tables),
      { firstSeq: seq + 1, chain },
      (frame, lsn) => batches.push({ frame, lsn }),
    );
    return new OpenedLog(log, batches);
  }

  /** Loads the missing batches into the overlay. */
  loadInto(overlay: Overlay): void {
    for (const { frame, lsn } of this.batches) {
      const writes = new PendingWrites();
      for (const { table, key, value } of frameRows(frame)) writes.set(table, key, value);
      overlay.add(writes, lsn, -1);
    }
  }
}
