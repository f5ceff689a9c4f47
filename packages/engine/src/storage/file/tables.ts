import { open, type Database, type RootDatabase, type Transaction } from 'lmdb';
import { InPlaceReads } from './in-place.js';
import { rangeOptions, type KeyRange } from './key-range.js';
import { explainDamage, explainStorageError } from './storage-error.js';
import { cutWrittenList } from './written-list.js';

export type { KeyRange };

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

/** One LMDB file and its tables. */
export class Tables {
  readonly #root: Root;
  readonly #handles: Record<TableName, Handle>;
  readonly inPlace: InPlaceReads;
  #failed = false;

  constructor(readonly path: string) {
    try {
      this.#root = openRoot(path);
      const handles = tableNames.map((name) => [name, openTable(this.#root, name)]);
      this.#handles = Object.fromEntries(handles) as Record<TableName, Handle>;
      this.inPlace = new InPlaceReads(this.#root, path);
      cutWrittenList(this.#root);
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
   * Queues writes as one atomic commit. Resolves when it is on disk: lmdb's own promise may resolve
   * before the fsync, so `flushed` is awaited as well, read before anything else is queued. Calls
   * `onVisible` as soon as readers can see it.
   */
  async commit(
    writes: (put: PutRow, remove: RemoveRow) => void,
    onVisible?: () => void,
  ): Promise<void> {
    const committed = this.#root.batch(() => {
      writes(
        (table, key, value) => void this.#handles[table].put(key, value),
        (table, key) => void this.#handles[table].remove(key),
      );
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
    onVisible?.();
    await flushed;
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

export interface FormerTable {
  rows(): Iterable<TableRow>;
  /** Only within a commit. */
  drop(): void;
}

export type PutRow = (table: TableName, key: Buffer, value: Buffer) => void;
export type RemoveRow = (table: TableName, key: Buffer) => void;
