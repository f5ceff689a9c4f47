import type { Database } from './database.js';
import { checkKey } from './documents.js';
import type { Outcome } from './requests.js';
import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { RecordImage } from './record.js';
import { toStoredRecord, type StoredRecord } from './stored-record.js';
import type { Transaction } from './transactions.js';
import type { CallOptions } from './writes.js';

/** A merge patch of T (RFC 7396): null removes a field, objects merge, the rest replaces. */
export type Patch<T> = T extends unknown[]
  ? T
  : T extends object
    ? { [Field in keyof T]?: Patch<T[Field]> | null }
    : T;

export interface ReadOptions {
  /** Reads inside this transaction: its snapshot and its own writes. */
  transaction?: Transaction | undefined;
}

/** The records of one collection, typed. */
export class Collection<T extends object> {
  constructor(
    private readonly database: Database,
    readonly name: string,
  ) {}

  async insert(data: T, options: CallOptions & { id?: string } = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.insert(this.name, data, options));
  }

  async insertWithKey(key: string, data: T, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.insert(this.name, data, { ...options, key }));
  }

  /** The record, or undefined. */
  async findById(id: string, options: ReadOptions = {}): Promise<StoredRecord<T> | undefined> {
    if (!isUlid(id)) return undefined;
    return shown(this.database.reads.byId(this.name, normalizeUlid(id), options.transaction));
  }

  async findByKey(key: string, options: ReadOptions = {}): Promise<StoredRecord<T> | undefined> {
    checkKey(key);
    return shown(this.database.reads.byKey(this.name, key, options.transaction));
  }

  /** Replaces the document. Refuses RECORD_NOT_FOUND. */
  async update(id: string, data: T, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.update(this.name, { id }, data, options));
  }

  /** Changes parts of the document by RFC 7396. */
  async merge(id: string, patch: Patch<T>, options: CallOptions = {}): Promise<StoredRecord<T>> {
    const merging = { ...options, mode: 'merge' } as const;
    return written(await this.database.writes.update(this.name, { id }, patch, merging));
  }

  async updateByKey(key: string, data: T, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.update(this.name, { key }, data, options));
  }

  async mergeByKey(
    key: string,
    patch: Patch<T>,
    options: CallOptions = {},
  ): Promise<StoredRecord<T>> {
    const merging = { ...options, mode: 'merge' } as const;
    return written(await this.database.writes.update(this.name, { key }, patch, merging));
  }

  /** Replaces the record with this key, or makes it. */
  async upsert(
    key: string,
    data: T,
    options: CallOptions = {},
  ): Promise<{ record: StoredRecord<T>; created: boolean }> {
    const outcome = await this.database.writes.upsert(this.name, key, data, options);
    return { record: written(outcome), created: outcome.created };
  }

  /** Merges into the record with this key, or makes it of the patch. */
  async upsertMerge(
    key: string,
    patch: Patch<T>,
    options: CallOptions = {},
  ): Promise<{ record: StoredRecord<T>; created: boolean }> {
    const merging = { ...options, mode: 'merge' } as const;
    const outcome = await this.database.writes.upsert(this.name, key, patch, merging);
    return { record: written(outcome), created: outcome.created };
  }

  /** Replaces the document if its revision is still the one given; 0: if there is none yet. */
  async updateIfRev(
    address: { id: string } | { key: string },
    expectedRev: number,
    data: T,
    options: CallOptions = {},
  ): Promise<StoredRecord<T>> {
    const { writes } = this.database;
    return written(await writes.updateIfRev(this.name, address, expectedRev, data, options));
  }

  /** Removes the record and returns it as it was. Refuses RECORD_NOT_FOUND. */
  async delete(id: string, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.remove(this.name, { id }, options));
  }

  async deleteByKey(key: string, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.remove(this.name, { key }, options));
  }
}

function written<T>(outcome: Outcome): StoredRecord<T> {
  return toStoredRecord<T>(outcome.record!);
}

function shown<T>(image: RecordImage | undefined): StoredRecord<T> | undefined {
  return image && toStoredRecord<T>(image);
}
