import type { Transaction, Database, RootDatabase } from 'lmdb';
import { idLength, prefixLength } from '../../format/keys.js';
import { explainDamage } from './files.js';

export interface KeyRange {
  /** Included, in either direction. */
  start?: Uint8Array;
  /** Excluded, in either direction. */
  end?: Uint8Array;
  reverse?: boolean | undefined;
  limit?: number;
}

/** A bound below every key: no key is a single zero. */
const belowAll = Buffer.of(0);

/** The range as lmdb takes it. */
export function rangeOptions(range: KeyRange, txn: Transaction | undefined) {
  const options: Record<string, unknown> = {};
  // Without an explicit bound lmdb would use its own, byte 5, and skip most of our keys.
  const [start, end] = range.reverse
    ? [range.start, range.end ?? belowAll]
    : [range.start ?? belowAll, range.end];
  if (start) options['start'] = start;
  if (end) options['end'] = end;
  if (range.reverse) options['reverse'] = true;
  if (range.limit !== undefined) options['limit'] = range.limit;
  if (txn) options['transaction'] = txn;
  return options as { start?: Buffer; end?: Buffer };
}

/** Called with each row of a scan in place: the bytes are valid only during the call. */
export type RowVisitor<Result> = (
  keyBytes: Uint8Array,
  keyStart: number,
  valueBytes: Buffer,
  valueEnd: number,
) => Result | undefined;

/** Called with a key in place; true ends the iteration. */
type KeyVisitor = (bytes: Uint8Array, start: number, end: number) => boolean;

/** The place of a record's id, for a handle that writes the key itself. */
interface RecordPlace {
  collection: number;
  ids: Uint8Array;
  at: number;
}

/** lmdb's shared buffer, whose `length` it overrides. */
type SharedWindow = Uint8Array & { readonly maxLength?: number };

/** Members of lmdb's handles that its types leave out. */
interface FastReader {
  getBinaryFast(key: unknown, options: { transaction: Transaction }): SharedWindow | undefined;
  /** Length of the last value read: the bytes are a shared buffer that is longer. */
  lastSize: number;
}

const noBytes = Buffer.alloc(0);

/**
 * Reads that return lmdb's shared buffer, valid until the next read of any kind. Rows that are only
 * inspected are not copied.
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
  /** The same memory as a plain Buffer: lmdb's has extra properties, which make it slow to read. */
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

  /** The record with the id at this offset; its bytes end at `foundLength`. */
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

  /** Iterates over records and yields what `visit` returns for the rows it wants. */
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

  /** Iterates over index entries and passes each key to `visit`, until it returns true. */
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

  /** As `entries`, with the value of each: `visit` must not read anything else. */
  entryRows(
    range: KeyRange,
    txn: Transaction,
    visit: (
      key: Uint8Array,
      start: number,
      end: number,
      value: Buffer,
      valueEnd: number,
    ) => boolean,
  ): void {
    let isDone = false;
    this.#visitor = (key, start, value, valueEnd) => {
      isDone = visit(key, start, this.#keyEnd, value, valueEnd);
    };
    const rows = this.#keys.getRange(rangeOptions(range, txn))[Symbol.iterator]();
    try {
      while (!isDone && !rows.next().done);
    } catch (error) {
      throw explainDamage(error, this.path);
    } finally {
      rows.return?.();
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

/** As `recordKey`, without allocating a key. */
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
