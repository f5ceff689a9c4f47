import { type Position, Sorter } from '../query/sort.js';
import { type StoredRecord, toStoredRecord } from '../format/record.js';
import type { VisibleChange } from './message.js';
import { Refusal } from '@millrace/kit/errors';
import { checkCollectionName, toDocument } from '../value/documents.js';
import { compilePredicate } from '../value/predicate.js';
import { checkFind, type FindQuery } from '../query/query.js';
import type { Watches, WatchOptions } from './watches.js';

export interface Difference<T> {
  added: StoredRecord<T>[];
  changed: StoredRecord<T>[];
  removed: StoredRecord<T>[];
}

interface Entry<T> {
  position: Position;
  record: StoredRecord<T>;
}

/**
 * The records of a live query: all matching ones, in order, of which the first `limit` are shown.
 */
export class LiveRecords<T> {
  readonly #byId = new Map<string, Entry<T>>();
  #sorted: Entry<T>[] = [];

  constructor(
    private readonly sorter: Sorter,
    private readonly limit: number,
    private readonly show: (change: VisibleChange) => StoredRecord<T>,
    /** The records shown last. */
    public window: readonly StoredRecord<T>[] = [],
  ) {}

  /** The same query restarted; the records shown last are kept for the comparison. */
  renewed(): LiveRecords<T> {
    return new LiveRecords(this.sorter, this.limit, this.show, this.window);
  }

  /** Adds initial records, before `settle`. */
  load(changes: readonly VisibleChange[]): void {
    for (const change of changes) {
      const entry = this.#entry(change);
      this.#byId.set(change.id, entry);
      this.#sorted.push(entry);
    }
  }

  /** Called when all initial records are loaded. */
  settle(): Difference<T> {
    this.#sorted.sort((a, b) => this.sorter.compare(a.position, b.position));
    return this.#show();
  }

  /** Applies the changes of one commit. */
  apply(changes: readonly VisibleChange[]): Difference<T> {
    const seen: Difference<T> = { added: [], changed: [], removed: [] };
    for (const change of changes) {
      const old = this.#take(change.id);
      const fresh = change.after && !change.left ? this.#put(change) : undefined;
      if (old && fresh) seen.changed.push(fresh.record);
      else if (fresh) seen.added.push(fresh.record);
      else if (old) seen.removed.push(old.record);
    }
    if (this.limit !== Infinity) return this.#show();
    this.window = this.#sorted.map((entry) => entry.record);
    return seen;
  }

  /** Computes the window and compares it with the previous one. */
  #show(): Difference<T> {
    const before = new Map(this.window.map((record) => [record.id, record]));
    this.window = this.#sorted.slice(0, this.limit).map((entry) => entry.record);
    const difference: Difference<T> = { added: [], changed: [], removed: [] };
    for (const record of this.window) {
      const old = before.get(record.id);
      before.delete(record.id);
      if (!old) difference.added.push(record);
      else if (old.seq !== record.seq) difference.changed.push(record);
    }
    difference.removed.push(...before.values());
    return difference;
  }

  #entry(change: VisibleChange): Entry<T> {
    return { position: this.sorter.positionOf(change.after!), record: this.show(change) };
  }

  #put(change: VisibleChange): Entry<T> {
    const entry = this.#entry(change);
    this.#byId.set(change.id, entry);
    this.#sorted.splice(this.#placeOf(entry.position), 0, entry);
    return entry;
  }

  #take(id: string): Entry<T> | undefined {
    const entry = this.#byId.get(id);
    if (!entry) return undefined;
    this.#byId.delete(id);
    this.#sorted.splice(this.#placeOf(entry.position), 1);
    return entry;
  }

  /** The first index that is not before `position`. */
  #placeOf(position: Position): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.sorter.compare(this.#sorted[middle]!.position, position) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** A live query. */
type LiveQuery = Pick<FindQuery, 'filter' | 'orderBy' | 'limit'> & {
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
