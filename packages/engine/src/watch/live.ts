import { Refusal } from '@millrace/kit/errors';
import { checkCollectionName, toDocument } from '../value/documents.js';
import { compilePredicate } from '../query/predicate.js';
import { checkFind, type FindQuery } from '../query/query.js';
import { Sorter } from '../query/sort.js';
import { toStoredRecord, type StoredRecord } from '../format/stored-record.js';
import { LiveRecords, type Difference } from './live-records.js';
import type { VisibleChange } from './message.js';
import type { Watches, WatchOptions } from './watches.js';

/** A live query. */
export type LiveQuery = Pick<FindQuery, 'filter' | 'orderBy' | 'limit'> & {
  /** Ends the query without an error. */
  signal?: AbortSignal | undefined;
};

/** The result of a live query after one commit, and its difference from the previous result. */
export interface LiveResult<T> {
  /** All records of the result, in order. */
  records: readonly StoredRecord<T>[];
  /** In the first result: all of them. */
  added: readonly StoredRecord<T>[];
  changed: readonly StoredRecord<T>[];
  /** In their last state. */
  removed: readonly StoredRecord<T>[];
  /** The commit of this result. */
  seq: number;
}

/**
 * Keeps the result of a query up to date: first the matching records, then, after every commit that
 * changes it, the new result, without gap or duplicate. All matching records are kept in memory,
 * including those beyond the limit.
 */
export function live<T>(
  watches: Watches,
  collection: string,
  { signal, ...query }: LiveQuery,
): AsyncGenerator<LiveResult<T>, void, void> {
  const { condition, order, limit } = checkFind(query);
  checkCollectionName(collection);
  const options: WatchOptions<VisibleChange> = {
    collection,
    filter: condition.kind === 'all' ? undefined : compilePredicate(condition),
    includeInitial: true,
    signal,
    show: (change) => change,
  };
  return results(watches, options, new LiveRecords<T>(new Sorter(order), limit, show));
}

async function* results<T>(
  watches: Watches,
  options: WatchOptions<VisibleChange>,
  empty: LiveRecords<T>,
): AsyncGenerator<LiveResult<T>, void, void> {
  let records = empty;
  let isFirst = true;
  while (!options.signal?.aborted) {
    try {
      for await (const { kind, changes, seq } of watches.open(options)) {
        if (kind === 'initial') records.load(changes);
        else if (kind === 'initial_end') {
          const difference = records.settle();
          if (isFirst || isAny(difference)) yield { records: records.window, ...difference, seq };
          isFirst = false;
        } else if (kind === 'changes') {
          const difference = records.apply(changes);
          if (isAny(difference)) yield { records: records.window, ...difference, seq };
        }
      }
      return;
    } catch (error) {
      // Its reader was so slow that the log was trimmed past it: it restarts, and the next result
      // has the difference.
      if (!(error instanceof Refusal && error.code === 'WATCH_COMPACTED')) throw error;
      records = records.renewed();
    }
  }
}

function isAny({ added, changed, removed }: Difference<unknown>): boolean {
  return added.length + changed.length + removed.length > 0;
}

function show<T>({ after }: VisibleChange): StoredRecord<T> {
  // A copy: callers must not change the records kept in memory.
  return toStoredRecord<T>(after!, toDocument(after!.data));
}
