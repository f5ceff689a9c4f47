/**
 * What `open()` and `connect()` have in common: a program written against these types does not
 * know whether its database is in the same process or behind a connection. Types alone, so that
 * neither side loads the other.
 */
import type { BackupOptions } from './engine/backup/backup.js';
import type { BackupPart } from './engine/backup/parts.js';
import type { CollectionWatchOptions, FoundPage, Patch } from './engine/collection.js';
import type { Compacted, CompactOptions } from './engine/compact/compact.js';
import type { AggregateResult } from './engine/query/aggregate.js';
import type { AggregateQuery } from './engine/query/aggregate-query.js';
import type { Filter } from './engine/query/filter.js';
import type { FindQuery } from './engine/query/query.js';
import type { DeletedRecord, StoredRecord } from './engine/stored-record.js';
import type { CommitResult } from './engine/transaction-end.js';
import type { LiveQuery, LiveResult } from './engine/watch/live.js';
import type { WatchChange, WatchMessage } from './engine/watch/message.js';

export type {
  AggregateQuery,
  AggregateResult,
  CollectionWatchOptions,
  DeletedRecord,
  Filter,
  FindQuery,
  FoundPage,
  LiveQuery,
  LiveResult,
  Patch,
  StoredRecord,
  WatchChange,
  WatchMessage,
};
export type { Json, JsonObject } from './engine/documents.js';
export type { OrderBy } from './engine/query/sort.js';
export type { PlanReport } from './engine/query/source.js';

/** A transaction under way, to be named in the options of the calls that belong to it. */
export interface TransactionHandle {
  readonly id: string;
  /** The commit whose state it reads. */
  readonly readSeq: number;
}

export interface ReadCall {
  /** Reads inside this transaction: its snapshot and its own writes. */
  transaction?: TransactionHandle | undefined;
}

/** A read of one record. */
export interface GetCall extends ReadCall {
  /** Dotted paths of the parts of `data` to return. Left out: all. */
  fields?: readonly string[] | undefined;
}

export interface WriteCall extends ReadCall {
  /** How long the record lives from now; 0: for ever; absent: as before, or the default. */
  ttlMs?: number | undefined;
  /** Makes the write safe to repeat for ten minutes. */
  requestId?: string | undefined;
}

export interface TransactionOptions {
  /** It will not write. Such a transaction never conflicts, and a follower serves it. */
  readOnly?: boolean | undefined;
  /** How long each try may live: 60 s unless told, and at most. */
  timeoutMs?: number | undefined;
  /** How often `run` is called at most, when others keep changing what it read: 10 unless told. */
  tries?: number | undefined;
}

/** A transaction that its caller brings to an end. */
export interface OpenTransaction extends TransactionHandle {
  /** Makes the writes one commit, or refuses TX_CONFLICT and changes nothing. */
  commit(): Promise<CommitResult>;
  rollback(): void | Promise<void>;
}

export interface BeginCall {
  /** It will not write. Such a transaction never conflicts, and a follower serves it. */
  readOnly?: boolean | undefined;
  /** How long it may live: 60 s unless told, and at most. */
  lifetimeMs?: number | undefined;
}

export interface DatabaseApi {
  /** The collection of this name. It comes into being with its first record. */
  collection<T extends object = Record<string, unknown>>(name: string): CollectionApi<T>;

  /**
   * Calls `run` with a transaction and commits what it did, all of it or none. When another commit
   * changed what it read, `run` is called again, so it must do nothing outside the database that
   * may not happen twice. A throw rolls back and comes out.
   */
  transaction<Result>(
    run: (transaction: TransactionHandle) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>;

  /** Begins a transaction that the caller commits or rolls back; `transaction` does all of it. */
  begin(options?: BeginCall): Promise<OpenTransaction>;

  /** Follows the changes of all collections. Behind a connection it needs admin access. */
  watch(options?: DatabaseWatchOptions): AsyncIterableIterator<WatchMessage>;

  /** A backup of one moment while the database serves: header, data, trailer. */
  backup(options?: BackupOptions): AsyncGenerator<BackupPart, void, void>;

  /** Trims the change log and rewrites the data file while the database serves. */
  compact(options?: Pick<CompactOptions, 'trimBeforeSeq' | 'dryRun'>): Promise<Compacted>;

  /** Finishes what is under way and lets go. */
  close(): Promise<void>;
}

export type DatabaseWatchOptions = Omit<CollectionWatchOptions, 'filter' | 'fields'>;

/** The records of one collection, typed. */
export interface CollectionApi<T extends object> {
  readonly name: string;

  /** Stores a new record, under an id of its own unless one is given. Refuses DUPLICATE_ID. */
  insert(data: T, options?: WriteCall & { id?: string }): Promise<StoredRecord<T>>;
  /** Stores a new record under a key of your own. Refuses DUPLICATE_KEY. */
  insertWithKey(key: string, data: T, options?: WriteCall): Promise<StoredRecord<T>>;

  /** The record, or undefined. */
  findById(id: string, options?: GetCall): Promise<StoredRecord<T> | undefined>;
  /** The record with this key, or undefined. */
  findByKey(key: string, options?: GetCall): Promise<StoredRecord<T> | undefined>;

  /** Replaces the document. Refuses RECORD_NOT_FOUND. */
  update(id: string, data: T, options?: WriteCall): Promise<StoredRecord<T>>;
  /** Changes parts of the document by RFC 7396. */
  merge(id: string, patch: Patch<T>, options?: WriteCall): Promise<StoredRecord<T>>;
  /** Replaces the document of the record with this key. Refuses KEY_NOT_FOUND. */
  updateByKey(key: string, data: T, options?: WriteCall): Promise<StoredRecord<T>>;
  /** Changes parts of it by RFC 7396. Refuses KEY_NOT_FOUND. */
  mergeByKey(key: string, patch: Patch<T>, options?: WriteCall): Promise<StoredRecord<T>>;

  /** Replaces the record with this key, or makes it. */
  upsert(key: string, data: T, options?: WriteCall): Promise<Upserted<T>>;
  /** Merges into the record with this key, or makes it of the patch. */
  upsertMerge(key: string, patch: Patch<T>, options?: WriteCall): Promise<Upserted<T>>;

  /** Replaces the document if its revision is still the one given; 0: if there is none yet. */
  updateIfRev(
    address: { id: string } | { key: string },
    expectedRev: number,
    data: T,
    options?: WriteCall,
  ): Promise<StoredRecord<T>>;

  /** Removes the record and returns it as it was. Refuses RECORD_NOT_FOUND. */
  delete(id: string, options?: WriteCall): Promise<DeletedRecord<T>>;
  /** Removes the record with this key and returns it as it was. Refuses KEY_NOT_FOUND. */
  deleteByKey(key: string, options?: WriteCall): Promise<DeletedRecord<T>>;

  /** One page of the records that match: 100 unless `limit` says otherwise, 10,000 at most. */
  find(query?: FindQuery, options?: ReadCall): Promise<FoundPage<T>>;
  /** Every record that matches, one after the other, all from one snapshot. */
  stream(query?: FindQuery, options?: ReadCall): AsyncGenerator<StoredRecord<T>, void, void>;
  /** The first record that matches, or undefined. */
  findOne(
    query?: Omit<FindQuery, 'limit'>,
    options?: ReadCall,
  ): Promise<StoredRecord<T> | undefined>;
  /** How many records match. */
  count(filter?: Filter, options?: ReadCall): Promise<number>;
  /** Groups the records that match and computes over each group. */
  aggregate(
    query: AggregateQuery,
    options?: ReadCall,
  ): Promise<AggregateResult & { readSeq: number }>;

  /** Follows the changes from now on, or from where the options say. Each commit is one message. */
  watch(options?: CollectionWatchOptions): AsyncIterableIterator<WatchMessage<WatchChange<T>>>;
  /** The records that match now, and the result anew after every commit that changes it. */
  live(query?: LiveQuery): AsyncIterableIterator<LiveResult<T>>;
}

export interface Upserted<T> {
  record: StoredRecord<T>;
  /** True when there was none before. */
  created: boolean;
}
