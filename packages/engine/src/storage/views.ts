import type { Transaction } from 'lmdb';
import type { Codec } from '../format/codec.js';
import { RecordImage, type IdInPlace } from '../format/record.js';
import {
  expiryHeadLength,
  expiryKey,
  expiryKinds,
  idLength,
  prefixed,
  prefixKey,
  prefixLength,
  readId,
  recordKey,
} from '../format/keys.js';
import type { RowVisitor, KeyRange } from './file/in-place.js';
import { type OverlayRow, nameOf } from './overlay/overlay.js';
import { layeredRange, type Store, type StoreSnapshot } from './store.js';
import type { TableName, TableRow } from './file/tables.js';
import type { Writer } from './writer.js';

const noBytes = new Uint8Array(0);

/** The codec of the records of a collection: one that is migrated has its own. */
export type CodecOf = (collection: number) => Codec;

/** Common to both views: converts rows to records and entries. */
abstract class RowView implements ReadView {
  constructor(
    protected readonly codecOf: CodecOf,
    readonly seq: number,
  ) {}

  abstract get(table: TableName, key: Buffer): Buffer | undefined;
  abstract rows(table: TableName, range: KeyRange): Iterable<TableRow>;
  abstract scan(collection: number, range: IdRange, test: RecordTest): Iterable<RecordImage>;

  record(collection: number, id: string): RecordImage | undefined {
    const bytes = this.get('records', recordKey(collection, id));
    return bytes && new RecordImage(id, bytes, bytes.length, this.codecOf(collection));
  }

  idOfKey(collection: number, key: string): string | undefined {
    const bytes = this.get('keys', prefixed(collection, Buffer.from(key)));
    return bytes && readId(bytes, 0);
  }

  idOfUnique(index: number, values: Uint8Array): string | undefined {
    const bytes = this.get('unique', prefixed(index, values));
    return bytes && readId(bytes, 0);
  }

  recordAt(collection: number, ids: Uint8Array, at: number): RecordImage | undefined {
    return this.record(collection, readId(ids, at));
  }

  entries(index: number, range: EntryRange, visit: EntryVisit): void {
    for (const { key } of this.rows('index', entryBounds(index, range))) {
      if (visit(key, prefixLength, key.length - idLength)) return;
    }
  }

  entryRows(index: number, range: EntryRange, visit: EntryRowVisit): void {
    for (const { key, value } of this.rows('index', entryBounds(index, range))) {
      if (visit(key, prefixLength, key.length, value, value.length)) return;
    }
  }

  expired(collection: number, now: number, max: number): readonly string[] | undefined {
    const ids: string[] = [];
    let count = 0;
    for (const { key } of this.rows('expiry', { end: expiryKey(now + 1, 0, noBytes) })) {
      if (++count > max) return undefined;
      const owner = key[6] === expiryKinds.record ? key.readUInt32BE(expiryHeadLength) : 0;
      if (owner === collection) ids.push(readId(key, expiryHeadLength + prefixLength));
    }
    return ids.filter((id) => this.record(collection, id)?.isExpired(now));
  }
}

/**
 * A snapshot for readers: a read transaction of LMDB and the rows in the overlay when it started.
 * Release it with `done()`.
 */
export class SnapshotView extends RowView {
  readonly #snapshot: StoreSnapshot;
  readonly #txn: Transaction;
  readonly #options: { transaction: Transaction };
  // Reused for all: an image is read before the next one, or copied.
  readonly #place: IdInPlace = { bytes: noBytes, at: 0 };
  #isDone = false;
  #reason: Error | undefined;

  constructor(
    private readonly store: Store,
    codecOf: CodecOf,
    seq: number,
    private readonly onDone: (view: SnapshotView) => void,
  ) {
    super(codecOf, seq);
    this.#txn = store.tables.snapshot();
    this.#snapshot = store.snapshot();
    this.#options = { transaction: this.#txn };
  }

  /** The last batch of the log that it has. */
  get lsn(): number {
    return this.#snapshot.lsn;
  }

  get(table: TableName, key: Buffer): Buffer | undefined {
    if (this.#isDone) throw this.#ended();
    const newer = this.#newer(table, key);
    return newer ? newer.value : this.#snapshot.tables.get(table, key, this.#txn);
  }

  rows(table: TableName, range: KeyRange): Iterable<TableRow> {
    const { tables, layers, lsn } = this.#snapshot;
    return this.#whileOpen(() => layeredRange(tables, layers, lsn, table, range, this.#txn));
  }

  override recordAt(collection: number, ids: Uint8Array, at: number): RecordImage | undefined {
    if (this.#isDone) throw this.#ended();
    if (this.#hasNewer('records')) {
      const newer = this.#newerNamed('records', recordName(collection, ids, at));
      if (newer) return newer.value && this.#imageOf(newer.key, newer.value);
    }
    const { inPlace } = this.#snapshot.tables;
    const bytes = inPlace.record(collection, ids, at, this.#options);
    if (!bytes) return undefined;
    this.#place.bytes = ids;
    this.#place.at = at;
    return new RecordImage(this.#place, bytes, inPlace.foundLength, this.codecOf(collection));
  }

  override entries(index: number, range: EntryRange, visit: EntryVisit): void {
    if (this.#isDone) throw this.#ended();
    const bounds = entryBounds(index, range);
    if (this.#isNewer('index', bounds)) return super.entries(index, range, visit);
    this.#snapshot.tables.inPlace.entries(bounds, this.#txn, (bytes, start, end) =>
      visit(bytes, start + prefixLength, end - idLength),
    );
  }

  override entryRows(index: number, range: EntryRange, visit: EntryRowVisit): void {
    if (this.#isDone) throw this.#ended();
    const bounds = entryBounds(index, range);
    if (this.#isNewer('index', bounds)) return super.entryRows(index, range, visit);
    this.#snapshot.tables.inPlace.entryRows(bounds, this.#txn, (key, start, end, value, valueEnd) =>
      visit(key, start + prefixLength, end, value, valueEnd),
    );
  }

  scan(collection: number, range: IdRange, test: RecordTest): Iterable<RecordImage> {
    const bounds = scanBounds(collection, range);
    if (this.#isNewer('records', bounds))
      return this.#whileOpen(() => this.#scanRows(bounds, test));
    const codec = this.codecOf(collection);
    const place = this.#place;
    const visit: RowVisitor<RecordImage> = (keys, at, bytes, end) => {
      place.bytes = keys;
      place.at = at + prefixLength;
      const image = new RecordImage(place, bytes, end, codec);
      return test(image) ? image.keep() : undefined;
    };
    const { inPlace } = this.#snapshot.tables;
    return this.#whileOpen(() => inPlace.rows(bounds, this.#txn, visit));
  }

  /** Releases the snapshot. Later reads throw `reason`. */
  done(reason?: Error): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#reason = reason;
    this.#txn.done();
    this.store.endSnapshot();
    this.onDone(this);
  }

  *#scanRows(bounds: KeyRange, test: RecordTest): Iterable<RecordImage> {
    for (const { key, value } of this.rows('records', bounds)) {
      const image = this.#imageOf(key, value);
      if (test(image)) yield image;
    }
  }

  #imageOf(key: Buffer, value: Buffer): RecordImage {
    const codec = this.codecOf(key.readUInt32BE(0));
    return new RecordImage({ bytes: key, at: prefixLength }, value, value.length, codec);
  }

  #hasNewer(table: TableName): boolean {
    return this.#snapshot.layers.some((layer) => layer.has(table));
  }

  /** The row of the overlay; undefined when only the file has it. */
  #newer(table: TableName, key: Buffer): OverlayRow | undefined {
    return this.#snapshot.layers.length === 0 ? undefined : this.#newerNamed(table, nameOf(key));
  }

  #newerNamed(table: TableName, name: string): OverlayRow | undefined {
    const { layers, lsn } = this.#snapshot;
    for (const layer of layers) {
      const row = layer.find(table, name, lsn);
      if (row) return row;
    }
    return undefined;
  }

  /** Whether the overlay has rows in this range. */
  #isNewer(table: TableName, range: KeyRange): boolean {
    const { layers, lsn } = this.#snapshot;
    for (const layer of layers) {
      for (const _row of layer.range(table, range, lsn)) return true;
    }
    return false;
  }

  /** Created only when it is thrown: every read releases a snapshot, and errors are expensive. */
  #ended(): Error {
    return this.#reason ?? new Error('The snapshot was given back');
  }

  /** lmdb would continue to read from a released snapshot, or crash. */
  *#whileOpen<Row>(rows: () => Iterable<Row>): Iterable<Row> {
    if (this.#isDone) throw this.#ended();
    const steps = rows()[Symbol.iterator]();
    try {
      for (;;) {
        const step = steps.next();
        if (step.done) return;
        yield step.value;
        if (this.#isDone) throw this.#ended();
      }
    } finally {
      if (!this.#isDone) steps.return?.();
    }
  }
}

/** The writer's view: the file and all writes that are not in it yet. */
export class WriterView<State extends { seq: number }> extends RowView {
  constructor(
    private readonly writer: Writer<State>,
    codecOf: CodecOf,
  ) {
    super(codecOf, writer.state.seq);
  }

  get(table: TableName, key: Buffer): Buffer | undefined {
    return this.writer.get(table, key);
  }

  rows(table: TableName, range: KeyRange): Iterable<TableRow> {
    return this.writer.range(table, range);
  }

  *scan(collection: number, range: IdRange, test: RecordTest): Iterable<RecordImage> {
    const codec = this.codecOf(collection);
    for (const { key, value } of this.rows('records', scanBounds(collection, range))) {
      const image = new RecordImage(readId(key, prefixLength), value, value.length, codec);
      if (test(image)) yield image;
    }
  }
}

function entryBounds(index: number, { start, end, reverse }: EntryRange): KeyRange {
  return { start: prefixed(index, start), end: prefixed(index, end), reverse };
}

function scanBounds(collection: number, range: IdRange): KeyRange {
  if (range.reverse) {
    const start = range.after ? recordKey(collection, range.after) : prefixKey(collection + 1);
    if (range.after) stepBack(start);
    return { start, end: beforeFirst(collection), reverse: true };
  }
  const start = range.after
    ? Buffer.concat([recordKey(collection, range.after), Buffer.of(0)])
    : prefixKey(collection);
  return { start, end: prefixKey(collection + 1) };
}

/** Changes `key` to the greatest key of its length below it. */
function stepBack(key: Buffer): void {
  for (let i = key.length - 1; i >= prefixLength; i--) {
    if (key[i]! > 0) {
      key[i]!--;
      return;
    }
    key[i] = 0xff;
  }
}

// One buffer for all names: a page of records needs many.
const nameBytes = Buffer.alloc(prefixLength + idLength);

/** The row name of the record with the id at `at` in `ids`. */
function recordName(collection: number, ids: Uint8Array, at: number): string {
  nameBytes.writeUInt32BE(collection, 0);
  for (let i = 0; i < idLength; i++) nameBytes[prefixLength + i] = ids[at + i]!;
  return nameOf(nameBytes);
}

/** A bound below every record of the collection and above all lower collections. */
function beforeFirst(collection: number): Buffer {
  return prefixKey(collection);
}

/**
 * One consistent state of the database: a snapshot for readers, or the writer's own view with the
 * writes that are not on disk yet. Queries, checks and index builds work on either. Everything is
 * synchronous; callers split long scans into slices and continue from the last position.
 */
export interface ReadView {
  /** The last commit in this view. */
  readonly seq: number;
  get(table: TableName, key: Buffer): Buffer | undefined;
  /** The record, even if it has expired: callers check `isExpired`. */
  record(collection: number, id: string): RecordImage | undefined;
  /** As `record`, by the 16 bytes of an id. The image is in place: valid until the next read. */
  recordAt(collection: number, ids: Uint8Array, at: number): RecordImage | undefined;
  /** The id of the record with this key. */
  idOfKey(collection: number, key: string): string | undefined;
  /**
   * The id of the record with these values in a unique index (encoded as in format/encoding.ts).
   */
  idOfUnique(index: number, values: Uint8Array): string | undefined;
  /**
   * Records of a collection in id order. `test` gets each image in place (valid only during the
   * call) and selects records, which are returned as copies.
   */
  scan(collection: number, range: IdRange, test: RecordTest): Iterable<RecordImage>;
  /**
   * Calls `visit` with the entries of an index from `start` (included) to `end` (excluded) in the
   * direction of the range: in reverse `start` is the higher bound.
   */
  entries(index: number, range: EntryRange, visit: EntryVisit): void;
  /** As `entries`, with what is stored beside each. `visit` must not read anything else. */
  entryRows(index: number, range: EntryRange, visit: EntryRowVisit): void;
  /**
   * Ids of the expired records of a collection that are not removed yet; undefined when more than
   * `max` rows of any kind have expired.
   */
  expired(collection: number, now: number, max: number): readonly string[] | undefined;
}

/** Called for every record of a scan. */
export type RecordTest = (image: RecordImage) => boolean;

export interface IdRange {
  /** Start after this id, in the direction of the scan. */
  after?: string | undefined;
  reverse?: boolean | undefined;
}

export interface EntryRange {
  start: Uint8Array;
  end: Uint8Array;
  reverse?: boolean | undefined;
}

/**
 * Called with an index entry in place, valid only during the call: its encoded values, without the
 * index prefix, start at `start` and the 16 bytes of its id at `idAt`. True ends the iteration.
 */
export type EntryVisit = (bytes: Uint8Array, start: number, idAt: number) => boolean;

/** Called with a row in place: `key`, without the index prefix, from `start` to `end`. */
export type EntryRowVisit = (
  key: Uint8Array,
  start: number,
  end: number,
  value: Buffer,
  valueEnd: number,
) => boolean;
