import { Refusal } from '@millrace/kit/errors';
import {
  BulkMemory,
  maxBulkOperations,
  type BulkOperation,
  type BulkOptions,
  type BulkOutcome,
  type Place,
} from './bulk-operations.js';
import type { CollectionInfo, Core } from '../core/core.js';
import { CommitTarget, checkRequestId, once } from './requests.js';
import {
  ownDocument,
  toDocument,
  isMerge,
  type JsonObject,
  type UpdateMode,
  refuse,
  refuseOperators,
} from '../value/documents.js';
import { encodeValue, type EncodedDocument } from '../format/record.js';
import * as operations from './mutations.js';
import type { Address, Document, Target, Written } from './mutations.js';
import { parseUpdate } from './operators.js';
import type { Transaction } from './transactions.js';

/** Records per commit of a bulk that is not atomic. */
export const bulkCommitRecords = 1_000;

type Operate = (target: Target, collection: CollectionInfo) => Written;

/** An operation that was checked outside the writer. */
interface Ready {
  operate: Operate;
  document?: Document;
}
type Prepared = Ready | Refusal;

/**
 * Thrown inside a job: an operation may have written some of its rows, so the job must not commit.
 */
class PartlyApplied extends Error {}

/** Writes of many records of one collection. */
export class Bulk {
  readonly #inTransactions = new WeakMap<Transaction, Map<string, BulkOutcome[]>>();

  constructor(private readonly core: Core) {}

  /** The outcomes, in order. Atomic: refuses with the first failure. */
  async write(
    name: string,
    list: readonly (BulkOperation | Refusal)[],
    options: BulkOptions = {},
  ): Promise<BulkOutcome[]> {
    if (!Array.isArray(list)) throw refuse('BAD_REQUEST', 'operations must be a list.');
    if (list.length > maxBulkOperations) {
      throw refuse(
        'BAD_REQUEST',
        `operations has ${list.length} items, more than the limit of ${maxBulkOperations}.`,
      );
    }
    const { requestId, transaction, atomic } = options;
    if (requestId) checkRequestId(requestId);
    if (atomic && transaction) {
      throw refuse('BAD_REQUEST', 'Send atomic or a transaction, not both.');
    }
    const prepared = list.map((operation, i) => this.#prepare(operation, i, options));
    if (list.length === 0) return [];
    const collection = await this.core.ensureCollection(name);
    if (transaction) return this.#inside(transaction, collection, prepared, options);
    if (atomic) return this.#atomic(collection, list, prepared, requestId);
    return this.#chunks(collection, list, prepared, options);
  }

  #inside(
    transaction: Transaction,
    collection: CollectionInfo,
    prepared: readonly Prepared[],
    { requestId, ordered = false }: BulkOptions,
  ): BulkOutcome[] {
    transaction.use();
    const answered = this.#inTransactions.get(transaction) ?? new Map<string, BulkOutcome[]>();
    const before = requestId ? answered.get(requestId) : undefined;
    if (before) return before;
    const run = (operate: Operate) => {
      transaction.use();
      return done(operate(transaction, collection), 0);
    };
    const outcomes = runAll(prepared, ordered, run, () => false);
    if (requestId) this.#inTransactions.set(transaction, answered.set(requestId, outcomes));
    return outcomes;
  }

  async #atomic(
    collection: CollectionInfo,
    list: readonly (BulkOperation | Refusal)[],
    prepared: readonly Prepared[],
    requestId: string | undefined,
  ): Promise<BulkOutcome[]> {
    const memory = requestId
      ? new BulkMemory(this.core, requestId, 0, list, documentsOf(prepared))
      : undefined;
    return this.core.writer.submit(() => {
      const stored = memory?.find(collection);
      if (stored && stored !== 'split') return stored;
      const target = new CommitTarget(this.core);
      const outcomes = prepared.map((each, i): BulkOutcome => {
        if (each instanceof Refusal) throw each;
        try {
          return done(each.operate(target, collection), target.commit.seq);
        } catch (error) {
          throw error instanceof Refusal ? atOperation(error, i) : error;
        }
      });
      target.commit.finish();
      memory?.save(outcomes);
      return outcomes;
    });
  }

  async #chunks(
    collection: CollectionInfo,
    list: readonly (BulkOperation | Refusal)[],
    prepared: readonly Prepared[],
    options: BulkOptions,
  ): Promise<BulkOutcome[]> {
    const all: BulkOutcome[] = [];
    for (let start = 0; start < list.length; start += bulkCommitRecords) {
      const end = start + bulkCommitRecords;
      const part = { start, list: list.slice(start, end), prepared: prepared.slice(start, end) };
      const outcomes = await this.#chunk(collection, part, options);
      all.push(...outcomes);
      if (options.ordered && outcomes.some(({ status }) => status !== 'OK')) break;
    }
    while (all.length < list.length) all.push({ status: 'NOT_RUN' });
    return all;
  }

  /**
   * One commit. If a unique index refuses a record in the middle, its operations run one by one.
   */
  async #chunk(
    collection: CollectionInfo,
    { start, list, prepared }: Chunk,
    { requestId, ordered = false }: BulkOptions,
  ): Promise<BulkOutcome[]> {
    const { core } = this;
    const memory = requestId
      ? new BulkMemory(core, requestId, start, list, documentsOf(prepared))
      : undefined;
    try {
      const outcomes = await core.writer.submit(() => {
        const stored = memory?.find(collection);
        if (stored) return stored;
        const target = new CommitTarget(core);
        const run = (operate: Operate) => done(operate(target, collection), target.commit.seq);
        const made = runAll(prepared, ordered, run, isPartlyApplied);
        target.commit.finish();
        memory?.save(made);
        return made;
      });
      if (outcomes !== 'split') return outcomes;
    } catch (error) {
      if (!(error instanceof PartlyApplied)) throw error;
      if (memory) await core.writer.submit(() => memory.save('split'));
    }
    return this.#single(collection, { start, list, prepared }, { requestId, ordered });
  }

  async #single(
    collection: CollectionInfo,
    { start, list, prepared }: Chunk,
    { requestId, ordered }: { requestId: string | undefined; ordered: boolean },
  ): Promise<BulkOutcome[]> {
    const one = async (each: Prepared, i: number): Promise<BulkOutcome> => {
      if (each instanceof Refusal) return { status: 'FAILED', error: each };
      try {
        const id = requestId && `${requestId.slice(0, 100)}#${start + i}`;
        const { record, created, seq } = await this.core.writer.submit(() =>
          once(this.core, id, JSON.stringify([requestId, list[i]]), () => {
            const target = new CommitTarget(this.core);
            const written = each.operate(target, collection);
            target.commit.finish();
            return { ...written, seq: target.commit.seq };
          }),
        );
        return done({ record: record!, created }, seq);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { status: 'FAILED', error };
      }
    };
    if (!ordered) return Promise.all(prepared.map(one));
    const outcomes: BulkOutcome[] = [];
    for (const [i, each] of prepared.entries()) {
      const outcome = await one(each, i);
      outcomes.push(outcome);
      if (outcome.status !== 'OK') break;
    }
    while (outcomes.length < prepared.length) outcomes.push({ status: 'NOT_RUN' });
    return outcomes;
  }

  /** Checks and encodes outside the writer, to keep the job short. */
  #prepare(operation: BulkOperation | Refusal, i: number, options: BulkOptions): Prepared {
    try {
      if (operation instanceof Refusal) throw operation;
      return this.#operate(operation, options);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (options.atomic) throw atOperation(error, i);
      return error;
    }
  }

  #operate(operation: BulkOperation, options: BulkOptions): Ready {
    const given = Object.entries(operation ?? {}).filter(([, value]) => value !== undefined);
    const [kind] = given.length === 1 ? given[0]! : [''];
    const { insert, upsert, update } = given.length === 1 ? operation : {};
    if (kind === 'insert' && insert) {
      const { id, key } = insert;
      const document = this.#document(insert, undefined, options);
      const place = { ttlMs: insert.ttlMs, id: id || undefined, key: key || undefined };
      return {
        document,
        operate: (target, info) => operations.insert(target, info, document, place),
      };
    }
    if (kind === 'upsert' && upsert) {
      const written = { ...upsert, mode: modeOf(upsert) };
      const document = this.#document(upsert, written.mode, options);
      return {
        document,
        operate: (target, info) => operations.upsert(target, info, upsert.key, document, written),
      };
    }
    if (kind === 'update' && update) {
      const address = addressOf(update);
      const written = { ...update, mode: modeOf(update) };
      const document = this.#document(update, written.mode, options);
      const { expectedRev } = update;
      const operate: Operate =
        expectedRev === undefined
          ? (target, info) => operations.update(target, info, address, document, written)
          : (target, info) =>
              operations.updateIfRev(target, info, address, expectedRev, document, written);
      return { document, operate };
    }
    if (kind === 'delete' && operation.delete) {
      const address = addressOf(operation.delete);
      const operate: Operate = (target, info) => ({
        record: operations.remove(target, info, address),
        created: false,
      });
      return { operate };
    }
    throw refuse('BAD_REQUEST', 'An operation is one of insert, upsert, update or delete.');
  }

  #document(
    { data, update }: { data?: unknown; update?: unknown },
    mode: UpdateMode | undefined,
    { isDataOwn }: BulkOptions,
  ): Document {
    if (update !== undefined) {
      if (data !== undefined) throw refuse('BAD_REQUEST', 'Send data or update, not both.');
      return { data: update as JsonObject, update: parseUpdate(update) };
    }
    refuseOperators(data);
    if (mode !== 'merge') return encodeValue(this.core, data, isDataOwn);
    return { data: isDataOwn ? ownDocument(data) : toDocument(data) };
  }
}

interface Chunk {
  start: number;
  list: readonly (BulkOperation | Refusal)[];
  prepared: readonly Prepared[];
}

function documentsOf(prepared: readonly Prepared[]): (EncodedDocument | undefined)[] {
  return prepared.map((each) => (each instanceof Refusal ? undefined : each.document?.encoded));
}

function runAll(
  prepared: readonly Prepared[],
  ordered: boolean,
  run: (operate: Operate) => BulkOutcome,
  mustAbort: (error: Refusal) => boolean,
): BulkOutcome[] {
  let isStopped = false;
  return prepared.map((each): BulkOutcome => {
    if (isStopped) return { status: 'NOT_RUN' };
    try {
      if (each instanceof Refusal) throw each;
      return run(each.operate);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (mustAbort(error)) throw new PartlyApplied();
      isStopped = ordered;
      return { status: 'FAILED', error };
    }
  });
}

function done({ record, created }: Written, seq: number): BulkOutcome {
  const { id, key, rev } = record;
  return { status: 'OK', id, key, rev, created, seq, record };
}

/** All other refusals come before the first row is written. */
function isPartlyApplied(error: Refusal): boolean {
  return error.code === 'UNIQUE_VIOLATION';
}

function atOperation(error: Refusal, i: number): Refusal {
  return new Refusal(error.code, `operations[${i}]: ${error.detail}`, error.extra);
}

function modeOf({ mode }: { mode?: UpdateMode | undefined }): UpdateMode {
  return isMerge(mode) ? 'merge' : 'replace';
}

function addressOf({ id, key }: Place): Address {
  if (id && key) throw refuse('BAD_REQUEST', 'Send id or key, not both.');
  if (key) return { key };
  if (id) return { id };
  throw refuse('BAD_REQUEST', 'id or key is missing.');
}
