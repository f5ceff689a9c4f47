import type { Database, RootDatabase, Transaction } from 'lmdb';
import { idLength, prefixLength } from '../../format/keys.js';
import { rangeOptions, type KeyRange } from './key-range.js';
import { explainDamage } from './storage-error.js';

/** What a scan of records shows of each row, in place: nothing here outlives the call. */
export type RowVisitor<Result> = (
  keyBytes: Uint8Array,
  keyStart: number,
  valueBytes: Buffer,
  valueEnd: number,
) => Result | undefined;

/** Sees a key in place; true ends the walk. */
export type KeyVisitor = (bytes: Uint8Array, start: number, end: number) => boolean;

/** Where the id of a record lies, for a handle that writes the key by itself. */
interface RecordPlace {
  collection: number;
  ids: Uint8Array;
  at: number;
}

/** lmdb's own window, of which it overrides the `length`. */
type SharedWindow = Uint8Array & { readonly maxLength?: number };

/** Members of lmdb's handles that its types leave out. */
interface FastReader {
  getBinaryFast(key: unknown, options: { transaction: Transaction }): SharedWindow | undefined;
  /** The length of what was read last: the bytes are a shared window that is longer. */
  lastSize: number;
}

const noBytes = Buffer.alloc(0);

/**
 * Reads that show bytes where lmdb leaves them, valid until the next read of any kind. Nothing is
 * copied or made for rows that are only looked at.
 */
export class InPlaceReads {
  readonly #rows: Database<unknown, Uint8Array>;
  readonly #keys: Database<unknown, Uint8Array>;
  readonly #records: FastReader;
  readonly #place: RecordPlace = { collection: 0, ids: noBytes, at: 0 };
  #visitor: RowVisitor<unknown> | undefined;
  #keyBytes: Uint8Array = noBytes;
  #keyStart = 0;
  #keyEnd = 0;
  #shared: SharedWindow = noBytes;
  /** The same memory as a plain buffer: fields of its own make lmdb's slow to read. */
  #window = noBytes;

  constructor(
    root: RootDatabase<Buffer, Buffer>,
    private readonly path: string,
  ) {
    const writeKey = (key: Uint8Array, target: Uint8Array, at: number): number => {
      target.set(key, at);
      return at + key.length;
    };
    const readKey = (source: Uint8Array, start: number, end: number): undefined => {
      this.#keyBytes = source;
      this.#keyStart = start;
      this.#keyEnd = end;
    };
    const decode = (bytes: SharedWindow, end?: number): unknown =>
      this.#visitor?.(this.#keyBytes, this.#keyStart, this.#plain(bytes), end ?? bytes.length);
    const encoder = { encode: (value: Buffer) => value, decode };
    const open = (options: object) => root.openDB<unknown, Uint8Array>(options as { name: string });
    this.#rows = open({ name: 'records', keyEncoder: { writeKey, readKey }, encoder });
    this.#keys = open({ name: 'index', keyEncoder: { writeKey, readKey }, encoder });
    this.#records = open({
      name: 'records',
      keyEncoder: { writeKey: writeRecordKey, readKey },
      encoder,
    }) as unknown as FastReader;
  }

  /** The length of what `record` found. */
  get foundLength(): number {
    return this.#records.lastSize;
  }

  /** The record whose id lies there; its bytes end at `foundLength`. */
  record(
    collection: number,
    ids: Uint8Array,
    at: number,
    options: { transaction: Transaction },
  ): Buffer | undefined {
    const place = this.#place;
    place.collection = collection;
    place.ids = ids;
    place.at = at;
    try {
      const bytes = this.#records.getBinaryFast(place, options);
      return bytes && this.#plain(bytes);
    } catch (error) {
      throw explainDamage(error, this.path);
    }
  }

  /** Walks records and shows each row; yields what `visit` makes of the rows it wants. */
  *rows<Result>(
    range: KeyRange,
    txn: Transaction | undefined,
    visit: RowVisitor<Result>,
  ): Iterable<Result> {
    const rows = this.#rows.getRange(rangeOptions(range, txn))[Symbol.iterator]();
    try {
      for (;;) {
        // Another scan may have run since the last step.
        this.#visitor = visit;
        const step = rows.next();
        if (step.done) return;
        const result = step.value.value as Result | undefined;
        if (result !== undefined) yield result;
      }
    } catch (error) {
      throw explainDamage(error, this.path);
    } finally {
      rows.return?.();
    }
  }

  /** Walks entries of indexes and shows each key, until `visit` has enough. */
  entries(range: KeyRange, txn: Transaction, visit: KeyVisitor): void {
    const keys = this.#keys.getKeys(rangeOptions(range, txn))[Symbol.iterator]();
    try {
      while (!keys.next().done) {
        if (visit(this.#keyBytes, this.#keyStart, this.#keyEnd)) return;
      }
    } catch (error) {
      throw explainDamage(error, this.path);
    } finally {
      keys.return?.();
    }
  }

  #plain(bytes: SharedWindow): Buffer {
    if (bytes !== this.#shared) {
      this.#shared = bytes;
      const length = bytes.maxLength ?? bytes.length;
      this.#window = Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, length);
    }
    return this.#window;
  }
}

/** As `recordKey` makes it, without a key of its own. */
function writeRecordKey(
  { collection, ids, at }: RecordPlace,
  target: Uint8Array,
  start: number,
): number {
  target[start] = collection >>> 24;
  target[start + 1] = collection >>> 16;
  target[start + 2] = collection >>> 8;
  target[start + 3] = collection;
  const to = start + prefixLength;
  for (let i = 0; i < idLength; i++) target[to + i] = ids[at + i]!;
  return to + idLength;
}
