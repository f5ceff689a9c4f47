import type { CollectionInfo } from '../core/catalog.js';
import { CommitTarget } from './commit-target.js';
import type { Core } from '../core/core.js';
import { ownDocument, toDocument } from '../value/documents.js';
import { encodeDocument, encodeValue } from '../format/encoded-document.js';
import * as operations from './operations.js';
import type { Address, Document, Target, WriteOptions } from './operations.js';
import { once, type Outcome } from './requests.js';
import type { Transaction } from './transactions.js';
import type { UpdateMode } from '../value/update-mode.js';

/** What every write may carry beside its own arguments. */
export interface CallOptions extends WriteOptions {
  /** Makes the write safe to repeat for ten minutes. */
  requestId?: string | undefined;
  /** Does the write inside this transaction instead of at once. */
  transaction?: Transaction | undefined;
  /** Nobody else holds the data: it need not be copied. */
  isDataOwn?: boolean | undefined;
}

/** The writes of a database, each one commit of its own or a part of a transaction. */
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
    options: CallOptions & { mode?: UpdateMode | undefined } = {},
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
    options: CallOptions & { mode?: UpdateMode | undefined } = {},
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
    options: CallOptions & { mode?: UpdateMode | undefined } = {},
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

  /** The outcome's record is the one that is gone. */
  remove(collection: string, address: Address, options: CallOptions = {}): Promise<Outcome> {
    const print = () => ['remove', collection, address];
    return this.#run(collection, options, print, (target, info) => ({
      record: operations.remove(target, info, address),
      created: false,
    }));
  }

  /** Checks and encodes outside the writer, so that its turn is short. */
  #document(data: unknown, options: CallOptions & { mode?: UpdateMode | undefined }): Document {
    const { isDataOwn, mode } = options;
    if (mode === 'merge') return { data: isDataOwn ? ownDocument(data) : toDocument(data) };
    if (isDataOwn) return encodeValue(this.core, data, true);
    // The caller gets the copy back: making it of the packed bytes would take longer.
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

/** A refusal comes with the promise, as that of any other write does. */
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
