import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { Core } from './core.js';
import { checkCollectionName, checkKey } from '../value/documents.js';
import type { RecordImage } from '../format/record.js';
import type { SnapshotView } from '../storage/views.js';
import { toStoredRecord, type StoredRecord } from '../format/stored-record.js';

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
export class SnapshotCollection<T extends object> {
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

/** Throws when a function that must be synchronous returns a promise. */
export function refusePromise(result: unknown, name: string): void {
  if (!(result instanceof Promise)) return;
  // It continues without its snapshot and fails; no caller can handle that rejection.
  result.catch(() => undefined);
  throw new TypeError(`${name} takes a synchronous function`);
}
