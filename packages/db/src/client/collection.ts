import { Database, DataEncoding, UpdateMode } from '@millrace/contract/db';
import { Refusal } from '@millrace/kit/errors';
import type { CollectionApi, ReadCall, Upserted, WriteCall } from '../api.js';
import type { FoundPage, Patch } from '../engine/collection.js';
import { checkKey, type JsonObject } from '../engine/documents.js';
import type { AggregateGroup, AggregateResult } from '../engine/query/aggregate.js';
import type { AggregateQuery } from '../engine/query/aggregate-query.js';
import type { Filter } from '../engine/query/filter.js';
import type { FindQuery } from '../engine/query/query.js';
import type { DeletedRecord, StoredRecord } from '../engine/stored-record.js';
import type { LiveResult } from '../engine/watch/live.js';
import type { WatchChange, WatchMessage } from '../engine/watch/message.js';
import { live, type RemoteLiveQuery } from './live.js';
import { aggregateRequest, findRequest, planOf } from './queries.js';
import { decodeJson, encodeData, toDeleted, toStored, ttlOf, uint64Of } from './records.js';
import type { CallOptions, Session } from './session.js';
import { ResumingWatch, type RemoteWatchOptions } from './watch.js';

export interface RemoteRead extends ReadCall, CallOptions {
  /** Reads at this commit or later; a follower waits for it. */
  minSeq?: number | undefined;
}

/** A read of one record. */
export interface RemoteGet extends RemoteRead {
  /** Dotted paths of the fields of `data` to return. Default: all. */
  fields?: readonly string[] | undefined;
}

export interface RemoteWrite extends WriteCall, CallOptions {}

const pageRecords = 100;
const maxPageRecords = 10_000;
const { method: rpc } = Database;

/** A collection of a remote database. */
export class RemoteCollection<T extends object> implements CollectionApi<T> {
  constructor(
    private readonly session: Session,
    readonly name: string,
  ) {}

  async insert(data: T, options: RemoteWrite & { id?: string } = {}): Promise<StoredRecord<T>> {
    const request = { ...this.#document(data, options), id: options.id ?? '' };
    return toStored((await this.session.write(rpc.insert, request, options)).record);
  }

  async insertWithKey(key: string, data: T, options: RemoteWrite = {}): Promise<StoredRecord<T>> {
    checkKey(key);
    const request = { ...this.#document(data, options), key };
    return toStored((await this.session.write(rpc.insertWithKey, request, options)).record);
  }

  async findById(id: string, options: RemoteGet = {}): Promise<StoredRecord<T> | undefined> {
    if (id === '') return undefined;
    const request = { ...this.#read(options), id, fields: [...(options.fields ?? [])] };
    return orNothing(this.session.call(rpc.findById, request, options), 'RECORD_NOT_FOUND');
  }

  async findByKey(key: string, options: RemoteGet = {}): Promise<StoredRecord<T> | undefined> {
    checkKey(key);
    const request = { ...this.#read(options), key, fields: [...(options.fields ?? [])] };
    return orNothing(this.session.call(rpc.findByKey, request, options), 'KEY_NOT_FOUND');
  }

  async update(id: string, data: T, options: RemoteWrite = {}): Promise<StoredRecord<T>> {
    const request = { ...this.#document(data, options), id, mode: UpdateMode.REPLACE };
    return toStored((await this.session.write(rpc.update, request, options)).record);
  }

  async merge(id: string, patch: Patch<T>, options: RemoteWrite = {}): Promise<StoredRecord<T>> {
    const request = { ...this.#document(patch, options), id, mode: UpdateMode.MERGE };
    return toStored((await this.session.write(rpc.update, request, options)).record);
  }

  async updateByKey(key: string, data: T, options: RemoteWrite = {}): Promise<StoredRecord<T>> {
    checkKey(key);
    const request = { ...this.#document(data, options), key, mode: UpdateMode.REPLACE };
    return toStored((await this.session.write(rpc.updateByKey, request, options)).record);
  }

  async mergeByKey(
    key: string,
    patch: Patch<T>,
    options: RemoteWrite = {},
  ): Promise<StoredRecord<T>> {
    checkKey(key);
    const request = { ...this.#document(patch, options), key, mode: UpdateMode.MERGE };
    return toStored((await this.session.write(rpc.updateByKey, request, options)).record);
  }

  upsert(key: string, data: T, options: RemoteWrite = {}): Promise<Upserted<T>> {
    return this.#upsert(key, data, UpdateMode.REPLACE, options);
  }

  upsertMerge(key: string, patch: Patch<T>, options: RemoteWrite = {}): Promise<Upserted<T>> {
    return this.#upsert(key, patch, UpdateMode.MERGE, options);
  }

  async updateIfRev(
    address: { id: string } | { key: string },
    expectedRev: number,
    data: T,
    options: RemoteWrite = {},
  ): Promise<StoredRecord<T>> {
    if ('key' in address) checkKey(address.key);
    const request = {
      ...this.#document(data, options),
      ...address,
      expectedRev: uint64Of(expectedRev, 'expected_rev'),
      mode: UpdateMode.REPLACE,
    };
    return toStored((await this.session.write(rpc.updateIfRev, request, options)).record);
  }

  async delete(id: string, options: RemoteWrite = {}): Promise<DeletedRecord<T>> {
    const request = { ...this.#change(options), id, returnRecord: true };
    return toDeleted(await this.session.write(rpc.delete, request, options));
  }

  async deleteByKey(key: string, options: RemoteWrite = {}): Promise<DeletedRecord<T>> {
    checkKey(key);
    const request = { ...this.#change(options), key, returnRecord: true };
    return toDeleted(await this.session.write(rpc.deleteByKey, request, options));
  }

  async find(query: FindQuery = {}, options: RemoteRead = {}): Promise<FoundPage<T>> {
    const limit = Math.min(query.limit || pageRecords, maxPageRecords);
    const page: FoundPage<T> = { records: [], nextCursor: '', readSeq: 0 };
    for await (const reply of this.#found({ ...query, limit }, options)) {
      for (const record of reply.records) page.records.push(toStored<T>(record));
      page.readSeq = Number(reply.readSeq);
      if (reply.nextCursor) page.nextCursor = reply.nextCursor;
      if (reply.plan && query.explain) page.plan = planOf(reply.plan);
    }
    return page;
  }

  async *stream(
    query: FindQuery = {},
    options: RemoteRead = {},
  ): AsyncGenerator<StoredRecord<T>, void, void> {
    for await (const { records } of this.#found(query, options)) {
      for (const record of records) yield toStored<T>(record);
    }
  }

  async findOne(
    query: Omit<FindQuery, 'limit'> = {},
    options: RemoteRead = {},
  ): Promise<StoredRecord<T> | undefined> {
    const { records } = await this.find({ ...query, limit: 1 }, options);
    return records[0];
  }

  async count(filter?: Filter, options: RemoteRead = {}): Promise<number> {
    let count = 0;
    for await (const reply of this.#found({ filter, countOnly: true }, options)) {
      if (reply.count !== undefined) count = Number(reply.count);
    }
    return count;
  }

  async aggregate(
    query: AggregateQuery,
    options: RemoteRead = {},
  ): Promise<AggregateResult & { readSeq: number }> {
    const request = { ...aggregateRequest(query), ...this.#read(options) };
    const groups: AggregateGroup[] = [];
    let readSeq = 0;
    let plan;
    for await (const reply of this.session.stream(rpc.aggregate, request, options)) {
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
  watch(options: RemoteWatchOptions = {}): AsyncIterableIterator<WatchMessage<WatchChange<T>>> {
    return new ResumingWatch<T>(this.session, this.name, options);
  }

  live(query: RemoteLiveQuery = {}): AsyncIterableIterator<LiveResult<T>> {
    return live<T>(this.session, this.name, query);
  }

  #found(query: FindQuery, options: RemoteRead) {
    const request = { ...findRequest(query), ...this.#read(options) };
    return this.session.stream(rpc.find, request, options);
  }

  async #upsert(
    key: string,
    data: object,
    mode: UpdateMode,
    options: RemoteWrite,
  ): Promise<Upserted<T>> {
    checkKey(key);
    const request = { ...this.#document(data, options), key, mode };
    const { record, created } = await this.session.write(rpc.upsert, request, options);
    return { record: toStored(record), created };
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

  #document(data: object, options: RemoteWrite) {
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
