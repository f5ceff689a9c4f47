import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Database,
  DataEncoding,
  UpdateMode,
  type UpsertRequestSchema,
} from '@millrace/contract/db';
import { Refusal, UsageError } from '@millrace/kit/errors';
import type {
  BulkCall,
  BulkOperation,
  BulkWritten,
  CollectionApi,
  ManyCall,
  ReadCall,
  TransactionHandle,
  Upserted,
  UpdateCall,
  WriteCall,
} from './api.js';
import type { FoundPage } from '@millrace/engine/api/collection';
import { checkKey, type JsonObject, type Patch } from '@millrace/engine/value/documents';
import type { AggregateGroup, AggregateResult } from '@millrace/engine/query/aggregate';
import { notFoundById, notFoundByKey, type Address } from '@millrace/engine/write/operations';
import { plainFilter, plainQuery } from '@millrace/engine/query/plain-query';
import type {
  AggregateQuery,
  Filter,
  FindOneQuery,
  FindQuery,
  Path,
  Projected,
} from '@millrace/engine/query/typed-query';
import {
  mergeChecked,
  mergeNotValidated,
  validated,
  validatedOperations,
  type StandardSchema,
} from '@millrace/engine/core/schema';
import { isMerge } from '@millrace/engine/value/update-mode';
import type { DeletedRecord, StoredRecord } from '@millrace/engine/format/stored-record';
import { warnOutside } from '@millrace/engine/api/transaction-scope';
import type { LiveResult } from '@millrace/engine/watch/live';
import type { WatchChange, WatchMessage } from '@millrace/engine/watch/message';
import { mergeMany, type ManyResult } from '@millrace/engine/api/bulk-collection';
import { bulkWrite, deleteMany, updateMany } from './bulk.js';
import { live, type RemoteLiveQuery } from './live.js';
import { aggregateRequest, findRequest, planOf, textsOf } from './queries.js';
import { decodeJson, encodeData, toDeleted, toStored, ttlOf, uint64Of } from './records.js';
import type { CallOptions, Session } from './session.js';
import { ResumingWatch, type RemoteWatchOptions } from './watch.js';

export interface RemoteRead extends ReadCall, CallOptions {
  /** Reads at this commit or later; a follower waits for it. */
  minSeq?: number | undefined;
}

/** A read of one record. */
export interface RemoteGet<F extends string = string> extends RemoteRead {
  /** Dotted paths of the fields of `data` to return. Default: all. */
  fields?: readonly F[] | undefined;
}

export interface RemoteWrite extends WriteCall, CallOptions {}

interface RemoteUpdate extends UpdateCall, CallOptions {}

const pageRecords = 100;
const maxPageRecords = 10_000;
const { method: rpc } = Database;

/** What a collection applies to all its calls. */
interface CollectionScope {
  /** Validates every document that is written. */
  readonly schema?: StandardSchema | undefined;
  /** The transaction that the calls belong to unless their options name another. */
  readonly transaction?: TransactionHandle | undefined;
}

/** A collection of a remote database. */
export class RemoteCollection<T extends object, In extends object = T> implements CollectionApi<
  T,
  In
> {
  readonly #scope: CollectionScope;

  constructor(
    private readonly session: Session,
    readonly name: string,
    scope: CollectionScope = {},
  ) {
    this.#scope = scope;
  }

  /** This collection inside a transaction of the same connection. */
  within(transaction: TransactionHandle, session: Session): RemoteCollection<T, In> {
    if (this.session !== session) {
      throw new UsageError(`The collection "${this.name}" belongs to another connection.`);
    }
    return new RemoteCollection<T, In>(session, this.name, { ...this.#scope, transaction });
  }

  async insert(data: In, options: RemoteWrite & { id?: string } = {}): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    const request = { ...this.#body(document, call), id: options.id ?? '' };
    return toStored((await this.session.write(rpc.insert, request, call)).record);
  }

  async insertWithKey(key: string, data: In, options: RemoteWrite = {}): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    checkKey(key);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    const request = { ...this.#body(document, call), key };
    return toStored((await this.session.write(rpc.insertWithKey, request, call)).record);
  }

  async findById<F extends Path<T> = never>(
    id: string,
    options: RemoteGet<F> = {},
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    const call = this.#call(options);
    if (id === '') return undefined;
    const request = { ...this.#read(call), id, fields: textsOf(options.fields, 'fields') };
    return orNothing(this.session.call(rpc.findById, request, call), 'RECORD_NOT_FOUND');
  }

  async findByKey<F extends Path<T> = never>(
    key: string,
    options: RemoteGet<F> = {},
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    const call = this.#call(options);
    checkKey(key);
    const request = { ...this.#read(call), key, fields: textsOf(options.fields, 'fields') };
    return orNothing(this.session.call(rpc.findByKey, request, call), 'KEY_NOT_FOUND');
  }

  async update(
    id: string,
    data: In,
    { mode, ...options }: RemoteUpdate = {},
  ): Promise<StoredRecord<T>> {
    if (isMerge(mode)) return this.merge(id, data as unknown as Patch<T>, options);
    const call = this.#call(options);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    const request = { ...this.#body(document, call), id, mode: UpdateMode.REPLACE };
    return toStored((await this.session.write(rpc.update, request, call)).record);
  }

  async merge(id: string, patch: Patch<T>, options: RemoteWrite = {}): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    if (this.#scope.schema) return this.#mergeChecked({ id }, patch, call);
    const request = { ...this.#body(patch, call), id, mode: UpdateMode.MERGE };
    return toStored((await this.session.write(rpc.update, request, call)).record);
  }

  async updateByKey(
    key: string,
    data: In,
    { mode, ...options }: RemoteUpdate = {},
  ): Promise<StoredRecord<T>> {
    if (isMerge(mode)) return this.mergeByKey(key, data as unknown as Patch<T>, options);
    const call = this.#call(options);
    checkKey(key);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    const request = { ...this.#body(document, call), key, mode: UpdateMode.REPLACE };
    return toStored((await this.session.write(rpc.updateByKey, request, call)).record);
  }

  async mergeByKey(
    key: string,
    patch: Patch<T>,
    options: RemoteWrite = {},
  ): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    checkKey(key);
    if (this.#scope.schema) return this.#mergeChecked({ key }, patch, call);
    const request = { ...this.#body(patch, call), key, mode: UpdateMode.MERGE };
    return toStored((await this.session.write(rpc.updateByKey, request, call)).record);
  }

  async upsert(
    key: string,
    data: In,
    { mode, ...options }: RemoteUpdate = {},
  ): Promise<Upserted<T>> {
    if (isMerge(mode)) return this.upsertMerge(key, data as unknown as Patch<T>, options);
    const call = this.#call(options);
    checkKey(key);
    const document = this.#scope.schema ? await this.#checked(data) : data;
    return this.#upsert({ ...this.#body(document, call), key }, UpdateMode.REPLACE, call);
  }

  async upsertMerge(key: string, patch: Patch<T>, options: RemoteWrite = {}): Promise<Upserted<T>> {
    const call = this.#call(options);
    checkKey(key);
    if (this.#scope.schema) return this.#upsertMergeChecked(key, patch, call);
    return this.#upsert({ ...this.#body(patch, call), key }, UpdateMode.MERGE, call);
  }

  async updateIfRev(
    address: Address,
    expectedRev: number,
    data: In,
    { mode, ...options }: RemoteUpdate = {},
  ): Promise<StoredRecord<T>> {
    const call = this.#call(options);
    if ('key' in address) checkKey(address.key);
    if (isMerge(mode) && this.#scope.schema) throw mergeNotValidated();
    const document = this.#scope.schema ? await this.#checked(data) : data;
    const request = {
      ...this.#body(document, call),
      ...address,
      expectedRev: uint64Of(expectedRev, 'expected_rev'),
      mode: isMerge(mode) ? UpdateMode.MERGE : UpdateMode.REPLACE,
    };
    return toStored((await this.session.write(rpc.updateIfRev, request, call)).record);
  }

  async delete(id: string, options: RemoteWrite = {}): Promise<DeletedRecord<T>> {
    const call = this.#call(options);
    const request = { ...this.#change(call), id, returnRecord: true };
    return toDeleted(await this.session.write(rpc.delete, request, call));
  }

  async deleteByKey(key: string, options: RemoteWrite = {}): Promise<DeletedRecord<T>> {
    const call = this.#call(options);
    checkKey(key);
    const request = { ...this.#change(call), key, returnRecord: true };
    return toDeleted(await this.session.write(rpc.deleteByKey, request, call));
  }

  async insertMany(
    documents: readonly In[],
    { ttlMs, ...options }: RemoteWrite = {},
  ): Promise<StoredRecord<T>[]> {
    const call = this.#call(options);
    const list: object[] = [];
    for (const data of documents) list.push(this.#scope.schema ? await this.#checked(data) : data);
    const { results } = await bulkWrite<T, object>(
      this.session,
      this.name,
      list.map((data) => ({ insert: { data, ttlMs } })),
      { ...call, atomic: !call.transaction, ordered: true, returnRecords: true },
    );
    return results.map(({ error, record }) => {
      if (error) throw new Refusal(error.reason, error.message);
      if (record) return record;
      throw new Refusal('REQUEST_ID_REUSED', 'The records of this request have changed since.');
    });
  }

  async bulkWrite(
    operations: readonly BulkOperation<T, In>[],
    options: BulkCall & CallOptions = {},
  ): Promise<BulkWritten<T>> {
    const call = this.#call(options);
    const { schema } = this.#scope;
    const list = schema ? await validatedOperations(schema, this.name, operations) : operations;
    return bulkWrite<T, In>(this.session, this.name, list, call);
  }

  async updateMany(
    filter: Filter<T>,
    patch: Patch<T>,
    options: ManyCall & CallOptions = {},
  ): Promise<ManyResult> {
    const call = this.#call(options);
    if (this.#scope.schema) {
      const found = this.stream({ filter }, { transaction: call.transaction });
      const merge = (id: string) => this.merge(id, patch, { transaction: call.transaction });
      return mergeMany(found, patch, { filter, limit: call.limit }, merge);
    }
    return updateMany(this.session, this.name, { filter, patch }, call);
  }

  async deleteMany(filter: Filter<T>, options: ManyCall & CallOptions = {}): Promise<ManyResult> {
    return deleteMany(this.session, this.name, filter, this.#call(options));
  }

  async find<F extends Path<T> = never>(
    query: FindQuery<T, F> = {},
    options: RemoteRead = {},
  ): Promise<FoundPage<Projected<T, F>>> {
    const limit = Math.min(query.limit || pageRecords, maxPageRecords);
    const page: FoundPage<Projected<T, F>> = { records: [], nextCursor: '', readSeq: 0 };
    for await (const reply of this.#found({ ...query, limit }, options)) {
      for (const record of reply.records) page.records.push(toStored(record));
      page.readSeq = Number(reply.readSeq);
      if (reply.nextCursor) page.nextCursor = reply.nextCursor;
      if (reply.plan && query.explain) page.plan = planOf(reply.plan);
    }
    return page;
  }

  async *stream<F extends Path<T> = never>(
    query: FindQuery<T, F> = {},
    options: RemoteRead = {},
  ): AsyncGenerator<StoredRecord<Projected<T, F>>, void, void> {
    for await (const { records } of this.#found(query, options)) {
      for (const record of records) yield toStored(record);
    }
  }

  async findOne<F extends Path<T> = never>(
    query: FindOneQuery<T, F> = {},
    options: RemoteRead = {},
  ): Promise<StoredRecord<Projected<T, F>> | undefined> {
    const { records } = await this.find<F>({ ...query, limit: 1 }, options);
    return records[0];
  }

  async count(filter?: Filter<T>, options: RemoteRead = {}): Promise<number> {
    let count = 0;
    for await (const reply of this.#found({ filter, countOnly: true }, options)) {
      if (reply.count !== undefined) count = Number(reply.count);
    }
    return count;
  }

  async aggregate(
    query: AggregateQuery<T>,
    options: RemoteRead = {},
  ): Promise<AggregateResult & { readSeq: number }> {
    const call = this.#call(options);
    const request = { ...aggregateRequest(plainQuery(query)), ...this.#read(call) };
    const groups: AggregateGroup[] = [];
    let readSeq = 0;
    let plan;
    for await (const reply of this.session.stream(rpc.aggregate, request, call)) {
      for (const { keyJson, valuesJson, count } of reply.groups) {
        const key = decodeJson(keyJson) as JsonObject;
        groups.push({ key, count: Number(count), values: decodeJson(valuesJson) as JsonObject });
      }
      readSeq = Number(reply.readSeq);
      if (reply.plan) plan = planOf(reply.plan);
    }
    if (!plan) throw new Error('The server sent an aggregate response without a plan');
    return { groups, plan, readSeq };
  }

  /**
   * Like a watch in process. It survives reconnects and resumes without gap or duplicate. Refuses
   * WATCH_COMPACTED when the log no longer has the position.
   */
  watch<F extends Path<T> = never>(
    options: RemoteWatchOptions<T, F> = {},
  ): AsyncIterableIterator<WatchMessage<WatchChange<Projected<T, F>>>> {
    return new ResumingWatch<Projected<T, F> & object>(this.session, this.name, {
      ...options,
      filter: plainFilter(options.filter),
    });
  }

  live(query: RemoteLiveQuery<T> = {}): AsyncIterableIterator<LiveResult<T>> {
    return live<T>(this.session, this.name, plainQuery(query));
  }

  #call<Options extends ReadCall>(options: Options): Options {
    if (options.transaction) return options;
    const { transaction } = this.#scope;
    if (transaction) return { ...options, transaction };
    warnOutside(this.session, this.name, import.meta.url);
    return options;
  }

  #found(query: FindQuery<T, string>, options: RemoteRead) {
    const call = this.#call(options);
    const request = { ...findRequest(plainQuery(query)), ...this.#read(call) };
    return this.session.stream(rpc.find, request, call);
  }

  async #upsert(
    request: MessageInitShape<typeof UpsertRequestSchema>,
    mode: UpdateMode,
    options: RemoteWrite,
  ): Promise<Upserted<T>> {
    const message = { ...request, mode } as typeof request;
    const { record, created } = await this.session.write(rpc.upsert, message, options);
    return { record: toStored(record), created };
  }

  #mergeChecked(address: Address, patch: Patch<T>, options: RemoteWrite) {
    return mergeChecked(
      patch as object,
      async () => {
        const found = await this.#current(address, options);
        if (found) return found;
        throw 'id' in address
          ? notFoundById(this.name, address.id)
          : notFoundByKey(this.name, address.key);
      },
      (rev, data) => this.updateIfRev(address, rev, data as In, options),
    );
  }

  #upsertMergeChecked(key: string, patch: Patch<T>, options: RemoteWrite): Promise<Upserted<T>> {
    return mergeChecked(
      patch as object,
      async () => (await this.#current({ key }, options)) ?? { rev: 0, data: {} },
      async (rev, data) => ({
        record: await this.updateIfRev({ key }, rev, data as In, options),
        created: rev === 0,
      }),
    );
  }

  async #current(address: Address, options: RemoteRead): Promise<StoredRecord<T> | undefined> {
    return 'id' in address
      ? this.findById(address.id, options)
      : this.findByKey(address.key, options);
  }

  #read({ transaction, minSeq = 0 }: RemoteRead) {
    return {
      collection: this.name,
      txId: transaction?.id ?? '',
      minSeq: uint64Of(minSeq, 'min_seq'),
      encoding: DataEncoding.JSON,
    };
  }

  /** A write whose response is lost is retried with the same request id. */
  #change({ transaction, requestId }: RemoteWrite) {
    return {
      collection: this.name,
      txId: transaction?.id ?? '',
      requestId: requestId || this.session.newRequestId(),
      encoding: DataEncoding.JSON,
    };
  }

  #checked(data: object): Promise<object> {
    return validated(this.#scope.schema!, this.name, data);
  }

  #body(data: object, options: RemoteWrite) {
    return { ...this.#change(options), dataJson: encodeData(data), ...ttlOf(options.ttlMs) };
  }
}

async function orNothing<T>(
  call: Promise<{ record?: Parameters<typeof toStored>[0] }>,
  reason: string,
): Promise<StoredRecord<T> | undefined> {
  try {
    return toStored<T>((await call).record);
  } catch (error) {
    if (error instanceof Refusal && error.code === reason) return undefined;
    throw error;
  }
}
