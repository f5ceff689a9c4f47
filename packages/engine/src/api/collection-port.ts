import {
  refuse,
  type Json,
  type JsonObject,
  type UpdateMode,
  type WriteMode,
} from '../value/documents.js';
import type { DeletedRecord, StoredRecord } from '../format/record.js';
import type { AggregateResult } from '../query/aggregate.js';
import type { Filter as PlainFilter } from '../value/filter.js';
import type { PlanReport } from '../query/source.js';
import type { Filter } from '../query/typed-query.js';
import type { LiveResult } from '../watch/live.js';
import type { WatchChange, WatchMessage } from '../watch/message.js';
import type { WatchOptions } from '../watch/watches.js';
import { changeOf, type ManyResult, checkFilterGiven } from '../write/bulk-filter.js';
import type { BulkWritten } from '../write/bulk-types.js';
import type { Address } from '../write/mutations.js';
import { isDeepStrictEqual } from 'node:util';
import { Refusal } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { wholeNumber } from '../query/query.js';
import { AsyncLocalStorage } from 'node:async_hooks';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

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
  mode?: UpdateMode | undefined;
}

/** A change as the operations behind a collection take it. */
export type ChangeCall = WriteCall & { mode?: WriteMode | undefined };

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

/** Every option of a call, also of one over a connection. */
const optionNames: ReadonlySet<string> = new Set([
  'transaction',
  'fields',
  'id',
  'key',
  'ttlMs',
  'requestId',
  'mode',
  'expectedRev',
  'ordered',
  'atomic',
  'returnRecords',
  'limit',
  'minSeq',
  'prefer',
  'timeoutMs',
  'signal',
]);

/** What `live` takes, also over a connection. */
export const liveOptionNames: ReadonlySet<string> = new Set([
  'filter',
  'orderBy',
  'limit',
  'signal',
  'reconnectForMs',
  'onCut',
]);

/** A misspelt limit must not change all records. */
export function checkOptions(options: object, known = optionNames): void {
  for (const name in options) {
    if (known.has(name)) continue;
    const hint = suggestion(name, known);
    throw refuse('BAD_REQUEST', `There is no option "${name}"${hint || '.'}`);
  }
}

export interface Upserted<T> {
  record: StoredRecord<T>;
  /** True when the record was created. */
  created: boolean;
}

export interface FoundPage<T> {
  records: StoredRecord<T>[];
  /** Pass it to the next `find` of the same query for the page after this; "" on the last one. */
  nextCursor: string;
  /** The commit whose state was read. */
  readSeq: number;
  /** How the query was executed; only with `explain`. */
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

/** Records of a query as they arrive; the last batch has the rest. */
export interface FoundBatch<T> {
  records: readonly StoredRecord<T>[];
  readSeq: number;
  nextCursor?: string | undefined;
  plan?: PlanReport | undefined;
  count?: number | undefined;
}

/** Options that an embedded database, or a connection, adds to its calls. */
export interface CallKinds {
  read: object;
  write: object;
  watch: object;
  live: object;
}

/** The operations behind a collection, implemented by the embedded database and by connections. */
export interface CollectionPort<Kinds extends CallKinds = CallKinds> {
  /** A collection can only join transactions that have the same owner. */
  readonly owner: object;
  readonly ownerName: 'database' | 'connection';
  /** The time now, for changes that are made before they are validated. */
  now(): number;
  insert<T>(
    collection: string,
    data: object,
    options: WriteCall & Kinds['write'] & { id?: string | undefined; key?: string | undefined },
  ): Promise<StoredRecord<T>>;
  get<T>(
    collection: string,
    address: Address,
    options: GetCall & Kinds['read'],
  ): Promise<StoredRecord<T> | undefined>;
  /** With `expectedRev`: only if the revision is still that one; 0: if there is none. */
  update<T>(
    collection: string,
    address: Address,
    data: object,
    options: ChangeCall & Kinds['write'] & { expectedRev?: number },
  ): Promise<StoredRecord<T>>;
  upsert<T>(
    collection: string,
    key: string,
    data: object,
    options: ChangeCall & Kinds['write'],
  ): Promise<Upserted<T>>;
  delete<T>(
    collection: string,
    address: Address,
    options: WriteCall & Kinds['write'],
  ): Promise<DeletedRecord<T>>;
  insertMany<T>(
    collection: string,
    documents: readonly object[],
    options: WriteCall & Kinds['write'],
  ): Promise<StoredRecord<T>[]>;
  bulkWrite<T>(
    collection: string,
    operations: readonly object[],
    options: BulkCall & Kinds['write'],
  ): Promise<BulkWritten<T>>;
  updateMany(
    collection: string,
    filter: PlainFilter | undefined,
    patch: object,
    options: ManyCall & Kinds['write'],
  ): Promise<ManyResult>;
  deleteMany(
    collection: string,
    filter: PlainFilter | undefined,
    options: ManyCall & Kinds['write'],
  ): Promise<ManyResult>;
  find<T>(
    collection: string,
    query: object,
    options: ReadCall & Kinds['read'],
  ): AsyncIterable<FoundBatch<T>>;
  aggregate(
    collection: string,
    query: object,
    options: ReadCall & Kinds['read'],
  ): Promise<AggregateResult & { readSeq: number }>;
  distinct(
    collection: string,
    query: { field: string; filter?: PlainFilter | undefined },
    options: ReadCall & Kinds['read'],
  ): Promise<Json[]>;
  watch<T>(
    collection: string,
    options: object & Kinds['watch'],
  ): AsyncIterableIterator<WatchMessage<WatchChange<T>>>;
  live<T>(collection: string, query: object & Kinds['live']): AsyncIterableIterator<LiveResult<T>>;
}

/**
 * Changes records one by one through `write`, which validates them against the collection's schema.
 */
export async function mergeMany(
  found: AsyncIterable<{ id: string; data: object }>,
  patch: object,
  { filter, limit: given, now }: { filter: unknown; limit: number | undefined; now: number },
  write: (id: string) => Promise<{ seq: number }>,
): Promise<ManyResult> {
  checkFilterGiven(filter);
  const change = changeOf(patch);
  const limit = wholeNumber(given, 'limit') || Infinity;
  const result = { matched: 0, changed: 0, seq: 0 };
  for await (const { id, data } of found) {
    if (result.changed >= limit) break;
    result.matched++;
    const before = data as JsonObject;
    if (isDeepStrictEqual(change(before, now), before)) continue;
    try {
      const { seq } = await write(id);
      result.changed++;
      result.seq = Math.max(result.seq, seq);
    } catch (error) {
      // Another writer deleted it since it was found.
      if (!(error instanceof Refusal && error.code === 'RECORD_NOT_FOUND')) throw error;
      result.matched--;
    }
  }
  return result;
}

/** The database whose `transaction` callback is running. Disabled between callbacks. */
const owners = new AsyncLocalStorage<object>();
const ownFolder = dirname(fileURLToPath(import.meta.url));
const ownFiles = /[/\\](?:collection|collection-port|embedded-collection)\.[jt]s:/;
const maxCallSites = 1_000;
const warnedCallSites = new WeakMap<object, Set<string>>();
let running = 0;

/** Runs the callback of a transaction so that `warnOutside` recognises calls made inside it. */
export async function runInScope<Result>(
  owner: object,
  run: () => Promise<Result>,
): Promise<Result> {
  if (process.env['NODE_ENV'] === 'production') return run();
  running++;
  try {
    return await owners.run(owner, run);
  } finally {
    if (--running === 0) owners.disable();
  }
}

/**
 * Warns, once per call site, about a call inside a `transaction` callback that is not part of the
 * transaction.
 */
export function warnOutside(owner: object, collection: string): void {
  if (running === 0 || owners.getStore() !== owner) return;
  const site = callSite();
  const warned = warnedCallSites.get(owner) ?? new Set();
  if (warned.has(site) || warned.size >= maxCallSites) return;
  warnedCallSites.set(owner, warned.add(site));
  process.emitWarning(
    `A call on "${collection}" inside a transaction callback is not part of the transaction. ` +
      `Use tx.collection(...) instead (${site}).`,
    { type: 'MillraceWarning', code: 'OUTSIDE_TRANSACTION' },
  );
}

/** The first stack frame outside the API. */
function callSite(): string {
  const frames = (new Error('call site').stack ?? '').split('\n').slice(1);
  const frame = frames.find((line) => !(line.includes(ownFolder) && ownFiles.test(line)));
  return frame?.trim() ?? 'unknown call site';
}
