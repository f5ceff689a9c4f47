import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { Core } from '../core/core.js';
import {
  toStoredRecord,
  type DeletedRecord,
  type StoredRecord,
  type RecordImage,
} from '../format/record.js';
import type { Filter } from '../value/filter.js';
import { compilePredicate } from '../value/predicate.js';
import { checkFind, rowOf } from '../query/query.js';
import { checkKey, toDocument, refuse } from '../value/documents.js';
import { live } from '../watch/live.js';
import { showChange, type WatchChange } from '../watch/message.js';
import type { Watches } from '../watch/watches.js';
import type { Bulk } from '../write/bulk.js';
import type { BulkByFilter } from '../write/bulk-filter.js';
import type { BulkOutcome } from '../write/bulk-operations.js';
import type { BulkResult } from '../write/bulk-types.js';
import type { Address } from '../write/mutations.js';
import type { Queries, Reads } from '../write/reads.js';
import type { Outcome } from '../write/requests.js';
import type { Transaction } from '../write/transactions.js';
import type { Writes } from '../write/writes.js';
import { Collection } from './collection.js';
import type { CollectionPort, CollectionWatchOptions, FoundBatch } from './collection-port.js';

/** The parts of an open database that its collections work on. */
interface DatabaseParts {
  readonly reads: Reads;
  readonly writes: Writes;
  readonly queries: Queries;
  readonly watches: Watches;
  readonly bulk: Bulk;
  readonly bulkByFilter: BulkByFilter;
  readonly core: Pick<Core, 'clock'>;
}

/** Calls in process take the transaction itself, not just its id. */
interface EmbeddedKinds {
  read: { transaction?: Transaction | undefined };
  write: { transaction?: Transaction | undefined };
  watch: object;
  live: object;
}

/** A collection of a database in process. */
export class EmbeddedCollection<T extends object, In extends object = T> extends Collection<
  T,
  In,
  EmbeddedKinds
> {
  /** Synchronous `findById`. */
  getSync(id: string): StoredRecord<T> | undefined {
    return this.#record({ id });
  }

  /** Synchronous `findByKey`. */
  getByKeySync(key: string): StoredRecord<T> | undefined {
    return this.#record({ key });
  }

  #record(address: Address): StoredRecord<T> | undefined {
    const { reads } = this.port.owner as DatabaseParts;
    const { transaction } = this.call<EmbeddedKinds['read']>(undefined);
    const image = imageAt(reads, this.name, address, transaction);
    return image && toStoredRecord<T>(image);
  }
}

/** The calls of a collection on a database in process. */
export function collectionPort(database: DatabaseParts): CollectionPort<EmbeddedKinds> {
  const { reads, writes, queries, watches, bulk, bulkByFilter } = database;
  return {
    owner: database,
    ownerName: 'database',
    now: () => database.core.clock.now(),
    insert: async (name, data, options) => written(await writes.insert(name, data, options)),
    async get(name, address, { transaction, fields = [] }) {
      const image = imageAt(reads, name, address, transaction);
      const project = fields.length > 0 ? checkFind({ fields }).project : undefined;
      return image && toStoredRecord(image, project ? project(image) : image.data);
    },
    async update(name, address, data, { expectedRev, ...options }) {
      const outcome =
        expectedRev === undefined
          ? await writes.update(name, address, data, options)
          : await writes.updateIfRev(name, address, expectedRev, data, options);
      return written(outcome);
    },
    async upsert(name, key, data, options) {
      const outcome = await writes.upsert(name, key, data, options);
      return { record: written(outcome), created: outcome.created };
    },
    delete: async <T>(...[name, address, options]: Parameters<Writes['remove']>) => {
      const outcome = await writes.remove(name, address, options);
      return Object.assign(written<T>(outcome), { deletedSeq: outcome.seq }) as DeletedRecord<T>;
    },
    async insertMany(name, documents, { transaction, requestId, ttlMs }) {
      const operations = documents.map((data) => ({ insert: { data, ttlMs } }));
      // Inside a transaction a failure keeps the inserts before it.
      const options = { requestId, transaction, atomic: !transaction, ordered: true };
      const outcomes = await bulk.write(name, operations, options);
      return outcomes.map((outcome) => insertedBy(outcome));
    },
    async bulkWrite(name, operations, { returnRecords = false, ...options }) {
      const outcomes = await bulk.write(name, operations, options);
      const seq = Math.max(0, ...outcomes.map((one) => (one.status === 'OK' ? one.seq : 0)));
      return { results: outcomes.map((outcome) => resultOf(outcome, returnRecords)), seq };
    },
    updateMany: (name, filter, patch, options) =>
      bulkByFilter.updateMany(name, filter, patch, options),
    deleteMany: (name, filter, options) => bulkByFilter.deleteMany(name, filter, options),
    async *find<T>(
      name: string,
      query: object,
      { transaction }: EmbeddedKinds['read'],
    ): AsyncGenerator<FoundBatch<T>, void, void> {
      for await (const { records, end, readSeq } of queries.find(name, query, transaction)) {
        const shown = records.map(({ image, data, hit }) => ({
          ...toStoredRecord<T>(image, data),
          ...hit,
        }));
        const { nextCursor, plan, count } = end ?? {};
        yield { records: shown, readSeq, nextCursor, plan, count };
      }
    },
    aggregate: (name, query, { transaction }) => queries.aggregate(name, query, transaction),
    distinct: async (name, query, { transaction }) =>
      (await queries.distinct(name, query, transaction)).values,
    watch<T>(collection: string, options: object) {
      const { filter, fields, includeBefore, ...rest } = options as CollectionWatchOptions & {
        filter?: Filter | undefined;
      };
      const { condition, project } = checkFind({ filter, fields });
      return watches.open<WatchChange<T>>({
        ...rest,
        collection,
        filter: condition.kind === 'all' ? undefined : compilePredicate(condition),
        // Copied: other watches see the same data.
        show: showChange<T>({
          includeBefore,
          fields: (data) => toDocument(project ? project(rowOf(data)) : data),
        }),
      });
    },
    live: (name, query) => live(watches, name, query),
  };
}

function imageAt(
  reads: Reads,
  name: string,
  address: Address,
  transaction: Transaction | undefined,
): RecordImage | undefined {
  if ('key' in address) {
    checkKey(address.key);
    return reads.byKey(name, address.key, transaction);
  }
  return isUlid(address.id) ? reads.byId(name, normalizeUlid(address.id), transaction) : undefined;
}

function written<T>(outcome: Outcome): StoredRecord<T> {
  return toStoredRecord<T>(outcome.record!);
}

function insertedBy<T>(outcome: BulkOutcome): StoredRecord<T> {
  if (outcome.status === 'FAILED') throw outcome.error;
  if (outcome.status === 'OK' && outcome.record) return toStoredRecord<T>(outcome.record);
  throw refuse('REQUEST_ID_REUSED', 'The records of this request have changed since.');
}

function resultOf<T>(outcome: BulkOutcome, withRecord: boolean): BulkResult<T> {
  const { status } = outcome;
  const none = { status, id: '', key: '', rev: 0, created: false, seq: 0 };
  if (outcome.status === 'NOT_RUN') return none;
  if (outcome.status === 'FAILED') {
    return { ...none, error: { reason: outcome.error.code, message: outcome.error.detail } };
  }
  const { record, ...rest } = outcome;
  return withRecord && record ? { ...rest, record: toStoredRecord<T>(record) } : rest;
}
