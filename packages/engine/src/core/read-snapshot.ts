import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import { refusePromise, type Core } from './core.js';
import { checkCollectionName, checkKey } from '../value/documents.js';
import { type RecordImage, toStoredRecord, type StoredRecord } from '../format/record.js';
import type { SnapshotView } from '../storage/views.js';
import type { KeyRange } from '../storage/file/in-place.js';
import type { TableRow } from '../storage/file/tables.js';

/** A collection whose records have the type `T`. */
interface TypedCollection<T extends object> {
  readonly name: string;
  getSync(id: string): StoredRecord<T> | undefined;
}

/** One state of the database, read synchronously. Valid only inside `db.read`. */
export class ReadSnapshot {
  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
  ) {}

  /** The last commit that the snapshot contains. */
  get seq(): number {
    return this.view.seq;
  }

  /** The collection, as `db.collection` gives it or by name. */
  collection<T extends object>(collection: TypedCollection<T>): SnapshotCollection<T>;
  collection<T extends object = Record<string, unknown>>(
    collection: { name: string } | string,
  ): SnapshotCollection<T>;
  collection<T extends object>(collection: { name: string } | string): SnapshotCollection<T> {
    const name = typeof collection === 'string' ? collection : collection.name;
    checkCollectionName(name);
    return new SnapshotCollection<T>(this.core, this.view, name);
  }
}

/** The records of one collection in a snapshot. */
class SnapshotCollection<T extends object> {
  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
    private readonly name: string,
  ) {}

  /** The record, or undefined. */
  get(id: string): StoredRecord<T> | undefined {
    const collection = this.core.catalog.find(this.name);
    if (!collection || !isUlid(id)) return undefined;
    return this.#live(this.view.record(collection.id, normalizeUlid(id)));
  }

  /** The record with this key, or undefined. */
  getByKey(key: string): StoredRecord<T> | undefined {
    checkKey(key);
    const collection = this.core.catalog.find(this.name);
    const id = collection && this.view.idOfKey(collection.id, key);
    return id === undefined ? undefined : this.#live(this.view.record(collection!.id, id));
  }

  #live(image: RecordImage | undefined): StoredRecord<T> | undefined {
    if (!image || image.isExpired(this.core.clock.now())) return undefined;
    return toStoredRecord<T>(image);
  }
}

/** Calls `run` with one snapshot of the database. */
export function readSnapshot<Result>(core: Core, run: (snapshot: ReadSnapshot) => Result): Result {
  const view = core.snapshot();
  try {
    const result = run(new ReadSnapshot(core, view));
    refusePromise(result, 'read(run)');
    return result;
  } finally {
    view.done();
  }
}

/**
 * Raw key-value rows beside the records, for a program in the same process that keeps its own order
 * and writes too often to publish each change. They share commits with records and are included in
 * compaction and backups; increments have them with `batches: true`. They are not in the change
 * log, so watches and followers do not have them. Keys have 1 to 1,978 bytes and sort bytewise.
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
