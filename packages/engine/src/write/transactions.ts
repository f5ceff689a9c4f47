import type { Timer } from '@millrace/kit/clock';
import type { CollectionInfo, IndexInfo, Core } from '../core/core.js';
import {
  CommitTarget,
  checkRequestId,
  requestIdReused,
  type Outcome,
  closed,
  expired,
  rememberCommit,
  type CommitResult,
} from './requests.js';
import { type JsonObject, refuse } from '../value/documents.js';
import { enforceSchema } from '../core/schema.js';
import { encodeDocument, type EncodedDocument, RecordImage } from '../format/record.js';
import { uniqueViolation, type Target } from './mutations.js';
import { ReadSet, type ReadPredicate } from './read-set.js';
import type { SnapshotView } from '../storage/views.js';

export const transactionLimits = {
  lifetimeMs: 60_000,
  idleMs: 10_000,
  operations: 1_000,
  bytes: 8 * 1024 * 1024,
  /** Each holds a snapshot, and LMDB has slots for a few thousand readers. */
  open: 1_000,
};

/** The write of a transaction to one record: its new image, or null for a delete. */
interface OwnWrite {
  collection: CollectionInfo;
  base: RecordImage | undefined;
  image: RecordImage | null;
  document: EncodedDocument | undefined;
}

/**
 * An interactive transaction. It reads one snapshot, buffers its own writes, and tracks what it
 * read: records, keys that did not exist, conditions. At the commit, inside the writer, all of that
 * must be unchanged; then its writes become one commit. So transactions are serializable.
 */
export class Transaction implements Target {
  readonly expiresAt: number;
  readonly view: SnapshotView;
  /**
   * Indexes that were ready when it began: one that was built since may lack records of its
   * snapshot.
   */
  readonly #usableIndexes: ReadonlySet<IndexInfo>;
  readonly #own = new Map<string, OwnWrite>();
  readonly #ownKeys = new Map<string, string | null>();
  readonly #reads: ReadSet;
  readonly #requests = new Map<string, { fingerprint: string; outcome: Outcome }>();
  #operations = 0;
  #bytes = 0;
  #idle: Timer | undefined;
  #lifetime: Timer | undefined;
  #state: 'open' | 'expired' | 'closed' = 'open';

  constructor(
    private readonly core: Core,
    readonly id: string,
    readonly readOnly: boolean,
    lifetimeMs: number,
    private readonly onEnd: (transaction: Transaction, expired: boolean) => void,
  ) {
    this.view = core.snapshot();
    this.#reads = new ReadSet(core, id, this.view.seq);
    const usable = core.catalog.all().flatMap((each) => core.usableIndexes(each));
    this.#usableIndexes = new Set(usable.filter(({ state }) => state === 'ready'));
    this.expiresAt = core.clock.now() + lifetimeMs;
    this.#lifetime = core.clock.after(lifetimeMs, () => this.#expire());
    this.#touch();
  }

  get readSeq(): number {
    return this.view.seq;
  }

  get now(): number {
    return this.core.clock.now();
  }

  get operations(): number {
    return this.#operations;
  }

  /** Called first by every call that uses the transaction. */
  use(): void {
    if (this.#state === 'open') {
      this.#touch();
      return;
    }
    throw this.#state === 'expired' ? expired(this.id) : closed(this.id);
  }

  newId(): string {
    return this.core.random.ulid(this.now);
  }

  encode(data: JsonObject): EncodedDocument {
    return encodeDocument(this.core, data);
  }

  byId(collection: CollectionInfo, id: string): RecordImage | undefined {
    const name = nameOf(collection.id, id);
    const own = this.#own.get(name);
    if (own) return own.image ? this.#copyOf(own.image) : undefined;
    const record = this.view.record(collection.id, id);
    this.#reads.noteRecord(collection.id, id, record);
    return record?.isExpired(this.now) ? undefined : record;
  }

  byKey(collection: CollectionInfo, key: string): RecordImage | undefined {
    const name = nameOf(collection.id, key);
    const own = this.#ownKeys.get(name);
    if (own === null) return undefined;
    const id = own ?? this.view.idOfKey(collection.id, key);
    if (own === undefined) this.#reads.noteKey(collection.id, key, id);
    return id === undefined ? undefined : this.byId(collection, id);
  }

  /** Runs a write once per request id, as long as the transaction is open. */
  once(requestId: string | undefined, fingerprint: string, run: () => Outcome): Outcome {
    if (!requestId) return run();
    checkRequestId(requestId);
    const before = this.#requests.get(requestId);
    if (before && before.fingerprint !== fingerprint) throw requestIdReused(requestId);
    const outcome = before?.outcome ?? run();
    this.#requests.set(requestId, { fingerprint, outcome });
    return { ...outcome, record: outcome.record && this.#copyOf(outcome.record) };
  }

  /** Records that the transaction has read everything that matches a condition. */
  notePredicate(predicate: ReadPredicate): void {
    this.#reads.notePredicate(predicate);
  }

  usableIndexes(collection: Pick<CollectionInfo, 'indexes'>): IndexInfo[] {
    return collection.indexes.filter((index) => this.#usableIndexes.has(index));
  }

  /** Its own writes of a collection, which queries merge with the snapshot. */
  overlay(collection: number): Map<string, RecordImage | null> {
    const own = new Map<string, RecordImage | null>();
    for (const write of this.#own.values()) {
      const id = write.image?.id ?? write.base?.id;
      if (write.collection.id !== collection || !id) continue;
      own.set(id, write.image && this.#copyOf(write.image));
    }
    return own;
  }

  store(
    collection: CollectionInfo,
    id: string,
    before: RecordImage | undefined,
    document: EncodedDocument,
    fields: { key: string; expiresAt: number },
  ): RecordImage {
    this.#checkLimits(document.size);
    if (collection.schema?.validate === 'strict') {
      enforceSchema(this.core, collection, document.data);
    }
    const name = nameOf(collection.id, id);
    const base = this.#own.has(name) ? this.#own.get(name)!.base : before;
    const bytes = document.toRecord({
      ...fields,
      // One commit is one change, however often the transaction touched the record.
      rev: (base?.rev ?? 0) + 1,
      seq: this.readSeq,
      createdAt: base?.createdAt ?? this.now,
      updatedAt: this.now,
      contentHash: document.contentHash,
    });
    const image = new RecordImage(id, bytes, bytes.length, this.core.codec);
    this.#checkUnique(collection, image);
    this.#own.set(name, { collection, base, image, document });
    if (fields.key) this.#ownKeys.set(nameOf(collection.id, fields.key), id);
    this.#count(document.size);
    return this.#copyOf(image);
  }

  remove(collection: CollectionInfo, before: RecordImage): void {
    this.#checkLimits(0);
    const name = nameOf(collection.id, before.id);
    const base = this.#own.has(name) ? this.#own.get(name)!.base : before;
    this.#own.set(name, { collection, base, image: null, document: undefined });
    if (before.key) this.#ownKeys.set(nameOf(collection.id, before.key), null);
    this.#count(0);
  }

  /** Makes the writes one commit, or throws TX_CONFLICT and changes nothing. */
  async commit(): Promise<CommitResult> {
    this.use();
    this.#end();
    try {
      const mustCheck = this.#own.size > 0 && this.#reads.hasConditions;
      const seen = mustCheck ? await this.#reads.checkEarly() : this.readSeq;
      return await this.core.writer.submit(() => this.#commitNow(seen));
    } finally {
      this.view.done(closed(this.id));
    }
  }

  rollback(): void {
    this.use();
    this.#end();
    this.view.done(closed(this.id));
  }

  /** Ends it without an error: the database closes. */
  abandon(): void {
    if (this.#state !== 'open') return;
    this.#end();
    this.view.done();
  }

  #commitNow(checkedSeq: number): CommitResult {
    const target = new CommitTarget(this.core);
    // A transaction without writes saw one snapshot, so it is serializable as it is.
    if (this.#own.size > 0) {
      this.#reads.check(checkedSeq);
      this.#apply(target);
      target.commit.finish();
    }
    const result: CommitResult = {
      seq: this.core.state.seq,
      operations: this.#operations,
      committedAt: target.now,
    };
    rememberCommit(this.core, this.id, result);
    return result;
  }

  /**
   * Old images are removed before new ones are stored, so that two records may swap a unique value.
   */
  #apply(target: CommitTarget): void {
    const { commit } = target;
    const writes = [...this.#own.values()];
    for (const { collection, base } of writes) {
      if (base) commit.remove(collection, base);
    }
    // An expired record gives up its id and key; looking it up removes it.
    for (const { collection, base, image } of writes) {
      if (!image || base) continue;
      target.byId(collection, image.id);
      if (image.key) target.byKey(collection, image.key);
    }
    for (const { collection, base, image, document } of writes) {
      if (!image || !document) continue;
      commit.storeAgain(collection, image.id, base, document, {
        key: image.key,
        expiresAt: image.expiresAt,
      });
    }
  }

  /** Refuses now what the commit would refuse anyway. */
  #checkUnique(collection: CollectionInfo, image: RecordImage): void {
    for (const index of collection.indexes) {
      if (!index.definition.unique || index.state !== 'ready') continue;
      for (const values of index.compiled.entriesOf(image).unique) {
        const holder = this.view.idOfUnique(index.id, values);
        if (holder === undefined || holder === image.id) continue;
        if (this.#own.has(nameOf(collection.id, holder))) continue;
        // The record that has the value counts as read: the caller may act on this refusal.
        if (this.byId(collection, holder)) throw uniqueViolation(index);
      }
    }
  }

  /** A copy: the caller may modify it, but not the transaction's own. */
  #copyOf(image: RecordImage): RecordImage {
    return new RecordImage(image.id, image.bytes, image.end, this.core.codec);
  }

  #checkLimits(bytes: number): void {
    if (this.readOnly) {
      throw refuse('TX_READ_ONLY', `The transaction ${this.id} was begun read-only.`, {
        tx_id: this.id,
      });
    }
    if (this.#operations + 1 > transactionLimits.operations) {
      throw limit(`${transactionLimits.operations} operations`);
    }
    if (this.#bytes + bytes > transactionLimits.bytes) throw limit('8 MiB of data');
  }

  #count(bytes: number): void {
    this.#operations++;
    this.#bytes += bytes;
  }

  #touch(): void {
    this.#idle?.cancel();
    this.#idle = this.core.clock.after(transactionLimits.idleMs, () => this.#expire());
  }

  #expire(): void {
    if (this.#state !== 'open') return;
    this.#end('expired');
    this.view.done(expired(this.id));
  }

  #end(state: 'closed' | 'expired' = 'closed'): void {
    this.#state = state;
    this.#idle?.cancel();
    this.#lifetime?.cancel();
    this.onEnd(this, state === 'expired');
  }
}

function nameOf(collection: number, rest: string): string {
  return `${collection}/${rest}`;
}

function limit(what: string) {
  return refuse('TX_LIMIT', `A transaction takes at most ${what}; split the work.`);
}
