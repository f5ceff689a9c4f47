import {
  bulkWrite,
  insertMany,
  mergeMany,
  type BulkCallOptions,
  type BulkParts,
  type ManyOptions,
  type ManyResult,
} from './bulk-collection.js';
import type { BulkOperation, BulkWritten } from '../write/bulk-types.js';
import { checkKey, toDocument, type Patch } from '../value/documents.js';
import { notFoundById, notFoundByKey, type Address } from '../write/operations.js';
import type { Outcome } from '../write/requests.js';
import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { AggregateResult } from '../query/aggregate.js';
import { plainFilter, plainQuery } from '../query/plain-query.js';
import { compilePredicate } from '../query/predicate.js';
import { checkFind } from '../query/query.js';
import type {
  AggregateQuery,
  Filter,
  FindOneQuery,
  FindQuery,
  LiveQuery,
  Path,
  Projected,
} from '../query/typed-query.js';
import type { PlanReport } from '../query/source.js';
import type { Queries } from '../write/queries.js';
import type { Reads } from '../write/reads.js';
import type { RecordImage } from '../format/record.js';
import { UsageError } from '@millrace/kit/errors';
import {
  mergeChecked,
  mergeNotValidated,
  validated,
  validatedOperations,
  type StandardSchema,
} from '../core/schema.js';
import { toStoredRecord, type DeletedRecord, type StoredRecord } from '../format/stored-record.js';
import { warnOutside } from './transaction-scope.js';
import type { Transaction } from '../write/transactions.js';
import { live, type LiveResult } from '../watch/live.js';
import { showChange, type WatchChange, type WatchMessage } from '../watch/message.js';
import { isMerge, type UpdateMode } from '../value/update-mode.js';
import type { Watches, WatchOptions } from '../watch/watches.js';
import type { CallOptions, Writes } from '../write/writes.js';

export interface ReadOptions {
  /** Reads inside this transaction: its snapshot and its own writes. */
  transaction?: Transaction | undefined;
}

/** A read of one record. */
export interface GetOptions<F extends string = string> extends ReadOptions {
  /** Dotted paths of the fields of `data` to return. Default: all. */
  fields?: readonly F[] | undefined;
}

/** A change of a whole record. */
export interface UpdateOptions extends CallOptions {
  /** `merge`: the data is a merge patch (RFC 7396). Default: `replace`. */
  mode?: UpdateMode | undefined;
}

export interface FoundPage<T> {
  records: StoredRecord<T>[];
  /** Hand it to the next `find` of the same query for the page after this; "" on the last one. */
  nextCursor: string;
  /** The commit whose state was read. */
  readSeq: number;
  /** How the query was carried out, when `explain` asked for it. */
  plan?: PlanReport;
}

/** Options of a watch of one collection; see `WatchOptions`. */
export type CollectionWatchOptions<T = never, F extends string = string> = Pick<
  WatchOptions,
  'resumeToken' | 'startSeq' | 'includeInitial' | 'includeBefore' | 'heartbeatMs' | 'signal'
> & {
  filter?: Filter<T> | undefined;
  /** Dotted paths of the fields of `data` to show. Default: all. */
  fields?: readonly F[] | undefined;
};

const pageRecords = 100;
const maxPageRecords = 10_000;

/** The parts of an open database that a collection works on. */
interface DatabaseParts extends BulkParts {
  readonly reads: Reads;
  readonly writes: Writes;
  readonly queries: Queries;
  readonly watches: Watches;
}

/** What a collection applies to all its calls. */
interface CollectionScope {
  /** Validates every document that is written. */
  readonly schema?: StandardSchema | undefined;
  /** The transaction that the calls belong to unless their options name another. */
  readonly transaction?: Transaction | undefined;
}

/** The records of one collection, typed. */
export class Collection<T extends object, In extends object = T> {
  readonly #scope: CollectionScope;

  constructor(
    private readonly database: DatabaseParts,
    readonly name: string,
    scope: CollectionScope = {},
  ) {
    this.#scope = scope;
  }

  /** This collection inside a transaction of the same database. */
  within(transaction: Transaction, database: object): Collection<T, In> {
    if (this.database !== database) {
      throw new UsageError(`The collection "${this.name}" belongs to another database.`);
    }
    return new Collection<T, In>(this.database, this.name, { ...this.#scope, transaction });
  }

  /** Stores a new record, under an id of its own unless one is given. Refuses DUPLICATE_ID. */
  async insert(data: In, options: CallOptions & { id?: string } = {}): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return written(await this.database.writes.insert(this.name, document, call));
  }

  /** Stores a new record under a key of your own. Refuses DUPLICATE_KEY. */
  async insertWithKey(key: string, data: In, options: CallOptions = {}): Promise<StoredRecord<T>> {
    const call = { ...this.#call(options), key };
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return written(await this.database.writes.insert(this.name, document, call));
  }

  /** The record, or undefined. */
  async findById<F extends Path<T> = never>(
    id: string,
    options: GetOptions<F> = {},
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    const { transaction, fields } = this.#call(options);
    if (!isUlid(id)) return undefined;
    return shown(this.database.reads.byId(this.name, normalizeUlid(id), transaction), fields);
  }

  /** The record with this key, or undefined. */
  async findByKey<F extends Path<T> = never>(
    key: string,
    options: GetOptions<F> = {},
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    const { transaction, fields } = this.#call(options);
    checkKey(key);
    return shown(this.database.reads.byKey(this.name, key, transaction), fields);
  }

  /** As `findById`, at once: for programs in the same process. */
  getSync(id: string): StoredRecord<T> | undefined {
    if (!isUlid(id)) return undefined;
    const image = this.database.reads.byId(this.name, normalizeUlid(id), this.#transaction());
    return image && toStoredRecord<T>(image);
  }

  /** As `findByKey`, at once. */
  getByKeySync(key: string): StoredRecord<T> | undefined {
    checkKey(key);
    const image = this.database.reads.byKey(this.name, key, this.#transaction());
    return image && toStoredRecord<T>(image);
  }

  /** Replaces the document. Refuses RECORD_NOT_FOUND. */
  async update(
    id: string,
    data: In,
    { mode, ...options }: UpdateOptions = {},
  ): Promise<StoredRecord<T>> {
    if (isMerge(mode)) return this.merge(id, data as unknown as Patch<T>, options);
    return this.#update({ id }, data, options);
  }

  /** Changes parts of the document by RFC 7396. */
  async merge(id: string, patch: Patch<T>, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return this.#merge({ id }, patch, options);
  }

  /** Replaces the document of the record with this key. Refuses KEY_NOT_FOUND. */
  async updateByKey(
    key: string,
    data: In,
    { mode, ...options }: UpdateOptions = {},
  ): Promise<StoredRecord<T>> {
    if (isMerge(mode)) return this.mergeByKey(key, data as unknown as Patch<T>, options);
    return this.#update({ key }, data, options);
  }

  /** Changes parts of it by RFC 7396. Refuses KEY_NOT_FOUND. */
  async mergeByKey(
    key: string,
    patch: Patch<T>,
    options: CallOptions = {},
  ): Promise<StoredRecord<T>> {
    return this.#merge({ key }, patch, options);
  }

  /** Replaces the record with this key, or makes it. */
  async upsert(
    key: string,
    data: In,
    { mode, ...options }: UpdateOptions = {},
  ): Promise<{ record: StoredRecord<T>; created: boolean }> {
    if (isMerge(mode)) return this.upsertMerge(key, data as unknown as Patch<T>, options);
    const call = this.#call(options);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    const outcome = await this.database.writes.upsert(this.name, key, document, call);
    return { record: written(outcome), created: outcome.created };
  }

  /** Merges into the record with this key, or makes it of the patch. */
  async upsertMerge(
    key: string,
    patch: Patch<T>,
    options: CallOptions = {},
  ): Promise<{ record: StoredRecord<T>; created: boolean }> {
    const call = this.#call(options);
    if (this.#scope.schema) return this.#upsertMergeChecked(key, patch, call);
    const merging = { ...call, mode: 'merge' } as const;
    const outcome = await this.database.writes.upsert(this.name, key, patch, merging);
    return { record: written(outcome), created: outcome.created };
  }

  /** Replaces the document if its revision is still the one given; 0: if there is none yet. */
  async updateIfRev(
    address: Address,
    expectedRev: number,
    data: In,
    options: UpdateOptions = {},
  ): Promise<StoredRecord<T>> {
    const mode = isMerge(options.mode) ? 'merge' : undefined;
    const call = { ...this.#call(options), mode } as const;
    const document = this.#scope.schema ? await this.#checked(data, mode) : data;
    const { writes } = this.database;
    return written(await writes.updateIfRev(this.name, address, expectedRev, document, call));
  }

  /** Removes the record and returns it as it was. Refuses RECORD_NOT_FOUND. */
  async delete(id: string, options: CallOptions = {}): Promise<DeletedRecord<T>> {
    return deleted(await this.database.writes.remove(this.name, { id }, this.#call(options)));
  }

  /** Removes the record with this key and returns it as it was. Refuses KEY_NOT_FOUND. */
  async deleteByKey(key: string, options: CallOptions = {}): Promise<DeletedRecord<T>> {
    return deleted(await this.database.writes.remove(this.name, { key }, this.#call(options)));
  }

  /** Inserts up to 10,000 records in one commit, or none of them. */
  async insertMany(
    documents: readonly In[],
    options: CallOptions = {},
  ): Promise<StoredRecord<T>[]> {
    const call = this.#call(options);
    const checked: object[] = [];
    if (this.#scope.schema) for (const data of documents) checked.push(await this.#checked(data));
    const list = this.#scope.schema ? checked : documents;
    return insertMany<T>(this.database, this.name, list, call);
  }

  /** Up to 10,000 writes. Each has its own result, unless `atomic`. */
  async bulkWrite(
    operations: readonly BulkOperation<T, In>[],
    options: BulkCallOptions = {},
  ): Promise<BulkWritten<T>> {
    const call = this.#call(options);
    const { schema } = this.#scope;
    const list = schema ? await validatedOperations(schema, this.name, operations) : operations;
    return bulkWrite<T>(this.database, this.name, list, call);
  }

  /** Applies a merge patch to all matching records, in commits of 1,000. `{}` matches all. */
  async updateMany(
    filter: Filter<T>,
    patch: Patch<T>,
    options: ManyOptions = {},
  ): Promise<ManyResult> {
    const call = this.#call(options);
    if (this.#scope.schema) {
      const found = this.stream({ filter }, { transaction: call.transaction });
      const merge = (id: string) => this.merge(id, patch, { transaction: call.transaction });
      return mergeMany(found, patch, { filter, limit: call.limit }, merge);
    }
    return this.database.bulkByFilter.updateMany(this.name, plainFilter(filter), patch, call);
  }

  /** Deletes all matching records, in commits of 1,000. `{}` matches all. */
  async deleteMany(filter: Filter<T>, options: ManyOptions = {}): Promise<ManyResult> {
    const call = this.#call(options);
    return this.database.bulkByFilter.deleteMany(this.name, plainFilter(filter), call);
  }

  /** One page of the records that match: 100 unless `limit` says otherwise, 10,000 at most. */
  async find<F extends Path<T> = never>(
    query: FindQuery<T, F> = {},
    options: ReadOptions = {},
  ): Promise<FoundPage<Projected<T, F>>> {
    const limit = Math.min(query.limit || pageRecords, maxPageRecords);
    const page: FoundPage<Projected<T, F>> = { records: [], nextCursor: '', readSeq: 0 };
    for await (const { records, end, readSeq } of this.#batches({ ...query, limit }, options)) {
      for (const { image, data } of records) page.records.push(toStoredRecord(image, data));
      page.readSeq = readSeq;
      if (!end) continue;
      page.nextCursor = end.nextCursor;
      if (query.explain) page.plan = end.plan;
    }
    return page;
  }

  /** Every record that matches, one after the other, all from one snapshot. */
  async *stream<F extends Path<T> = never>(
    query: FindQuery<T, F> = {},
    options: ReadOptions = {},
  ): AsyncGenerator<StoredRecord<Projected<T, F>>, void, void> {
    for await (const { records } of this.#batches(query, options)) {
      for (const { image, data } of records) yield toStoredRecord(image, data);
    }
  }

  /** The first record that matches, or undefined. */
  async findOne<F extends Path<T> = never>(
    query: FindOneQuery<T, F> = {},
    options: ReadOptions = {},
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    const { records } = await this.find<F>({ ...query, limit: 1 }, options);
    return records[0];
  }

  /** How many records match. */
  async count(filter?: Filter<T>, options: ReadOptions = {}): Promise<number> {
    let count = 0;
    for await (const { end } of this.#batches({ filter, countOnly: true }, options)) {
      if (end) count = end.count ?? 0;
    }
    return count;
  }

  /** Groups the records that match and computes over each group. */
  async aggregate(
    query: AggregateQuery<T>,
    options: ReadOptions = {},
  ): Promise<AggregateResult & { readSeq: number }> {
    const { transaction } = this.#call(options);
    return this.database.queries.aggregate(this.name, plainQuery(query), transaction);
  }

  /** Follows the changes from now on, or from where the options say. Each commit is one message. */
  watch<F extends Path<T> = never>(
    options: CollectionWatchOptions<T, F> = {},
  ): AsyncIterableIterator<WatchMessage<WatchChange<Projected<T, F>>>> {
    const { filter, fields, includeBefore, ...rest } = options;
    const { condition, project } = checkFind({ filter: plainFilter(filter), fields });
    return this.database.watches.open<WatchChange<Projected<T, F>>>({
      ...rest,
      collection: this.name,
      filter: condition.kind === 'all' ? undefined : compilePredicate(condition),
      // Copied: other watches see the same data.
      show: showChange<Projected<T, F>>({
        includeBefore,
        fields: (data) => toDocument(project ? project(data) : data),
      }),
    });
  }

  /** The records that match now, and the new result after every commit that changes it. */
  live(query: LiveQuery<T> = {}): AsyncIterableIterator<LiveResult<T>> {
    return live<T>(this.database.watches, this.name, plainQuery(query));
  }

  #call<Options extends ReadOptions>(options: Options): Options {
    if (options.transaction) return options;
    const transaction = this.#transaction();
    return transaction ? { ...options, transaction } : options;
  }

  /** The transaction of the collection; a call without one may be outside by mistake. */
  #transaction(): Transaction | undefined {
    const { transaction } = this.#scope;
    if (!transaction) warnOutside(this.database, this.name, import.meta.url);
    return transaction;
  }

  #batches(query: FindQuery<T, string>, options: ReadOptions) {
    const { transaction } = this.#call(options);
    return this.database.queries.find(this.name, plainQuery(query), transaction);
  }

  #checked(data: object, mode?: UpdateMode): Promise<object> {
    if (mode === 'merge') throw mergeNotValidated();
    return validated(this.#scope.schema!, this.name, data);
  }

  async #update(address: Address, data: In, options: CallOptions): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return written(await this.database.writes.update(this.name, address, document, call));
  }

  async #merge(address: Address, patch: Patch<T>, options: CallOptions): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    if (this.#scope.schema) {
      return mergeChecked(
        patch as object,
        async () => (await this.#read(address, call)) ?? this.#missing(address),
        (rev, data) => this.updateIfRev(address, rev, data as In, call),
      );
    }
    const merging = { ...call, mode: 'merge' } as const;
    return written(await this.database.writes.update(this.name, address, patch, merging));
  }

  #upsertMergeChecked(key: string, patch: Patch<T>, options: CallOptions) {
    return mergeChecked(
      patch as object,
      async () => (await this.#read({ key }, options)) ?? { rev: 0, data: {} },
      async (rev, data) => ({
        record: await this.updateIfRev({ key }, rev, data as In, options),
        created: rev === 0,
      }),
    );
  }

  async #read(address: Address, options: ReadOptions): Promise<StoredRecord<T> | undefined> {
    return 'id' in address
      ? this.findById(address.id, options)
      : this.findByKey(address.key, options);
  }

  #missing(address: Address): never {
    throw 'id' in address
      ? notFoundById(this.name, address.id)
      : notFoundByKey(this.name, address.key);
  }
}

function written<T>(outcome: Outcome): StoredRecord<T> {
  return toStoredRecord<T>(outcome.record!);
}

function deleted<T>(outcome: Outcome): DeletedRecord<T> {
  return Object.assign(written<T>(outcome), { deletedSeq: outcome.seq });
}

function shown<T>(
  image: RecordImage | undefined,
  fields: readonly string[] = [],
): StoredRecord<T> | undefined {
  const project = fields.length > 0 ? checkFind({ fields }).project : undefined;
  return image && toStoredRecord<T>(image, project ? project(image.data) : image.data);
}
