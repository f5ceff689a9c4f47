import { UsageError } from '@millrace/kit/errors';
import {
  changeChecked,
  validated,
  validatedOperations,
  type StandardSchema,
} from '../core/schema.js';
import type { DeletedRecord, StoredRecord } from '../format/record.js';
import type { AggregateResult } from '../query/aggregate.js';
import { plainFilter, plainQuery } from '../value/plain-query.js';
import type {
  AggregateQuery,
  DistinctValue,
  Filter,
  FindOneQuery,
  FindQuery,
  LiveQuery,
  Path,
  Projected,
} from '../query/typed-query.js';
import type { Update } from '../query/typed-update.js';
import { type JsonObject, type Patch, isMerge, isUpdate } from '../value/documents.js';
import type { LiveResult } from '../watch/live.js';
import type { WatchChange, WatchMessage } from '../watch/message.js';
import { changeOf, type ManyResult } from '../write/bulk-filter.js';
import type { BulkOperation, BulkWritten } from '../write/bulk-types.js';
import {
  checkAddress,
  notFoundById,
  notFoundByKey,
  revMismatch,
  type Address,
} from '../write/mutations.js';
import {
  type BulkCall,
  type CallKinds,
  type CollectionPort,
  type CollectionWatchOptions,
  type FoundBatch,
  type FoundPage,
  type GetCall,
  type ManyCall,
  type ReadCall,
  type TransactionHandle,
  type UpdateCall,
  type Upserted,
  type WriteCall,
  checkOptions,
  liveOptionNames,
  mergeMany,
  warnOutside,
} from './collection-port.js';

/** What a collection applies to all its calls. */
export interface CollectionScope {
  /** Validates every document that is written. */
  readonly schema?: StandardSchema | undefined;
  /** The transaction that the calls belong to unless their options name another. */
  readonly transaction?: TransactionHandle | undefined;
}

const pageRecords = 100;
const maxPageRecords = 10_000;

/**
 * The records of one collection, typed, in process or on a server. `In` is what a schema accepts on
 * writes.
 */
export class Collection<
  T extends object,
  In extends object = T,
  Kinds extends CallKinds = CallKinds,
> {
  readonly #scope: CollectionScope;

  constructor(
    protected readonly port: CollectionPort<Kinds>,
    readonly name: string,
    scope: CollectionScope = {},
  ) {
    this.#scope = scope;
  }

  /** This collection inside a transaction of the same database or connection. */
  within(transaction: TransactionHandle, owner: object): this {
    if (this.port.owner !== owner) {
      throw new UsageError(
        `The collection "${this.name}" belongs to another ${this.port.ownerName}.`,
      );
    }
    const Kind = this.constructor as new (...args: unknown[]) => this;
    return new Kind(this.port, this.name, { ...this.#scope, transaction });
  }

  /** Inserts a record, with a generated id unless one is given. Refuses DUPLICATE_ID. */
  async insert(
    data: In,
    options?: WriteCall & Kinds['write'] & { id?: string },
  ): Promise<StoredRecord<T>> {
    const call = this.call(options);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return this.port.insert(this.name, document, call);
  }

  /** Inserts a record with a key. Refuses DUPLICATE_KEY. */
  async insertWithKey(
    key: string,
    data: In,
    options?: WriteCall & Kinds['write'],
  ): Promise<StoredRecord<T>> {
    const call = { ...this.call(options), key };
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return this.port.insert(this.name, document, call);
  }

  /** The record, or undefined. */
  async findById<F extends Path<T> = never>(
    id: string,
    options?: GetCall<F> & Kinds['read'],
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    return this.port.get(this.name, { id }, this.call(options));
  }

  /** The record with this key, or undefined. */
  async findByKey<F extends Path<T> = never>(
    key: string,
    options?: GetCall<F> & Kinds['read'],
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    return this.port.get(this.name, { key }, this.call(options));
  }

  /**
   * Replaces the document, or applies operators such as `{ $inc: { n: 1 } }` to it, atomically.
   * Refuses RECORD_NOT_FOUND, or KEY_NOT_FOUND for a `{ key }`.
   */
  async update(
    address: string | Address,
    data: In | Update<T>,
    options?: UpdateCall & Kinds['write'],
  ): Promise<StoredRecord<T>> {
    const at = typeof address === 'string' ? { id: address } : address;
    checkAddress(at);
    return this.#update(at, data, options);
  }

  /** Applies a JSON merge patch (RFC 7396). */
  async merge(
    id: string,
    patch: Patch<T>,
    options?: WriteCall & Kinds['write'],
  ): Promise<StoredRecord<T>> {
    return this.#change({ id }, patch, options, 'merge');
  }

  /** As `update`, for the record with this key. Refuses KEY_NOT_FOUND. */
  async updateByKey(
    key: string,
    data: In | Update<T>,
    options?: UpdateCall & Kinds['write'],
  ): Promise<StoredRecord<T>> {
    return this.#update({ key }, data, options);
  }

  /** Applies a JSON merge patch (RFC 7396). Refuses KEY_NOT_FOUND. */
  async mergeByKey(
    key: string,
    patch: Patch<T>,
    options?: WriteCall & Kinds['write'],
  ): Promise<StoredRecord<T>> {
    return this.#change({ key }, patch, options, 'merge');
  }

  /** Replaces the record with this key or applies operators to it; creates it if there is none. */
  async upsert(
    key: string,
    data: In | Update<T>,
    options?: UpdateCall & Kinds['write'],
  ): Promise<Upserted<T>> {
    if (isUpdate(data)) return this.#upsertChanged(key, data, options, 'operators');
    if (isMerge(options?.mode)) return this.#upsertChanged(key, data, options, 'merge');
    const call = { ...this.call(options), mode: undefined };
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return this.port.upsert(this.name, key, document, call);
  }

  /** Merges into the record with this key, or creates it from the patch. */
  async upsertMerge(
    key: string,
    patch: Patch<T>,
    options?: WriteCall & Kinds['write'],
  ): Promise<Upserted<T>> {
    return this.#upsertChanged(key, patch, options, 'merge');
  }

  /** Replaces the document if its revision is still the given one; 0: if it does not exist. */
  async updateIfRev(
    address: Address,
    expectedRev: number,
    data: In | Update<T>,
    options?: UpdateCall & Kinds['write'],
  ): Promise<StoredRecord<T>> {
    checkAddress(address);
    const mode = isUpdate(data) ? 'operators' : isMerge(options?.mode) ? 'merge' : undefined;
    const call = { ...this.call(options), mode, expectedRev } as const;
    if (!this.#scope.schema) return this.port.update(this.name, address, data, call);
    const document = mode ? await this.#changedAt(address, expectedRev, data, call) : data;
    return this.port.update(this.name, address, await this.#checked(document), replacing(call));
  }

  /** Deletes the record and returns its last state. Refuses RECORD_NOT_FOUND. */
  async delete(id: string, options?: WriteCall & Kinds['write']): Promise<DeletedRecord<T>> {
    return this.port.delete(this.name, { id }, this.call(options));
  }

  /** Deletes the record with this key and returns its last state. Refuses KEY_NOT_FOUND. */
  async deleteByKey(key: string, options?: WriteCall & Kinds['write']): Promise<DeletedRecord<T>> {
    return this.port.delete(this.name, { key }, this.call(options));
  }

  /** Inserts up to 10,000 records in one commit, or none of them. */
  async insertMany(
    documents: readonly In[],
    options?: WriteCall & Kinds['write'],
  ): Promise<StoredRecord<T>[]> {
    const call = this.call(options);
    const checked: object[] = [];
    if (this.#scope.schema) for (const data of documents) checked.push(await this.#checked(data));
    return this.port.insertMany(this.name, this.#scope.schema ? checked : documents, call);
  }

  /** Up to 10,000 writes. Each has its own result, unless `atomic`. */
  async bulkWrite(
    operations: readonly BulkOperation<T, In>[],
    options?: BulkCall & Kinds['write'],
  ): Promise<BulkWritten<T>> {
    const call = this.call(options);
    const { schema } = this.#scope;
    const list = schema ? await validatedOperations(schema, this.name, operations) : operations;
    return this.port.bulkWrite(this.name, list, call);
  }

  /**
   * Applies a merge patch or operators to all matching records, in commits of 1,000. `{}` matches
   * all.
   */
  async updateMany(
    filter: Filter<T>,
    patch: Patch<T> | Update<T>,
    options?: ManyCall & Kinds['write'],
  ): Promise<ManyResult> {
    const call = this.call(options);
    if (this.#scope.schema) {
      const inside = { transaction: call.transaction };
      const found = this.stream({ filter }, inside);
      const mode = isUpdate(patch) ? 'operators' : 'merge';
      const write = (id: string) => this.#change({ id }, patch, inside, mode);
      const query = { filter, limit: call.limit, now: this.port.now() };
      return mergeMany(found, patch, query, write);
    }
    return this.port.updateMany(this.name, plainFilter(filter), patch, call);
  }

  /** Deletes all matching records, in commits of 1,000. `{}` matches all. */
  async deleteMany(filter: Filter<T>, options?: ManyCall & Kinds['write']): Promise<ManyResult> {
    return this.port.deleteMany(this.name, plainFilter(filter), this.call(options));
  }

  /** One page of matching records. Default `limit` 100, maximum 10,000. */
  async find<F extends Path<T> = never>(
    query: FindQuery<T, F> = {},
    options?: ReadCall & Kinds['read'],
  ): Promise<FoundPage<Projected<T, F>>> {
    // JavaScript programs pass null for "no query".
    const limit = Math.min(query?.limit || pageRecords, maxPageRecords);
    const page: FoundPage<Projected<T, F>> = { records: [], nextCursor: '', readSeq: 0 };
    for await (const batch of this.#found<Projected<T, F>>({ ...query, limit }, options)) {
      for (const record of batch.records) page.records.push(record);
      page.readSeq = batch.readSeq;
      if (batch.nextCursor) page.nextCursor = batch.nextCursor;
      if (batch.plan && query?.explain) page.plan = batch.plan;
    }
    return page;
  }

  /** Iterates over all matching records of one snapshot. */
  async *stream<F extends Path<T> = never>(
    query: FindQuery<T, F> = {},
    options?: ReadCall & Kinds['read'],
  ): AsyncGenerator<StoredRecord<Projected<T, F>>, void, void> {
    for await (const { records } of this.#found<Projected<T, F>>(query, options)) yield* records;
  }

  /** The first matching record, or undefined. */
  async findOne<F extends Path<T> = never>(
    query: FindOneQuery<T, F> = {},
    options?: ReadCall & Kinds['read'],
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    const { records } = await this.find<F>({ ...query, limit: 1 }, options);
    return records[0];
  }

  /** Number of matching records. */
  async count(filter?: Filter<T>, options?: ReadCall & Kinds['read']): Promise<number> {
    let number = 0;
    for await (const { count } of this.#found({ filter, countOnly: true }, options)) {
      number = count ?? number;
    }
    return number;
  }

  /**
   * The different values of a field among matching records, in order; of an array its elements.
   * Refuses GROUP_LIMIT above 100,000.
   */
  async distinct<P extends Path<T>>(
    field: P,
    filter?: Filter<T>,
    options?: ReadCall & Kinds['read'],
  ): Promise<DistinctValue<T, P>[]> {
    const query = { field, ...plainQuery(filter === undefined ? {} : { filter }) };
    return (await this.port.distinct(this.name, query, this.call(options))) as never;
  }

  /** Groups matching records and computes aggregates per group. */
  async aggregate(
    query: AggregateQuery<T>,
    options?: ReadCall & Kinds['read'],
  ): Promise<AggregateResult & { readSeq: number }> {
    return this.port.aggregate(this.name, plainQuery(query), this.call(options));
  }

  /**
   * Watches changes from now on, or from the position in the options. Each commit is one message.
   * On a server it survives reconnects without gap or duplicate. Refuses WATCH_COMPACTED when the
   * log no longer has the position.
   */
  watch<F extends Path<T> = never>(
    options?: CollectionWatchOptions<T, F> & Kinds['watch'],
  ): AsyncIterableIterator<WatchMessage<WatchChange<Projected<T, F>>>> {
    const filter = plainFilter(options?.filter);
    return this.port.watch(this.name, { ...options, filter });
  }

  /** The matching records now, and the new result after every commit that changes it. */
  live(query?: LiveQuery<T> & Kinds['live']): AsyncIterableIterator<LiveResult<T>> {
    checkOptions(query ?? {}, liveOptionNames);
    return this.port.live(this.name, plainQuery(query ?? {}));
  }

  /** The options of a call inside the transaction of the collection. */
  protected call<Options extends ReadCall>(options: Options | undefined): Options {
    if (options) checkOptions(options);
    if (options?.transaction) return options;
    const { transaction } = this.#scope;
    if (transaction) return { ...options, transaction } as Options;
    // A call without a transaction inside a transaction callback may be a mistake.
    warnOutside(this.port.owner, this.name);
    return options ?? ({} as Options);
  }

  #found<Shown>(
    query: FindQuery<T, string>,
    options: (ReadCall & Kinds['read']) | undefined,
  ): AsyncIterable<FoundBatch<Shown>> {
    return this.port.find(this.name, plainQuery(query), this.call(options));
  }

  /** Only with a schema: without one the document is copied before the call returns. */
  #checked(data: object): Promise<object> {
    return validated(this.#scope.schema!, this.name, data);
  }

  async #update(
    address: Address,
    data: In | Update<T>,
    options: (UpdateCall & Kinds['write']) | undefined,
  ): Promise<StoredRecord<T>> {
    if (isUpdate(data)) return this.#change(address, data, options, 'operators');
    if (isMerge(options?.mode)) return this.#change(address, data, options, 'merge');
    const call = { ...this.call(options), mode: undefined };
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return this.port.update(this.name, address, document, call);
  }

  async #change(
    address: Address,
    patch: object,
    options: (WriteCall & Kinds['write']) | undefined,
    mode: 'merge' | 'operators',
  ): Promise<StoredRecord<T>> {
    const call = this.call(options);
    if (this.#scope.schema) {
      return changeChecked(
        this.#changed(patch),
        async () => (await this.#current(address, call)) ?? this.#missing(address),
        (rev, data) => this.updateIfRev(address, rev, data as In, replacing(call)),
      );
    }
    return this.port.update(this.name, address, patch, { ...call, mode });
  }

  async #upsertChanged(
    key: string,
    patch: object,
    options: (WriteCall & Kinds['write']) | undefined,
    mode: 'merge' | 'operators',
  ): Promise<Upserted<T>> {
    const call = this.call(options);
    if (this.#scope.schema) {
      return changeChecked(
        this.#changed(patch),
        async () => (await this.#current({ key }, call)) ?? { rev: 0, data: {} },
        async (rev, data) => ({
          record: await this.updateIfRev({ key }, rev, data as In, replacing(call)),
          created: rev === 0,
        }),
      );
    }
    return this.port.upsert(this.name, key, patch, { ...call, mode });
  }

  #changed(patch: object): (before: JsonObject) => JsonObject {
    const change = changeOf(patch);
    return (before) => change(before, this.port.now());
  }

  /** The document after a change of the revision that the caller expects. */
  async #changedAt(
    address: Address,
    expectedRev: number,
    patch: object,
    call: ReadCall,
  ): Promise<object> {
    const before = await this.#current(address, call);
    if (!before && expectedRev !== 0) this.#missing(address);
    const { rev, data } = before ?? { rev: 0, data: {} };
    if (rev !== expectedRev) throw revMismatch(this.name, rev, expectedRev);
    return this.#changed(patch)(data as JsonObject);
  }

  #current(address: Address, call: ReadCall): Promise<StoredRecord<T> | undefined> {
    return this.port.get(this.name, address, call);
  }

  #missing(address: Address): never {
    throw 'id' in address
      ? notFoundById(this.name, address.id)
      : notFoundByKey(this.name, address.key);
  }
}

/** The same options for the replace that ends a validated merge. */
function replacing<Options extends UpdateCall>(options: Options): Options {
  return { ...options, mode: undefined };
}
