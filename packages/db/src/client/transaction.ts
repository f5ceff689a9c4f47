import { Database, type BeginTxResponse } from '@millrace/contract/db';
import { Refusal } from '@millrace/kit/errors';
import type { TransactionScope } from './api.js';
import { checkCollectionName } from '@millrace/engine/value/documents';
import type { CommitResult } from '@millrace/engine/write/requests';
import { RemoteCollection, type collectionPort } from './collection.js';
import { CallRefusal, isPassing } from './failures.js';
import { dateOf } from './records.js';
import type { CallOptions, Session } from './session.js';

const { method: rpc } = Database;

/** A transaction on the server. It expires after 60 s, or 10 s without a call. */
export class RemoteTransaction implements TransactionScope {
  readonly id: string;
  readonly readSeq: number;
  readonly expiresAt: Date;
  #committed: CommitResult | undefined;

  constructor(
    private readonly session: Session,
    private readonly port: ReturnType<typeof collectionPort>,
    begun: BeginTxResponse,
  ) {
    this.id = begun.txId;
    this.readSeq = Number(begun.readSeq);
    this.expiresAt = dateOf(begun.expiresAt);
  }

  /** The collection inside this transaction. */
  collection<T extends object, In extends object>(
    of: RemoteCollection<T, In>,
  ): RemoteCollection<T, In>;
  collection<T extends object = Record<string, unknown>>(name: string): RemoteCollection<T>;
  collection(of: RemoteCollection<object> | string): RemoteCollection<object> {
    if (typeof of !== 'string') return of.within(this, this.session);
    checkCollectionName(of);
    return new RemoteCollection(this.port, of, { transaction: this });
  }

  /** Commits the writes atomically, or refuses TX_CONFLICT and changes nothing. Can be repeated. */
  async commit(options: CallOptions = {}): Promise<CommitResult> {
    const reply = await this.session.write(rpc.commitTx, { txId: this.id }, options);
    const { seq, operations } = reply;
    const committedAt = dateOf(reply.committedAt).getTime();
    this.#committed = { seq: Number(seq), operations, committedAt };
    return this.#committed;
  }

  /** Result of the commit; undefined before it. */
  get committed(): CommitResult | undefined {
    return this.#committed;
  }

  async rollback(options: CallOptions = {}): Promise<void> {
    try {
      await this.session.callOnce(rpc.rollbackTx, { txId: this.id }, options);
    } catch (error) {
      if (!(error instanceof CallRefusal) || !isPassing(error)) throw error;
      await this.#rollbackAgain(options);
    }
  }

  /** After a lost response, a missing transaction means that it was rolled back. */
  async #rollbackAgain(options: CallOptions): Promise<void> {
    try {
      await this.session.call(rpc.rollbackTx, { txId: this.id }, options);
    } catch (error) {
      const isGone = error instanceof Refusal && ['TX_CLOSED', 'TX_NOT_FOUND'].includes(error.code);
      if (!isGone) throw error;
    }
  }
}
