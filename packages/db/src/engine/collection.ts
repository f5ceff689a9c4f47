import { checkKey, toDocument } from './documents.js';
import type { Outcome } from './requests.js';
import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { AggregateResult } from './query/aggregate.js';
import type { AggregateQuery } from './query/aggregate-query.js';
import type { Filter } from './query/filter.js';
import { compilePredicate } from './query/predicate.js';
import { checkFind, type FindQuery } from './query/query.js';
import type { PlanReport } from './query/source.js';
import type { Queries } from './queries.js';
import type { Reads } from './reads.js';
import type { RecordImage } from './record.js';
import { toStoredRecord, type DeletedRecord, type StoredRecord } from './stored-record.js';
import type { Transaction } from './transactions.js';
import { live, type LiveQuery, type LiveResult } from './watch/live.js';
import { showChange, type WatchChange, type WatchMessage } from './watch/message.js';
import type { Watches, WatchOptions } from './watch/watches.js';
import type { CallOptions, Writes } from './writes.js';

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

/** A read of one record. */
export interface GetOptions extends ReadOptions {
  /** Dotted paths of the parts of `data` to return. Left out: all. */
  fields?: readonly string[] | undefined;
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

/** What a watch of one collection may be told; see `WatchOptions`. */
export type CollectionWatchOptions = Pick<
  WatchOptions,
  'resumeToken' | 'startSeq' | 'includeInitial' | 'includeBefore' | 'heartbeatMs' | 'signal'
> & {
  filter?: Filter | undefined;
  /** Dotted paths of the parts of `data` to show. Absent: all. */
  fields?: readonly string[] | undefined;
};

const pageRecords = 100;
const mostPageRecords = 10_000;

/** The parts of an open database that a collection works on. */
interface DatabaseParts {
  readonly reads: Reads;
  readonly writes: Writes;
  readonly queries: Queries;
  readonly watches: Watches;
}

/** The records of one collection, typed. */
export class Collection<T extends object> {
  constructor(
    private readonly database: DatabaseParts,
    readonly name: string,
  ) {}

  /** Stores a new record, under an id of its own unless one is given. Refuses DUPLICATE_ID. */
  async insert(data: T, options: CallOptions & { id?: string } = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.insert(this.name, data, options));
  }

  /** Stores a new record under a key of your own. Refuses DUPLICATE_KEY. */
  async insertWithKey(key: string, data: T, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.insert(this.name, data, { ...options, key }));
  }

  /** The record, or undefined. */
  async findById(id: string, options: GetOptions = {}): Promise<StoredRecord<T> | undefined> {
    if (!isUlid(id)) return undefined;
    const { transaction, fields } = options;
    return shown(this.database.reads.byId(this.name, normalizeUlid(id), transaction), fields);
  }

  /** The record with this key, or undefined. */
  async findByKey(key: string, options: GetOptions = {}): Promise<StoredRecord<T> | undefined> {
    checkKey(key);
    return shown(this.database.reads.byKey(this.name, key, options.transaction), options.fields);
  }

  /** As `findById`, at once: for programs in the same process. */
  getSync(id: string): StoredRecord<T> | undefined {
    if (!isUlid(id)) return undefined;
    const image = this.database.reads.byId(this.name, normalizeUlid(id));
    return image && toStoredRecord<T>(image);
  }

  /** As `findByKey`, at once. */
  getByKeySync(key: string): StoredRecord<T> | undefined {
    checkKey(key);
    const image = this.database.reads.byKey(this.name, key);
    return image && toStoredRecord<T>(image);
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

  /** Replaces the document of the record with this key. Refuses KEY_NOT_FOUND. */
  async updateByKey(key: string, data: T, options: CallOptions = {}): Promise<StoredRecord<T>> {
    return written(await this.database.writes.update(this.name, { key }, data, options));
  }

  /** Changes parts of it by RFC 7396. Refuses KEY_NOT_FOUND. */
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
  async delete(id: string, options: CallOptions = {}): Promise<DeletedRecord<T>> {
    return deleted(await this.database.writes.remove(this.name, { id }, options));
  }

  /** One page of the records that match: 100 unless `limit` says otherwise, 10,000 at most. */
  async find(query: FindQuery = {}, options: ReadOptions = {}): Promise<FoundPage<T>> {
    const limit = Math.min(query.limit || pageRecords, mostPageRecords);
    const page: FoundPage<T> = { records: [], nextCursor: '', readSeq: 0 };
    const batches = this.database.queries.find(this.name, { ...query, limit }, options.transaction);
    for await (const { records, end, readSeq } of batches) {
      for (const { image, data } of records) page.records.push(toStoredRecord<T>(image, data));
      page.readSeq = readSeq;
      if (!end) continue;
      page.nextCursor = end.nextCursor;
      if (query.explain) page.plan = end.plan;
    }
    return page;
  }

  /** Every record that matches, one after the other, all from one snapshot. */
  async *stream(
    query: FindQuery = {},
    options: ReadOptions = {},
  ): AsyncGenerator<StoredRecord<T>, void, void> {
    const batches = this.database.queries.find(this.name, query, options.transaction);
    for await (const { records } of batches) {
      for (const { image, data } of records) yield toStoredRecord<T>(image, data);
    }
  }

  /** The first record that matches, or undefined. */
  async findOne(
    query: Omit<FindQuery, 'limit'> = {},
    options: ReadOptions = {},
  ): Promise<StoredRecord<T> | undefined> {
    const { records } = await this.find({ ...query, limit: 1 }, options);
    return records[0];
  }

  /** How many records match. */
  async count(filter?: Filter, options: ReadOptions = {}): Promise<number> {
    const query = { filter, countOnly: true };
    let count = 0;
    for await (const { end } of this.database.queries.find(this.name, query, options.transaction)) {
      if (end) count = end.count ?? 0;
    }
    return count;
  }

  /** Groups the records that match and computes over each group. */
  aggregate(
    query: AggregateQuery,
    options: ReadOptions = {},
  ): Promise<AggregateResult & { readSeq: number }> {
    return this.database.queries.aggregate(this.name, query, options.transaction);
  }

  /** Follows the changes from now on, or from where the options say. Each commit is one message. */
  watch(options: CollectionWatchOptions = {}): AsyncIterableIterator<WatchMessage<WatchChange<T>>> {
    const { filter, fields, includeBefore, ...rest } = options;
    const { condition, project } = checkFind({ filter, fields });
    return this.database.watches.open<WatchChange<T>>({
      ...rest,
      collection: this.name,
      filter: condition.kind === 'all' ? undefined : compilePredicate(condition),
      // Copied: other watches see the same data.
      show: showChange<T>({
        includeBefore,
        fields: (data) => toDocument(project ? project(data) : data),
      }),
    });
  }

  /** The records that match now, and the result anew after every commit that changes it. */
  live(query: LiveQuery = {}): AsyncIterableIterator<LiveResult<T>> {
    return live<T>(this.database.watches, this.name, query);
  }

  /** Removes the record with this key and returns it as it was. Refuses KEY_NOT_FOUND. */
  async deleteByKey(key: string, options: CallOptions = {}): Promise<DeletedRecord<T>> {
    return deleted(await this.database.writes.remove(this.name, { key }, options));
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
