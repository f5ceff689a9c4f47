import { create } from '@bufbuild/protobuf';
import {
  BeginTxResponseSchema,
  CommitTxResponseSchema,
  RollbackTxResponseSchema,
  type BeginTxResponse,
} from '@millrace/contract/db';
import { refuse } from '@millrace/engine/value/refusal';
import { checkRequestId, requestIdReused, requestMemoryMs } from '@millrace/engine/write/requests';
import type { Transaction } from '@millrace/engine/write/transactions';
import type { CallContext, Request, UnaryMethods } from './call.js';
import type { ServiceParts } from './parts.js';
import { durationMs, timestamp } from './values.js';
import { reachSeq } from './reach-seq.js';

/** Limited, because each transaction holds a snapshot and up to 8 MiB. */
export const maxTransactions = 256;

interface Begun {
  owner: string;
  readOnly: boolean;
  at: number;
}

interface BegunByRequest {
  fingerprint: string;
  answer: BeginTxResponse;
  at: number;
}

/** Open transactions by owner: a caller cannot see those of another principal. */
export class TransactionRegistry {
  readonly #begun = new Map<string, Begun>();
  readonly #byRequest = new Map<string, BegunByRequest>();

  constructor(private readonly parts: ServiceParts) {}

  /** The transaction of a request; undefined without one. */
  of(txId: string, context: CallContext): Transaction | undefined {
    if (txId === '') return undefined;
    this.#checkOwner(txId, context);
    return this.parts.database.transactions.use(txId);
  }

  get methods(): Pick<UnaryMethods, 'BeginTx' | 'CommitTx' | 'RollbackTx'> {
    return {
      BeginTx: (request, context) => this.#begin(request, context),
      CommitTx: async ({ txId }, context) => {
        this.#checkOwner(txId, context);
        if (!this.#begun.get(txId)?.readOnly) this.parts.replication.checkWritable();
        const { seq, operations, committedAt } =
          await this.parts.database.transactions.commit(txId);
        if (operations > 0) await this.parts.replication.confirmed(seq, context);
        return create(CommitTxResponseSchema, {
          seq: BigInt(seq),
          operations,
          committedAt: timestamp(committedAt),
        });
      },
      RollbackTx: ({ txId }, context) => {
        this.#checkOwner(txId, context);
        this.parts.database.transactions.rollback(txId);
        return create(RollbackTxResponseSchema);
      },
    };
  }

  async #begin(request: Request<'BeginTx'>, context: CallContext): Promise<BeginTxResponse> {
    const { requestId, readOnly } = request;
    const timeoutMs = durationMs(request.timeout, 'timeout');
    const now = this.parts.clock.now();
    this.#forget(now);
    const name = `${context.principal.id}\n${requestId}`;
    const fingerprint = JSON.stringify([readOnly, timeoutMs ?? null, String(request.minSeq)]);
    if (requestId !== '') {
      checkRequestId(requestId);
      const before = this.#byRequest.get(name);
      if (before && before.fingerprint !== fingerprint) throw requestIdReused(requestId);
      if (before) return before.answer;
    }
    if (!readOnly) this.parts.replication.checkWritable();
    await reachSeq(this.parts, request.minSeq, context);
    // A retry of the same request may have begun it while this call waited for its commit.
    const meanwhile = requestId === '' ? undefined : this.#byRequest.get(name);
    if (meanwhile?.fingerprint === fingerprint) return meanwhile.answer;
    const { transactions } = this.parts.database;
    if (transactions.size >= maxTransactions) {
      throw refuse(
        'TX_LIMIT',
        `The maximum of ${maxTransactions} transactions is open. Retry later.`,
      );
    }
    const transaction = transactions.begin({ readOnly, ...(timeoutMs && { timeoutMs }) });
    this.#begun.set(transaction.id, { owner: context.principal.id, readOnly, at: now });
    const answer = create(BeginTxResponseSchema, {
      txId: transaction.id,
      readSeq: BigInt(transaction.readSeq),
      expiresAt: timestamp(transaction.expiresAt),
    });
    if (requestId !== '') this.#byRequest.set(name, { fingerprint, answer, at: now });
    return answer;
  }

  #checkOwner(txId: string, context: CallContext): void {
    const begun = this.#begun.get(txId);
    if (begun === undefined || begun.owner === context.principal.id) return;
    throw refuse(
      'TX_NOT_FOUND',
      `There is no open transaction ${txId}. It may have ended; begin a new one.`,
      {
        tx_id: txId,
      },
    );
  }

  /** Ended transactions are remembered as long as their commit may be repeated. */
  #forget(now: number): void {
    for (const notes of [this.#begun, this.#byRequest]) {
      for (const [name, { at }] of notes) {
        if (now - at <= requestMemoryMs + maxLifetimeMs) break;
        notes.delete(name);
      }
    }
  }
}

const maxLifetimeMs = 60_000;
