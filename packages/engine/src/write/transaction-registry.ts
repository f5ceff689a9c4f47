import type { Core } from '../core/core.js';
import { refuse } from '../value/documents.js';
import { closed, expired, rememberedCommit, type CommitResult } from './requests.js';
import { Transaction, transactionLimits } from './transactions.js';

export interface BeginOptions {
  /** The transaction does not write, so it never conflicts. */
  readOnly?: boolean | undefined;
  /** Maximum lifetime. Default and maximum: 60 s. */
  timeoutMs?: number | undefined;
}

const endedMemory = 10_000;

/** The open transactions by id, and the results of those that ended. */
export class TransactionRegistry {
  readonly #open = new Map<string, Transaction>();
  readonly #committing = new Map<string, Promise<CommitResult>>();
  readonly #endings = new Map<string, 'expired' | 'closed' | Error>();

  constructor(private readonly core: Core) {}

  get size(): number {
    return this.#open.size;
  }

  begin(options: BeginOptions = {}): Transaction {
    const lifetimeMs = options.timeoutMs || transactionLimits.lifetimeMs;
    if (!(lifetimeMs > 0)) throw refuse('BAD_REQUEST', 'A timeout must be longer than nothing.');
    if (this.#open.size >= transactionLimits.open) {
      throw refuse(
        'TX_LIMIT',
        `${transactionLimits.open} transactions are open, which is the most; try again later.`,
      );
    }
    const transaction = new Transaction(
      this.core,
      this.core.random.ulid(this.core.clock.now()),
      options.readOnly ?? false,
      Math.min(lifetimeMs, transactionLimits.lifetimeMs),
      (ended, wasExpired) => this.#ended(ended.id, wasExpired),
    );
    this.#open.set(transaction.id, transaction);
    return transaction;
  }

  /** The transaction of this id, for one operation in it. */
  use(id: string): Transaction {
    const transaction = this.#open.get(id);
    if (!transaction) throw this.#whyNot(id);
    transaction.use();
    return transaction;
  }

  /** Can be repeated: returns the same answer for ten minutes. */
  async commit(id: string): Promise<CommitResult> {
    const underWay = this.#committing.get(id);
    if (underWay) return underWay;
    const transaction = this.#open.get(id);
    if (!transaction) {
      const before = rememberedCommit(this.core, id);
      if (before) return before;
      const ending = this.#endings.get(id);
      throw ending instanceof Error ? ending : this.#whyNot(id);
    }
    const result = transaction.commit();
    this.#committing.set(id, result);
    try {
      return await result;
    } catch (error) {
      if (error instanceof Error) this.#endings.set(id, error);
      throw error;
    } finally {
      this.#committing.delete(id);
    }
  }

  rollback(id: string): void {
    const transaction = this.#open.get(id);
    if (!transaction) throw this.#whyNot(id);
    transaction.rollback();
  }

  close(): void {
    for (const transaction of this.#open.values()) transaction.abandon();
  }

  #whyNot(id: string) {
    const ending = this.#endings.get(id);
    if (ending !== undefined) return ending === 'expired' ? expired(id) : closed(id);
    return refuse('TX_NOT_FOUND', `There is no transaction ${id}; it may have ended.`, {
      tx_id: id,
    });
  }

  #ended(id: string, wasExpired: boolean): void {
    this.#open.delete(id);
    this.#endings.set(id, wasExpired ? 'expired' : 'closed');
    if (this.#endings.size > endedMemory) {
      for (const oldest of this.#endings.keys()) {
        this.#endings.delete(oldest);
        break;
      }
    }
  }
}
