import type { CollectionInfo } from '../core/catalog.js';
import type { Core } from '../core/core.js';
import { checkCollectionName, toDocument } from '../value/documents.js';
import { insert, update, type Target, type WriteOptions } from './operations.js';
import type { ReadView } from '../storage/read-view.js';

/** A record inside a step of `transact`. */
export interface StepRecord<T> {
  readonly id: string;
  readonly key: string;
  readonly data: T;
}

export interface PutOptions extends WriteOptions {
  /** The ULID of a record that does not exist yet; a new one unless given. */
  id?: string | undefined;
}

/**
 * The records of one collection inside a step of `transact`, by key. It sees the writes of its own
 * step. The collection is created with its first record.
 */
export class StepCollection<T extends object> {
  constructor(
    private readonly core: Core,
    private readonly target: Target & { readonly view: ReadView },
    readonly name: string,
  ) {
    checkCollectionName(name);
  }

  /** The document with this key, or undefined. */
  get(key: string): T | undefined {
    const info = this.#find();
    return info && (this.target.byKey(info, key)?.data as T | undefined);
  }

  /** Replaces the document with this key, or creates it. */
  put(key: string, data: T, { id, ttlMs }: PutOptions = {}): void {
    const document = { data: toDocument(data) };
    const info = this.core.collectionNow(this.name);
    if (this.target.byKey(info, key)) update(this.target, info, { key }, document, { ttlMs });
    else insert(this.target, info, document, { id, key, ttlMs });
  }

  /** Deletes the record with this key; false when there is none. */
  delete(key: string): boolean {
    const info = this.#find();
    const record = info && this.target.byKey(info, key);
    if (!record) return false;
    this.target.remove(info, record);
    return true;
  }

  /** All records that have not expired, in order of their ids. */
  all(): StepRecord<T>[] {
    const info = this.#find();
    if (!info) return [];
    const { now, view } = this.target;
    const records = view.scan(info.id, {}, (record) => !record.isExpired(now));
    return [...records] as unknown as StepRecord<T>[];
  }

  #find(): CollectionInfo | undefined {
    return this.core.catalog.find(this.name);
  }
}
