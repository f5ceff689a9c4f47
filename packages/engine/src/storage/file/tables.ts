import { type RootDatabase, open, type Database, type Transaction } from 'lmdb';
import { InPlaceReads, rangeOptions, type KeyRange } from './in-place.js';
import { explainDamage, explainStorageError } from './files.js';
import { emptyHash, type Hash64 } from '../../value/bytes.js';

/** lmdb's record of a write; `next` is that of the following write. */
interface WriteNote {
  next: WriteNote | null;
  /** The first record of the next transaction, if that was queued before this one was done. */
  nextTxn?: WriteNote | undefined;
}

/**
 * lmdb keeps its writes in a linked list and drops the first entries, but these still point to the
 * later ones. So once one entry is promoted to the old generation of the heap, all that follow are
 * too, and only a full garbage collection frees them. Here the list is cut after each commit, at an
 * entry that lmdb has finished with.
 */
export function cutWrittenList(root: RootDatabase<Buffer, Buffer>): void {
  let last: WriteNote | undefined;
  root.on('aftercommit', ({ next: first }: { next: WriteNote }) => {
    // lmdb searches from `first` on: the entry that was there last time is before it now.
    if (last && last !== first) {
      last.next = null;
      if (last.nextTxn) last.nextTxn = undefined;
    }
    last = first;
  });
}

/** The tables of a store. Their keys are described in keys.ts. */
export const tableNames = [
  'meta',
  'records',
  'keys',
  'index',
  'unique',
  'expiry',
  'requests',
  'rows',
] as const;
export type TableName = (typeof tableNames)[number];

export interface TableRow {
  key: Buffer;
  value: Buffer;
}

type Handle = Database<Buffer, Buffer>;
type Root = RootDatabase<Buffer, Buffer> & { _endWrites?: () => undefined };

/** Members of lmdb's handles that its types leave out. */
interface FastReader {
  getBinaryFast(key: Buffer, options?: { transaction: Transaction }): Uint8Array | undefined;
  /** Length of the last value read: the bytes are a shared buffer that is longer. */
  lastSize: number;
}

// Avoid copies: these encoders pass bytes through, and only `readKey` copies each key.
const keyEncoder = {
  writeKey(key: Uint8Array, target: Uint8Array, at: number): number {
    target.set(key, at);
    return at + key.length;
  },
  readKey(source: Buffer, start: number, end: number): Buffer {
    const key = Buffer.allocUnsafe(end - start);
    key.set(source.subarray(start, end));
    return key;
  },
};
const valueEncoder = {
  encode: (value: Buffer) => value,
  decode(bytes: Uint8Array, end?: number): Buffer {
    const length = end ?? bytes.length;
    const value = Buffer.allocUnsafe(length);
    // lmdb returns a long shared buffer and overrides its `length`, which `set` ignores.
    value.set(bytes.subarray(0, length));
    return value;
  },
};

// Reserved address space, not memory or disk; the file grows on demand, also beyond this.
const mapBytes = 16 * 2 ** 30;
const maxReaders = 4_096;

const pageHeadBytes = 16;
/** What LMDB stores beside a row: its head, its place in the page, and a byte to make it even. */
const rowHeadBytes = 11;

/**
 * LMDB splits a full page before its last row when rows come in the order of their keys, so pages
 * that have room for two rows would get one. Of rows of such a size, which is that of vectors, every
 * second one is put after all others, into the page of the one before it.
 */
class RowPairs {
  readonly #second: [TableName, Buffer, Buffer][] = [];
  #isSecond = true;

  constructor(
    private readonly putNow: PutRow,
    private readonly pageBytes: number,
  ) {}

  readonly put: PutRow = (table, key, value) => {
    const bytes = key.length + value.length + rowHeadBytes;
    if (Math.floor((this.pageBytes - pageHeadBytes) / bytes) === 2) {
      this.#isSecond = !this.#isSecond;
      if (this.#isSecond) return void this.#second.push([table, Buffer.from(key), value]);
    }
    this.putNow(table, key, value);
  };

  finish(): void {
    for (const [table, key, value] of this.#second) this.putNow(table, key, value);
  }
}

/** One LMDB file and its tables. */
export class Tables {
  readonly #root: Root;
  readonly #handles: Record<TableName, Handle>;
  readonly inPlace: InPlaceReads;
  readonly #pageBytes: number;
  #failed = false;

  constructor(readonly path: string) {
    try {
      this.#root = openRoot(path);
      const handles = tableNames.map((name) => [name, openTable(this.#root, name)]);
      this.#handles = Object.fromEntries(handles) as Record<TableName, Handle>;
      this.inPlace = new InPlaceReads(this.#root, path);
      cutWrittenList(this.#root);
      this.#pageBytes = (this.#root.getStats() as { pageSize: number }).pageSize;
    } catch (error) {
      throw explainStorageError(error, path);
    }
  }

  get(table: TableName, key: Uint8Array, txn?: Transaction): Buffer | undefined {
    const options = txn ? { transaction: txn } : undefined;
    const handle = this.#handles[table];
    try {
      const bytes = (handle as unknown as FastReader).getBinaryFast(key as Buffer, options);
      if (bytes === undefined) return undefined;
      return valueEncoder.decode(bytes, (handle as unknown as FastReader).lastSize);
    } catch (error) {
      throw this.#unread(error);
    }
  }

  *range(table: TableName, range: KeyRange, txn?: Transaction): Iterable<TableRow> {
    try {
      yield* this.#handles[table].getRange(rangeOptions(range, txn)) as Iterable<TableRow>;
    } catch (error) {
      throw this.#unread(error);
    }
  }

  count(table: TableName, txn?: Transaction): number {
    try {
      return this.#handles[table].getCount(rangeOptions({}, txn));
    } catch (error) {
      throw this.#unread(error);
    }
  }

  #unread(error: unknown): unknown {
    // A transaction that met damage cannot read any more; another one may read the rest.
    this.#root.resetReadTxn();
    return explainDamage(error, this.path);
  }

  /** A snapshot that stays open until `done()`. Meanwhile LMDB cannot reuse old pages. */
  snapshot(): Transaction {
    this.#root.resetReadTxn();
    return this.#root.useReadTransaction();
  }

  /** Makes the next plain read see the newest commit. */
  refresh(): void {
    this.#root.resetReadTxn();
  }

  /**
   * Queues writes as one atomic commit. A row is written once, because the order of the writes may
   * change. Resolves when it is on disk: lmdb's own promise may resolve before the fsync, so
   * `flushed` is awaited as well, read before anything else is queued. Calls `onVisible` as soon as
   * readers can see it.
   */
  async commit(
    writes: (put: PutRow, remove: RemoveRow) => void,
    onVisible?: () => void,
  ): Promise<void> {
    // An error that leaves `batch` would leave lmdb waiting for the end of it.
    let problem: { error: unknown } | undefined;
    const committed = this.#root.batch(() => {
      const put: PutRow = (table, key, value) => void this.#handles[table].put(key, value);
      const pairs = new RowPairs(put, this.#pageBytes);
      try {
        writes(pairs.put, (table, key) => void this.#handles[table].remove(key));
      } catch (error) {
        problem = { error };
      }
      pairs.finish();
    });
    // lmdb wraps the batch in one of its own; without a handler the rejection of that promise would
    // be unhandled.
    const quiet = () => undefined;
    setImmediate(() => void this.#root.committed.then(quiet, quiet));
    const flushed = this.#root.flushed;
    try {
      await committed;
    } catch (error) {
      this.#failed = true;
      throw await whyCommitFailed(error);
    }
    this.#failed = false;
    if (!problem) onVisible?.();
    await flushed;
    if (problem) throw problem.error;
  }

  /** Number of rows and pages of a table, from LMDB's statistics. */
  stats(table: TableName): { rows: number; pages: number } {
    const stats = this.#handles[table].getStats() as Record<string, number | undefined>;
    const pages = ['treeBranchPageCount', 'treeLeafPageCount', 'overflowPages'];
    return {
      rows: stats['entryCount'] ?? 0,
      pages: pages.reduce((sum, name) => sum + (stats[name] ?? 0), 0),
    };
  }

  /** True when nothing was committed except, perhaps, the format version. */
  get isEmpty(): boolean {
    const named = ['format', 'release', 'lineage', 'log'].filter((name) =>
      this.get('meta', Buffer.from(name)),
    );
    const rows = tableNames.reduce((sum, table) => sum + this.stats(table).rows, 0);
    return rows === named.length;
  }

  /** A table that is not in `tableNames`, for upgrades of older formats. */
  formerTable(name: string): FormerTable {
    const handle = openTable(this.#root, name);
    return {
      rows: () => handle.getRange(rangeOptions({}, undefined)) as Iterable<TableRow>,
      drop: () => void handle.drop(),
    };
  }

  async close(): Promise<void> {
    // After a failed commit lmdb would wait forever for a flush; nothing is running then.
    if (this.#failed) this.#root._endWrites = () => undefined;
    await this.#root.close();
  }
}

function openRoot(path: string): Root {
  return open<Buffer, Buffer>({
    path,
    noSubdir: true,
    maxDbs: tableNames.length + 8,
    maxReaders: maxReaders,
    mapSize: mapBytes,
    noMemInit: true,
    permissionsMode: 0o600,
  } as Parameters<typeof open>[0]);
}

function openTable(root: Root, name: string): Handle {
  const options = { name, keyEncoder, encoder: valueEncoder } as object as { name: string };
  return root.openDB<Buffer, Buffer>(options);
}

/** The system error that lmdb hides, as a promise, behind "Commit failed". */
async function whyCommitFailed(error: unknown): Promise<unknown> {
  try {
    await (error as { commitError?: Promise<unknown> }).commitError;
  } catch (reason) {
    return reason;
  }
  return error;
}

interface FormerTable {
  rows(): Iterable<TableRow>;
  /** Only within a commit. */
  drop(): void;
}

export type PutRow = (table: TableName, key: Buffer, value: Buffer) => void;
export type RemoveRow = (table: TableName, key: Buffer) => void;

/** The numbers that change with each commit. Every batch writes them, as one row. */
export interface DatabaseState {
  /** The last commit. 0 in an empty database. */
  seq: number;
  /** Raised by every promotion. */
  epoch: number;
  /** Epoch of the leader that made the last commit: of two histories the later one is newer. */
  commitEpoch: number;
  chain: Hash64;
  /** The oldest commit in the log; `seq + 1` when it has none. */
  oldestSeq: number;
  /** The chain hash before `oldestSeq`, so that the rest of a trimmed log can be verified. */
  oldestChain: Hash64;
  nextCollection: number;
  nextIndex: number;
}

export const freshState: DatabaseState = {
  seq: 0,
  epoch: 1,
  commitEpoch: 0,
  chain: emptyHash,
  oldestSeq: 1,
  oldestChain: emptyHash,
  nextCollection: 1,
  nextIndex: 1,
};

export const stateRow = Buffer.from('state');
export const lineageRow = Buffer.from('lineage');

/** As JSON. Written by hand because it is built for every batch. */
export function encodeState(state: DatabaseState): Buffer {
  const { seq, epoch, commitEpoch, chain, oldestSeq, oldestChain } = state;
  const { nextCollection, nextIndex } = state;
  return Buffer.from(
    `{"seq":${seq},"epoch":${epoch},"commitEpoch":${commitEpoch},"chain":{"high":${chain.high},"low":${chain.low}},` +
      `"oldestSeq":${oldestSeq},"oldestChain":{"high":${oldestChain.high},` +
      `"low":${oldestChain.low}},"nextCollection":${nextCollection},"nextIndex":${nextIndex}}`,
    'latin1',
  );
}

export function decodeState(bytes: Buffer | undefined): DatabaseState {
  if (!bytes) return freshState;
  return { ...freshState, ...(JSON.parse(bytes.toString()) as Partial<DatabaseState>) };
}

/** The lineage: identifies the history of this file. A restored copy starts a new one. */
export function lineageOf(tables: Tables): string {
  return tables.get('meta', lineageRow)?.toString() ?? '';
}

/**
 * Counts the readers of each file: a replaced file stays open until its last snapshot is released.
 */
export class FileUse {
  readonly #readers = new Map<Tables, number>();
  readonly #waiting = new Map<Tables, () => void>();
  readonly #retiring = new Set<Promise<void>>();

  /** Registers a reader, which calls the returned function when it is done. */
  begin(tables: Tables): () => void {
    this.#readers.set(tables, (this.#readers.get(tables) ?? 0) + 1);
    return () => {
      const left = this.#readers.get(tables)! - 1;
      if (left > 0) this.#readers.set(tables, left);
      else {
        this.#readers.delete(tables);
        this.#waiting.get(tables)?.();
      }
    };
  }

  /** Closes a file that gets no new readers, and then calls `closed`. */
  retire(tables: Tables, closed: () => void): Promise<void> {
    const retired = this.#unused(tables)
      .then(() => tables.close())
      .then(closed)
      .finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
    return retired;
  }

  /** Resolves when every retired file is closed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#retiring);
  }

  async #unused(tables: Tables): Promise<void> {
    if (!this.#readers.has(tables)) return;
    await new Promise<void>((resolve) => this.#waiting.set(tables, resolve));
    this.#waiting.delete(tables);
  }
}
