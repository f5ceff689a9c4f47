import { isDeepStrictEqual } from 'node:util';
import {
  CommitTarget,
  checkRequestId,
  remember,
  requestIdReused,
  requestMemoryMs,
} from './requests.js';
import type { CollectionInfo, Core } from '../core/core.js';
import { isUpdate, mergePatch, refuse, toDocument, type JsonObject } from '../value/documents.js';
import { bulkCommitRecords } from './bulk.js';
import * as operations from './mutations.js';
import { parseUpdate } from './operators.js';
import type { Target } from './mutations.js';
import type { Filter } from '../value/filter.js';
import { compilePredicate } from '../value/predicate.js';
import { checkFind, wholeNumber } from '../query/query.js';
import type { Queries } from './reads.js';
import type { RecordImage } from '../format/record.js';
import { hashText } from '../value/bytes.js';
import { readUint48 } from '../format/keys.js';
import type { Transaction } from './transactions.js';

export interface ManyOptions {
  /** Maximum number of changed records. 0 or absent: all. */
  limit?: number | undefined;
  requestId?: string | undefined;
  transaction?: Transaction | undefined;
  /** `operators`: the patch is an update, even if no name in it is one of an operator. */
  mode?: 'operators' | undefined;
}

export interface ManyResult {
  matched: number;
  changed: number;
  /** The last commit; 0 when nothing was committed. */
  seq: number;
}

/** A missing filter must not match all records. */
export function checkFilterGiven(filter: unknown): void {
  if (typeof filter === 'object' && filter !== null) return;
  throw refuse('BAD_REQUEST', 'filter is missing. To match all records send {}.');
}

interface Progress extends ManyResult {
  /** Id of the last record processed. */
  after: string;
  done: boolean;
}

/** Changes a record; false: it stays unchanged. */
type Apply = (target: Target, collection: CollectionInfo, record: RecordImage) => boolean;

/** Updates and deletes of all records that match a filter, in commits of 1,000. */
export class BulkByFilter {
  constructor(
    private readonly core: Core,
    private readonly queries: Queries,
  ) {}

  /** Merges the patch (RFC 7396) into every record that matches, or applies its operators. */
  async updateMany(
    name: string,
    filter: unknown,
    patch: unknown,
    options: ManyOptions = {},
  ): Promise<ManyResult> {
    const change = changeOf(patch, options.mode);
    const print = ['update', patch];
    return this.#run(name, filter, options, print, (target, collection, record) => {
      const data = change(record.data, target.now);
      if (isDeepStrictEqual(data, record.data)) return false;
      operations.update(target, collection, record, { data });
      return true;
    });
  }

  async deleteMany(name: string, filter: unknown, options: ManyOptions = {}): Promise<ManyResult> {
    return this.#run(name, filter, options, ['delete'], (target, collection, record) => {
      target.remove(collection, record);
      return true;
    });
  }

  async #run(
    name: string,
    input: unknown,
    options: ManyOptions,
    print: readonly unknown[],
    apply: Apply,
  ): Promise<ManyResult> {
    checkFilterGiven(input);
    const filter = input as Filter;
    const limit = wholeNumber(options.limit, 'limit') || Infinity;
    const matches = compilePredicate(checkFind({ filter }).condition);
    const collection = this.core.catalog.find(name);
    const memory = this.#memory(options, [...print, name, filter, options.limit]);
    const before = memory && (await this.core.writer.submit(() => memory.load()));
    const progress = before ?? { matched: 0, changed: 0, seq: 0, after: '', done: false };
    if (progress.done || !collection) return resultOf(progress);
    const work = { collection, limit, matches, apply, progress, save: memory?.save };
    if (options.transaction) return this.#inside(options.transaction, filter, work);
    let ids: string[] = [];
    for await (const id of this.#ids(name, filter, progress.after, Boolean(memory))) {
      if (progress.changed >= limit) break;
      if (ids.push(id) < bulkCommitRecords) continue;
      await this.#commit(ids, work, false);
      ids = [];
    }
    await this.#commit(ids, work, true);
    return resultOf(progress);
  }

  /** Ordered by id when a repeated request must be able to continue after the last one. */
  async *#ids(name: string, filter: object, after: string, isOrdered: boolean) {
    const behind = { field: '$id', op: 'gt', value: after };
    const query = {
      filter: after === '' ? filter : { and: [filter, behind] },
      fields: ['$id'],
      ...(isOrdered ? { orderBy: [{ field: '$id' }] } : {}),
    };
    for await (const { records } of this.queries.find(name, query)) {
      for (const { image } of records) yield image.id;
    }
  }

  /** Each record is tested again: it may have changed since it was found. */
  async #commit(ids: readonly string[], work: Work, isLast: boolean): Promise<void> {
    const { collection, limit, matches, apply, progress, save } = work;
    if (ids.length === 0 && !(save && progress.changed > 0)) return;
    const next = await this.core.writer.submit(() => {
      const target = new CommitTarget(this.core);
      const made = { ...progress };
      for (const id of ids) {
        if (made.changed >= limit) break;
        made.after = id;
        const record = target.byId(collection, id);
        if (!record || !matches(record)) continue;
        made.matched++;
        if (apply(target, collection, record)) made.changed++;
      }
      if (target.commit.finish().length > 0) made.seq = target.commit.seq;
      made.done = isLast || made.changed >= limit;
      if (made.changed > 0) save?.(made);
      return made;
    });
    Object.assign(progress, next);
  }

  async #inside(transaction: Transaction, filter: object, work: Work): Promise<ManyResult> {
    const { collection, limit, apply, progress, save } = work;
    const found: string[] = [];
    const batches = this.queries.find(collection.name, { filter }, transaction);
    for await (const { records } of batches) for (const { image } of records) found.push(image.id);
    for (const id of found) {
      if (progress.changed >= limit) break;
      transaction.use();
      const record = transaction.byId(collection, id);
      if (!record) continue;
      progress.matched++;
      if (apply(transaction, collection, record)) progress.changed++;
    }
    progress.done = true;
    save?.(progress);
    return resultOf(progress);
  }

  /** Progress by request id: in the requests table, or in memory inside a transaction. */
  #memory({ requestId, transaction }: ManyOptions, print: readonly unknown[]) {
    if (!requestId) return undefined;
    checkRequestId(requestId);
    if (transaction) return this.#memoryIn(transaction, requestId);
    const { core } = this;
    const row = Buffer.from(`m:${requestId}`);
    const { high, low } = hashText(JSON.stringify(print));
    return {
      load: (): Progress | undefined => {
        const stored = core.writer.get('requests', row);
        if (!stored || readUint48(stored, 0) <= core.clock.now()) return undefined;
        if (stored.readUInt32BE(6) !== high || stored.readUInt32BE(10) !== low) {
          throw requestIdReused(requestId);
        }
        return JSON.parse(stored.toString('utf8', 14)) as Progress;
      },
      save: (progress: Progress): void => {
        const now = core.clock.now();
        const head = Buffer.alloc(14);
        head.writeUIntBE(now + requestMemoryMs, 0, 6);
        head.writeUInt32BE(high, 6);
        head.writeUInt32BE(low, 10);
        remember(core, row, now, Buffer.concat([head, Buffer.from(JSON.stringify(progress))]));
      },
    };
  }

  #memoryIn(transaction: Transaction, requestId: string) {
    const answered = this.#inTransactions.get(transaction) ?? new Map<string, Progress>();
    this.#inTransactions.set(transaction, answered);
    return {
      load: () => answered.get(requestId),
      save: (progress: Progress) => void answered.set(requestId, progress),
    };
  }
  readonly #inTransactions = new WeakMap<Transaction, Map<string, Progress>>();
}

interface Work {
  collection: CollectionInfo;
  limit: number;
  matches: (record: RecordImage) => boolean;
  apply: Apply;
  progress: Progress;
  save: ((progress: Progress) => void) | undefined;
}

/** What a merge patch or an update makes of a document. */
export function changeOf(
  patch: unknown,
  mode?: 'operators',
): (before: JsonObject, now: number) => JsonObject {
  if (mode || isUpdate(patch)) return parseUpdate(patch).apply;
  const document = toDocument(patch, 'patch');
  return (before) => mergePatch(before, document);
}

function resultOf({ matched, changed, seq }: Progress): ManyResult {
  return { matched, changed, seq };
}
