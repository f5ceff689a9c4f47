/**
 * The common API of `open()` and `connect()`: code written against these types works with a
 * database in process or on a server. Types only, so that neither side loads the other.
 */
import type { BackupOptions } from '@millrace/engine/maintain/backup/backup';
import type { BackupPart } from '@millrace/engine/maintain/backup/frames';
import type { ManyResult } from '@millrace/engine/write/bulk-filter';
import type { BulkOperation, BulkResult, BulkWritten } from '@millrace/engine/write/bulk-types';
import type { DroppedCollection, RenamedCollection } from '@millrace/engine/write/catalog-changes';
import type {
  BulkCall,
  CollectionWatchOptions,
  FoundPage,
  GetCall,
  ManyCall,
  ReadCall,
  TransactionHandle,
  UpdateCall,
  Upserted,
  WriteCall,
} from '@millrace/engine/api/collection-port';
import type { Collection } from '@millrace/engine/api/collection';
import type { Patch } from '@millrace/engine/value/documents';
import type { Update } from '@millrace/engine/query/typed-update';
import type { Compacted, CompactOptions } from '@millrace/engine/maintain/compact/compact';
import type { CollectionSummary } from '@millrace/engine/api/database';
import type { DeclaredIndex } from '@millrace/engine/format/entries';
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
import type { DeletedRecord, StoredRecord } from '@millrace/engine/format/record';
import type { CommitResult } from '@millrace/engine/write/requests';
import type { LiveResult } from '@millrace/engine/watch/live';
import type { WatchChange, WatchMessage } from '@millrace/engine/watch/message';

export type {
  BulkCall,
  GetCall,
  ManyCall,
  ReadCall,
  TransactionHandle,
  Update,
  UpdateCall,
  Upserted,
  WriteCall,
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
    definition: DeclaredIndex,
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

  /** The collections with their record counts and indexes, by name. On a server as `status`. */
  collections(): Promise<CollectionSummary[]>;

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
export type CollectionApi<T extends object, In extends object = T> = Omit<
  Collection<T, In>,
  'within'
>;
