import type { CollectionInfo, Core } from '../core/core.js';
import { RecordImage } from '../format/record.js';
import { prefixed, readId, recordKey } from '../format/keys.js';
import type { Transaction } from './transactions.js';
import {
  aggregate,
  checkDistinct,
  distinct,
  type AggregateResult,
  type DistinctResult,
} from '../query/aggregate.js';
import { checkAggregate } from '../query/aggregate-query.js';
import type { Condition } from '../value/filter.js';
import { find, type FindBatch } from '../query/find.js';
import { compilePredicate } from '../value/predicate.js';
import { checkFind } from '../query/query.js';
import type { Slice } from '../core/slice.js';
import type { QuerySource } from '../query/source.js';
import type { ReadView } from '../storage/views.js';
import { checkCollectionName, refuse } from '../value/documents.js';

/** Reads of single records, from the newest commit that is visible or inside a transaction. */
export class Reads {
  constructor(private readonly core: Core) {}

  byId(name: string, id: string, transaction?: Transaction): RecordImage | undefined {
    const collection = this.#collection(name);
    if (transaction) {
      transaction.use();
      if (collection) return transaction.byId(collection, id);
      transaction.notePredicate({ collection: name, matches: (image) => image.id === id });
    }
    return collection && this.#live(this.#record(collection.id, id));
  }

  byKey(name: string, key: string, transaction?: Transaction): RecordImage | undefined {
    const collection = this.#collection(name);
    if (transaction) {
      transaction.use();
      if (collection) return transaction.byKey(collection, key);
      // There is no record to track as read, but another writer may create it.
      transaction.notePredicate({ collection: name, matches: (image) => image.key === key });
    }
    if (!collection) return undefined;
    const id = this.core.store.get('keys', prefixed(collection.id, Buffer.from(key)));
    return id && this.#live(this.#record(collection.id, readId(id, 0)));
  }

  #collection(name: string): CollectionInfo | undefined {
    if (this.core.closed) throw this.core.closed;
    return this.core.catalog.find(name);
  }

  #record(collection: number, id: string): RecordImage | undefined {
    const bytes = this.core.store.get('records', recordKey(collection, id));
    return bytes && new RecordImage(id, bytes, bytes.length, this.core.codecs(collection));
  }

  #live(record: RecordImage | undefined): RecordImage | undefined {
    return record?.isExpired(this.core.clock.now()) ? undefined : record;
  }
}

/** The commit that a query read. */
interface ReadPoint {
  readSeq: number;
}

// A collection without any write so far answers like an empty one.
const noCollection: CollectionInfo = {
  id: 0,
  name: '',
  indexes: [],
  defaultTtlMs: 0,
  schema: undefined,
  isDropped: false,
};

/** The collections that lookups of a query read. */
export function foreignOf(
  core: Core,
  transaction: Transaction | undefined,
): NonNullable<QuerySource['foreign']> {
  return (name) => {
    checkCollectionName(name);
    // Whatever a lookup did not find must still not exist when the transaction commits.
    transaction?.notePredicate({ collection: name, matches: () => true });
    const info = core.catalog.find(name);
    if (!info || !transaction) return info && { id: info.id, indexes: core.usableIndexes(info) };
    const indexes = transaction.usableIndexes(info);
    return { id: info.id, indexes, overlay: transaction.overlay(info.id) };
  };
}

const searchPatienceMs = 5_000;

/** Waits a moment for search and vector indexes that are built: nothing else serves the query. */
export async function searchReady({ catalog, clock }: Core, name: string): Promise<void> {
  const isBuilding = () =>
    catalog
      .find(name)
      ?.indexes.some(({ definition, state }) => definition.kind && state === 'building');
  if (!isBuilding()) return;
  let isOver = false;
  let end = () => {};
  const over = new Promise<void>((resolve) => (end = resolve));
  const timer = clock.after(searchPatienceMs, () => {
    isOver = true;
    end();
  });
  while (!isOver && isBuilding()) await Promise.race([catalog.indexStateChanged(), over]);
  timer.cancel();
}

/** Refuses an index that became ready later: the snapshot of the transaction lacks its entries. */
function requireIndex(transaction: Transaction, { indexes }: CollectionInfo, kind: string): void {
  const [found, ...others] = indexes.filter(({ definition }) => definition.kind === kind);
  if (!found || transaction.usableIndexes({ indexes: [found, ...others] }).length > 0) return;
  const problem = `The index ${found.name} was not ready when the transaction began.`;
  throw refuse('INDEX_REQUIRED', `${problem} Begin another one.`);
}

/** Queries on one collection: each on one snapshot, or inside a transaction. */
export class Queries {
  constructor(private readonly core: Core) {}

  /** The matching records, in batches. The snapshot is held until the last one was read. */
  async *find(
    name: string,
    input: unknown,
    transaction?: Transaction,
  ): AsyncGenerator<FindBatch & ReadPoint, void, void> {
    const query = checkFind(input);
    if (query.search || query.near) {
      await searchReady(this.core, name);
      const collection = transaction && this.core.catalog.find(name);
      if (collection && query.search) requireIndex(transaction, collection, 'search');
      if (collection && query.near) requireIndex(transaction, collection, 'vector');
    }
    const slice = this.core.newSlice();
    // Before the snapshot: queries that wait must not hold snapshots.
    if (!transaction) await slice.begin();
    const [source, done] = this.#source(name, query.condition, slice, transaction);
    try {
      const readSeq = source.view.seq;
      for await (const batch of find(source, query)) yield { ...batch, readSeq };
    } finally {
      done();
    }
  }

  async aggregate(
    name: string,
    input: unknown,
    transaction?: Transaction,
  ): Promise<AggregateResult & ReadPoint> {
    const query = checkAggregate(input);
    const slice = this.core.newSlice();
    if (!transaction) await slice.begin();
    const [source, done] = this.#source(name, query.condition, slice, transaction);
    try {
      return { ...(await aggregate(source, query)), readSeq: source.view.seq };
    } finally {
      done();
    }
  }

  async distinct(
    name: string,
    input: unknown,
    transaction?: Transaction,
  ): Promise<DistinctResult & ReadPoint> {
    const query = checkDistinct(input);
    const slice = this.core.newSlice();
    if (!transaction) await slice.begin();
    const [source, done] = this.#source(name, query.condition, slice, transaction);
    try {
      return { ...(await distinct(source, query)), readSeq: source.view.seq };
    } finally {
      done();
    }
  }

  #source(
    name: string,
    condition: Condition,
    slice: Slice,
    transaction: Transaction | undefined,
  ): [QuerySource, () => void] {
    const { clock, sortSpace } = this.core;
    const known = this.core.catalog.find(name);
    const collection = known ?? { ...noCollection, name };
    const now = clock.now();
    const foreign = foreignOf(this.core, transaction);
    const from = (view: ReadView): QuerySource => ({
      view,
      collection,
      now,
      slice,
      sortSpace,
      foreign,
    });
    if (!transaction) {
      const view = this.core.snapshot();
      const seen = { ...collection, indexes: this.core.usableIndexes(collection) };
      return [{ ...from(view), collection: seen }, () => view.done()];
    }
    transaction.use();
    // Records that the query did not find must still not exist when the transaction commits.
    transaction.notePredicate({ collection: name, matches: compilePredicate(condition) });
    const overlay = transaction.overlay(collection.id);
    const seen = { ...collection, indexes: transaction.usableIndexes(collection) };
    return [{ ...from(transaction.view), collection: seen, overlay }, () => undefined];
  }
}
