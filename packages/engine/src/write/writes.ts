import type { CollectionInfo, Core } from '../core/core.js';
import { CommitTarget, once, type Outcome } from './requests.js';
import {
  ownDocument,
  refuseOperators,
  toDocument,
  type JsonObject,
  type WriteMode,
} from '../value/documents.js';
import { encodeDocument, encodeValue } from '../format/record.js';
import * as operations from './mutations.js';
import type { Address, Document, Target, WriteOptions } from './mutations.js';
import { parseUpdate } from './operators.js';
import type { Transaction } from './transactions.js';

/** Options of every write. */
export interface CallOptions extends WriteOptions {
  /** Idempotency key: the write can be repeated safely for ten minutes. */
  requestId?: string | undefined;
  /** Writes inside this transaction instead of in its own commit. */
  transaction?: Transaction | undefined;
  /** The caller keeps no reference to the data, so it is not copied. */
  isDataOwn?: boolean | undefined;
}

/** The writes of a database, each in its own commit or as part of a transaction. */
export class Writes {
  constructor(private readonly core: Core) {}

  insert(
    collection: string,
    data: unknown,
    options: CallOptions & { id?: string | undefined; key?: string | undefined } = {},
  ): Promise<Outcome> {
    const document = this.#document(data, options);
    const print = () => [
      'insert',
      collection,
      options.id,
      options.key,
      document.data,
      options.ttlMs,
    ];
    return this.#run(collection, options, print, (target, info) =>
      operations.insert(target, info, document, options),
    );
  }

  update(
    collection: string,
    address: Address,
    data: unknown,
    options: CallOptions & { mode?: WriteMode | undefined } = {},
  ): Promise<Outcome> {
    const document = this.#document(data, options);
    const print = () => ['update', collection, address, document.data, options.mode, options.ttlMs];
    return this.#run(collection, options, print, (target, info) =>
      operations.update(target, info, address, document, options),
    );
  }

  upsert(
    collection: string,
    key: string,
    data: unknown,
    options: CallOptions & { mode?: WriteMode | undefined } = {},
  ): Promise<Outcome> {
    const document = this.#document(data, options);
    const print = () => ['upsert', collection, key, document.data, options.mode, options.ttlMs];
    return this.#run(collection, options, print, (target, info) =>
      operations.upsert(target, info, key, document, options),
    );
  }

  updateIfRev(
    collection: string,
    address: Address,
    expectedRev: number,
    data: unknown,
    options: CallOptions & { mode?: WriteMode | undefined } = {},
  ): Promise<Outcome> {
    const document = this.#document(data, options);
    const print = () => [
      'updateIfRev',
      collection,
      address,
      expectedRev,
      document.data,
      options.mode,
      options.ttlMs,
    ];
    return this.#run(collection, options, print, (target, info) =>
      operations.updateIfRev(target, info, address, expectedRev, document, options),
    );
  }

  /** The record in the outcome is the deleted one. */
  remove(collection: string, address: Address, options: CallOptions = {}): Promise<Outcome> {
    const print = () => ['remove', collection, address];
    return this.#run(collection, options, print, (target, info) => ({
      record: operations.remove(target, info, address),
      created: false,
    }));
  }

  /** Checks and encodes outside the writer, to keep the job short. */
  #document(data: unknown, options: CallOptions & { mode?: WriteMode | undefined }): Document {
    const { isDataOwn, mode } = options;
    if (mode === 'operators') return { data: data as JsonObject, update: parseUpdate(data) };
    refuseOperators(data);
    if (mode === 'merge') return { data: isDataOwn ? ownDocument(data) : toDocument(data) };
    if (isDataOwn) return encodeValue(this.core, data, true);
    // The caller gets this copy back: decoding the stored bytes would take longer.
    return encodeDocument(this.core, toDocument(data));
  }

  #run(name: string, options: CallOptions, fingerprint: Print, operate: Operate): Promise<Outcome> {
    const known = this.core.catalog.find(name);
    if (known) return this.#runIn(known, options, fingerprint, operate);
    const made = this.core.ensureCollection(name);
    return made.then((collection) => this.#runIn(collection, options, fingerprint, operate));
  }

  #runIn(
    collection: CollectionInfo,
    options: CallOptions,
    fingerprint: Print,
    operate: Operate,
  ): Promise<Outcome> {
    const { requestId, transaction } = options;
    const print = requestId ? JSON.stringify(fingerprint()) : '';
    if (transaction) return inside(transaction, requestId, print, collection, operate);
    if (!requestId) return this.core.writer.submit(() => this.#commit(collection, operate));
    return this.core.writer.submit(() =>
      once(this.core, requestId, print, () => this.#commit(collection, operate)),
    );
  }

  #commit(collection: CollectionInfo, operate: Operate): Outcome {
    const target = new CommitTarget(this.core);
    const written = operate(target, collection);
    target.commit.finish();
    return outcomeOf(written, target.commit.seq);
  }
}

/** Distinguishes requests that have the same id. */
type Print = () => unknown;
type Operate = (target: Target, collection: CollectionInfo) => operations.Written;

/** A refusal rejects the promise, as for any other write. */
async function inside(
  transaction: Transaction,
  requestId: string | undefined,
  print: string,
  collection: CollectionInfo,
  operate: Operate,
): Promise<Outcome> {
  transaction.use();
  return transaction.once(requestId, print, () => outcomeOf(operate(transaction, collection), 0));
}

function outcomeOf({ record, created }: operations.Written, seq: number): Outcome {
  return { record, created, seq };
}
