/**
 * The common API of `open()` and `connect()`: code written against these types works with a
 * database in process or on a server. Types only, so that neither side loads the other.
 */
import type { BackupOptions } from '@millrace/engine/maintain/backup/backup';
import type { BackupPart } from '@millrace/engine/maintain/backup/parts';
import type { ManyResult } from '@millrace/engine/write/bulk-filter';
import type { BulkOperation, BulkResult, BulkWritten } from '@millrace/engine/write/bulk-types';
import type { DroppedCollection, RenamedCollection } from '@millrace/engine/write/catalog-changes';
import type { CollectionWatchOptions, FoundPage } from '@millrace/engine/api/collection';
import type { Patch } from '@millrace/engine/value/documents';
import type { Compacted, CompactOptions } from '@millrace/engine/maintain/compact/compact';
import type { IndexDefinition } from '@millrace/engine/format/entries';
import type { AggregateResult } from '@millrace/engine/query/aggregate';
import type {
  AggregateQuery,
  Filter,
  FindOneQuery,
  FindQuery,
  LiveQuery,
  Order,
  Path,
  Projected,
} from '@millrace/engine/query/typed-query';
import type { SchemaInfo, SetSchemaOptions, SetSchemaResult } from '@millrace/engine/write/schemas';
import type { SchemaInput, SchemaOutput, StandardSchema } from '@millrace/engine/core/schema';
import type { DeletedRecord, StoredRecord } from '@millrace/engine/format/stored-record';
import type { CommitResult } from '@millrace/engine/write/transaction-end';
import type { LiveResult } from '@millrace/engine/watch/live';
import type { WatchChange, WatchMessage } from '@millrace/engine/watch/message';

export type {
  AggregateQuery,
  AggregateResult,
  BulkOperation,
  BulkResult,
  BulkWritten,
  CollectionWatchOptions,
  DeletedRecord,
  DroppedCollection,
  Filter,
  FindOneQuery,
  FindQuery,
  FoundPage,
  LiveQuery,
  LiveResult,
  ManyResult,
  Order,
  Patch,
  Path,
  Projected,
  RenamedCollection,
  SchemaInfo,
  SchemaInput,
  SchemaOutput,
  SetSchemaOptions,
  SetSchemaResult,
  StandardSchema,
  StoredRecord,
  WatchChange,
  WatchMessage,
};
export type { Json, JsonObject } from '@millrace/engine/value/documents';
export type { OrderBy } from '@millrace/engine/query/sort';
export type { PlanReport } from '@millrace/engine/query/source';

/** An open transaction, to pass in the options of its calls. */
export interface TransactionHandle {
  readonly id: string;
  /** The commit of its snapshot. */
  readonly readSeq: number;
}

export interface ReadCall {
  /** Reads in this transaction: its snapshot plus its own writes. */
  transaction?: TransactionHandle | undefined;
}

/** A read of one record. */
export interface GetCall<F extends string = string> extends ReadCall {
  /** Dotted paths of the fields of `data` to return. Default: all. */
  fields?: readonly F[] | undefined;
}

export interface WriteCall extends ReadCall {
  /** TTL of the record from now on; 0: never expires; absent: unchanged, or the default. */
  ttlMs?: number | undefined;
  /** Idempotency key: the write can be repeated safely for ten minutes. */
  requestId?: string | undefined;
}

/** A change of a whole record. */
export interface UpdateCall extends WriteCall {
  /** `merge`: the data is a JSON merge patch (RFC 7396). Default: `replace`. */
  mode?: 'replace' | 'merge' | undefined;
}

export interface TransactionOptions {
  /** Read-only transactions never conflict, and followers serve them. */
  readOnly?: boolean | undefined;
  /** Lifetime of each attempt. Default and maximum: 60 s. */
  timeoutMs?: number | undefined;
  /** Maximum attempts when other commits conflict. Default: 10. */
  tries?: number | undefined;
}

/** A transaction with its collections: all calls on them belong to the transaction. */
export interface TransactionScope extends TransactionHandle {
  /** The same collection inside the transaction. */
  collection<T extends object, In extends object>(of: CollectionApi<T, In>): CollectionApi<T, In>;
  collection<T extends object = Record<string, unknown>>(name: string): CollectionApi<T>;
}

/** A transaction that the caller commits or rolls back. */
export interface OpenTransaction extends TransactionScope {
  /** Commits the writes atomically, or refuses TX_CONFLICT and changes nothing. */
  commit(): Promise<CommitResult>;
  rollback(): void | Promise<void>;
}

export interface BeginCall {
  /** Read-only transactions never conflict, and followers serve them. */
  readOnly?: boolean | undefined;
  /** Lifetime of the transaction. Default and maximum: 60 s. */
  lifetimeMs?: number | undefined;
}

export interface BulkCall extends ReadCall {
  /** Stops at the first failure; the rest is NOT_RUN. */
  ordered?: boolean | undefined;
  /** One commit or nothing: a failure refuses the whole call. */
  atomic?: boolean | undefined;
  /** Returns the records as they are after the writes. */
  returnRecords?: boolean | undefined;
  /** Idempotency key: the call can be repeated safely for ten minutes. */
  requestId?: string | undefined;
}

export interface ManyCall extends ReadCall {
  /** Maximum number of changed records. 0 or absent: all. */
  limit?: number | undefined;
  /** Idempotency key: the call can be repeated safely for ten minutes. */
  requestId?: string | undefined;
}

export interface SchemasApi {
  /**
   * Validates every write of the collection with a JSON Schema (2020-12). When existing records do
   * not match, lists them and changes nothing, unless `force` is set. Refuses BAD_SCHEMA.
   */
  set(collection: string, schema: object, options?: SetSchemaOptions): Promise<SetSchemaResult>;
  get(collection: string): Promise<SchemaInfo | undefined>;
  list(): Promise<SchemaInfo[]>;
  /** Returns the commit that removed it. Refuses SCHEMA_NOT_FOUND. */
  remove(collection: string): Promise<number>;
}

/** Changes of collections and indexes. On a server they need admin access. */
export interface CatalogApi {
  /**
   * Deletes the records in commits of 1,000, then the schema and the indexes. Refuses
   * COLLECTION_NOT_FOUND.
   */
  drop(collection: string): Promise<DroppedCollection>;
  /** Moves the records in commits of 1,000. Can be repeated after a failure. */
  rename(collection: string, newName: string): Promise<RenamedCollection>;
  /** Returns before the index is built. The commit is 0 when the index existed. */
  createIndex(
    collection: string,
    definition: IndexDefinition,
  ): Promise<{ index: { state: string }; seq: number }>;
  /** `index` is its fields with commas between. Returns the commit. Refuses INDEX_NOT_FOUND. */
  dropIndex(collection: string, index: string): Promise<number>;
}

export interface DatabaseApi {
  /** The collection with this name. The first write creates it. */
  collection<T extends object = Record<string, unknown>>(name: string): CollectionApi<T>;
  /**
   * The collection with this name. The schema validates every document that is written and gives
   * it its type. Refuses SCHEMA_VIOLATION.
   */
  collection<S extends StandardSchema>(
    name: string,
    schema: S,
  ): CollectionApi<SchemaOutput<S>, SchemaInput<S>>;

  /**
   * Runs `run` in a transaction and commits it atomically. Retries `run` after a conflict, so it
   * must have no side effects outside the database that must not happen twice. An exception rolls
   * back and is rethrown. Calls on collections that are not from `tx.collection` and do not name
   * the transaction are outside of it; a warning says so, once per call site, except in production.
   */
  transaction<Result>(
    run: (tx: TransactionScope) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>;

  /**
   * Begins a transaction that the caller commits or rolls back; `transaction` does this for you.
   */
  begin(options?: BeginCall): Promise<OpenTransaction>;

  /** The JSON Schemas of the collections, which validate the writes of every client. */
  readonly schemas: SchemasApi;

  /** Drops and renames collections, creates and drops indexes. */
  readonly catalog: CatalogApi;

  /** Watches all collections. On a server this requires admin access. */
  watch(options?: DatabaseWatchOptions): AsyncIterableIterator<WatchMessage>;

  /** A consistent online backup: header, data, trailer. */
  backup(options?: BackupOptions): AsyncGenerator<BackupPart, void, void>;

  /** Trims the change log and rewrites the data file, online. */
  compact(options?: Pick<CompactOptions, 'trimBeforeSeq' | 'dryRun'>): Promise<Compacted>;

  /** Finishes calls in flight and closes the database or connection. */
  close(): Promise<void>;
}

export type DatabaseWatchOptions = Omit<CollectionWatchOptions, 'filter' | 'fields'>;

/** The records of one collection, typed. `In` is what a schema accepts on writes. */
export interface CollectionApi<T extends object, In extends object = T> {
  readonly name: string;

  /** Inserts a record, with a generated id unless one is given. Refuses DUPLICATE_ID. */
  insert(data: In, options?: WriteCall & { id?: string }): Promise<StoredRecord<T>>;
  /** Inserts a record with a key. Refuses DUPLICATE_KEY. */
  insertWithKey(key: string, data: In, options?: WriteCall): Promise<StoredRecord<T>>;

  /** The record, or undefined. */
  findById<F extends Path<T> = never>(
    id: string,
    options?: GetCall<F>,
  ): Promise<StoredRecord<Projected<T, F>> | undefined>;
  /** The record with this key, or undefined. */
  findByKey<F extends Path<T> = never>(
    key: string,
    options?: GetCall<F>,
  ): Promise<StoredRecord<Projected<T, F>> | undefined>;

  /** Replaces the document. Refuses RECORD_NOT_FOUND. */
  update(id: string, data: In, options?: UpdateCall): Promise<StoredRecord<T>>;
  /** Applies a JSON merge patch (RFC 7396). */
  merge(id: string, patch: Patch<T>, options?: WriteCall): Promise<StoredRecord<T>>;
  /** Replaces the document of the record with this key. Refuses KEY_NOT_FOUND. */
  updateByKey(key: string, data: In, options?: UpdateCall): Promise<StoredRecord<T>>;
  /** Applies a JSON merge patch (RFC 7396). Refuses KEY_NOT_FOUND. */
  mergeByKey(key: string, patch: Patch<T>, options?: WriteCall): Promise<StoredRecord<T>>;

  /** Replaces the record with this key, or creates it. */
  upsert(key: string, data: In, options?: UpdateCall): Promise<Upserted<T>>;
  /** Merges into the record with this key, or creates it from the patch. */
  upsertMerge(key: string, patch: Patch<T>, options?: WriteCall): Promise<Upserted<T>>;

  /** Replaces the document if its revision is still the given one; 0: if it does not exist. */
  updateIfRev(
    address: { id: string } | { key: string },
    expectedRev: number,
    data: In,
    options?: UpdateCall,
  ): Promise<StoredRecord<T>>;

  /** Deletes the record and returns its last state. Refuses RECORD_NOT_FOUND. */
  delete(id: string, options?: WriteCall): Promise<DeletedRecord<T>>;
  /** Deletes the record with this key and returns its last state. Refuses KEY_NOT_FOUND. */
  deleteByKey(key: string, options?: WriteCall): Promise<DeletedRecord<T>>;

  /** Inserts up to 10,000 records in one commit, or none of them. */
  insertMany(documents: readonly In[], options?: WriteCall): Promise<StoredRecord<T>[]>;
  /** Up to 10,000 writes. Each has its own result, unless `atomic`. */
  bulkWrite(
    operations: readonly BulkOperation<T, In>[],
    options?: BulkCall,
  ): Promise<BulkWritten<T>>;
  /** Applies a merge patch to all matching records, in commits of 1,000. `{}` matches all. */
  updateMany(filter: Filter<T>, patch: Patch<T>, options?: ManyCall): Promise<ManyResult>;
  /** Deletes all matching records, in commits of 1,000. `{}` matches all. */
  deleteMany(filter: Filter<T>, options?: ManyCall): Promise<ManyResult>;

  /** One page of matching records. Default `limit` 100, maximum 10,000. */
  find<F extends Path<T> = never>(
    query?: FindQuery<T, F>,
    options?: ReadCall,
  ): Promise<FoundPage<Projected<T, F>>>;
  /** Iterates over all matching records of one snapshot. */
  stream<F extends Path<T> = never>(
    query?: FindQuery<T, F>,
    options?: ReadCall,
  ): AsyncGenerator<StoredRecord<Projected<T, F>>, void, void>;
  /** The first matching record, or undefined. */
  findOne<F extends Path<T> = never>(
    query?: FindOneQuery<T, F>,
    options?: ReadCall,
  ): Promise<StoredRecord<Projected<T, F>> | undefined>;
  /** Number of matching records. */
  count(filter?: Filter<T>, options?: ReadCall): Promise<number>;
  /** Groups matching records and computes aggregates per group. */
  aggregate(
    query: AggregateQuery<T>,
    options?: ReadCall,
  ): Promise<AggregateResult & { readSeq: number }>;

  /**
   * Watches changes from now on, or from the position in the options. Each commit is one message.
   */
  watch<F extends Path<T> = never>(
    options?: CollectionWatchOptions<T, F>,
  ): AsyncIterableIterator<WatchMessage<WatchChange<Projected<T, F>>>>;
  /** The matching records now, and the new result after every commit that changes it. */
  live(query?: LiveQuery<T>): AsyncIterableIterator<LiveResult<T>>;
}

export interface Upserted<T> {
  record: StoredRecord<T>;
  /** True when the record was created. */
  created: boolean;
}
