import { decodeCommit, type RecordImage } from '../format/record.js';
import type { Core } from '../core/core.js';
import { refuse } from '../value/documents.js';

/** A condition that a transaction has read by: its matches must not have changed. */
export interface ReadPredicate {
  /** By name: the collection may not have existed yet. */
  collection: string;
  matches(image: RecordImage): boolean;
}

/** Commits checked before yielding to other work. */
const commitsAtATime = 500;

/**
 * What a transaction has read from its snapshot: records, keys that did or did not exist,
 * conditions. All of it must be unchanged when it commits.
 */
export class ReadSet {
  readonly #records = new Map<string, { collection: number; id: string; seq: number }>();
  readonly #keys = new Map<string, { collection: number; key: string; id: string | undefined }>();
  readonly #predicates: ReadPredicate[] = [];

  constructor(
    private readonly core: Core,
    private readonly transactionId: string,
    private readonly readSeq: number,
  ) {}

  noteRecord(collection: number, id: string, record: RecordImage | undefined): void {
    this.#records.set(`${collection}/${id}`, { collection, id, seq: record?.seq ?? 0 });
  }

  noteKey(collection: number, key: string, id: string | undefined): void {
    this.#keys.set(`${collection}/${key}`, { collection, key, id });
  }

  notePredicate(predicate: ReadPredicate): void {
    this.#predicates.push(predicate);
  }

  get hasConditions(): boolean {
    return this.#predicates.length > 0;
  }

  /**
   * Checks the conditions against most of the log outside the writer, and returns up to which
   * commit, so that the writer only has to check the rest.
   */
  async checkEarly(): Promise<number> {
    const { seq: last } = this.core.durable;
    for (let from = this.readSeq; from < last; from += commitsAtATime) {
      const to = Math.min(from + commitsAtATime, last);
      this.#checkPredicates(from, to);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return Math.max(this.readSeq, last);
  }

  /** Refuses TX_CONFLICT unless everything is as it was read. Inside a job of the writer. */
  check(checkedSeq: number): void {
    const view = this.core.view();
    for (const { collection, id, seq } of this.#records.values()) {
      if ((view.record(collection, id)?.seq ?? 0) !== seq) throw this.#conflict('a record it read');
    }
    for (const { collection, key, id } of this.#keys.values()) {
      if (view.idOfKey(collection, key) !== id) throw this.#conflict(`the key "${key}" it read`);
    }
    this.#checkPredicates(checkedSeq, this.core.state.seq);
  }

  #checkPredicates(from: number, to: number): void {
    if (this.#predicates.length === 0) return;
    const { core } = this;
    for (let seq = from + 1; seq <= to; seq++) {
      const isInLog = seq >= core.state.oldestSeq;
      const row = isInLog ? (core.writer.pendingCommit(seq) ?? core.commitRow(seq)) : undefined;
      if (!row) throw this.#conflict('a condition it read by (the log was trimmed meanwhile)');
      for (const change of decodeCommit(seq, row, this.core.codec).changes) {
        const { name } = this.core.catalog.byId(change.collection);
        for (const { collection, matches } of this.#predicates) {
          if (name !== collection) continue;
          if (
            (change.before && matches(change.before)) ||
            (change.after && matches(change.after))
          ) {
            throw this.#conflict('what a query it ran had found');
          }
        }
      }
    }
  }

  #conflict(what: string) {
    return refuse('TX_CONFLICT', `Another commit changed ${what}; run the transaction again.`, {
      tx_id: this.transactionId,
    });
  }
}
