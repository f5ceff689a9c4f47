import { type WriteMode, refuse } from '@millrace/engine/value/documents';
import {
  type Outcome,
  checkRequestId,
  requestIdReused,
  requestMemoryMs,
} from '@millrace/engine/write/requests';
import type { CallOptions } from '@millrace/engine/write/writes';
import {
  type Record,
  BeginTxResponseSchema,
  CommitTxResponseSchema,
  RollbackTxResponseSchema,
  type BeginTxResponse,
} from '@millrace/contract/db';
import type { Address } from '@millrace/engine/write/mutations';
import type { CallContext, Request, UnaryMethods } from './call.js';
import type { ServiceParts } from './parts.js';
import {
  changeOf,
  documentOf,
  recordMessage,
  badField,
  durationMs,
  wantsJson,
  wholeNumber,
  timestamp,
} from './records.js';
import { create } from '@bufbuild/protobuf';
import type { Transaction } from '@millrace/engine/write/transactions';
import type { Database } from '@millrace/engine/api/database';

type WriteMethods = Pick<
  UnaryMethods,
  | 'Insert'
  | 'InsertWithKey'
  | 'Update'
  | 'UpdateByKey'
  | 'Upsert'
  | 'UpdateIfRev'
  | 'Delete'
  | 'DeleteByKey'
>;

/** Fields common to all writes. */
interface WriteRequest {
  readonly ttl?: Request<'Insert'>['ttl'];
  readonly txId: string;
  readonly requestId: string;
  readonly encoding: Request<'Insert'>['encoding'];
}

/** Write options for the engine. Always the same shape, for speed. */
interface WriteOptions extends CallOptions {
  readonly id: string | undefined;
  readonly key: string | undefined;
  readonly mode: WriteMode | undefined;
}

export function writeMethods(parts: ServiceParts, transactions: TransactionRegistry): WriteMethods {
  const { replication } = parts;

  /** Refuses invalid options before anything is written. */
  function prepare(
    request: WriteRequest,
    context: CallContext,
    place: { id?: string; key?: string; mode?: WriteMode } = {},
  ): WriteOptions {
    wantsJson(request.encoding);
    replication.checkWritable();
    return {
      transaction: transactions.of(request.txId, context),
      ttlMs: durationMs(request.ttl, 'ttl'),
      requestId: request.requestId,
      // The document comes from the request, which is not used again.
      isDataOwn: true,
      id: place.id === '' ? undefined : place.id,
      key: place.key,
      mode: place.mode,
    };
  }

  /** Responds when the commit is on disk and, with min_acks, on enough followers. */
  function settled<Answer>(
    write: Promise<Outcome>,
    { transaction }: WriteOptions,
    context: CallContext,
    answer: (outcome: Outcome) => Answer,
  ): Promise<Answer> {
    return write.then((outcome) => {
      const confirmed = transaction ? undefined : replication.confirmed(outcome.seq, context);
      return confirmed ? confirmed.then(() => answer(outcome)) : answer(outcome);
    });
  }

  function shown({ encoding }: WriteRequest, options: WriteOptions, { record }: Outcome): Record {
    const seq = options.transaction ? 0 : undefined;
    return recordMessage(record!, { json: wantsJson(encoding), seq });
  }

  function insert<Answer>(
    request: Request<'Insert'> | Request<'InsertWithKey'>,
    options: WriteOptions,
    context: CallContext,
    answer: (record: Record) => Answer,
  ): Promise<Answer> {
    const { collection } = request;
    const write = parts.database.writes.insert(collection, documentOf(request), options);
    return settled(write, options, context, (outcome) => answer(shown(request, options, outcome)));
  }

  function remove(
    request: Request<'Delete'> | Request<'DeleteByKey'>,
    address: Address,
    context: CallContext,
  ): Promise<{ seq: bigint; record?: Record }> {
    const options = prepare(request, context);
    const write = parts.database.writes.remove(request.collection, address, options);
    return settled(write, options, context, (outcome) => {
      const seq = BigInt(outcome.seq);
      return request.returnRecord ? { seq, record: shown(request, options, outcome) } : { seq };
    });
  }

  function update(
    request: Request<'Update'> | Request<'UpdateByKey'>,
    address: Address,
    context: CallContext,
  ): Promise<Record> {
    const { collection } = request;
    const { data, mode } = changeOf(request);
    const options = prepare(request, context, { mode });
    const write = parts.database.writes.update(collection, address, data, options);
    return settled(write, options, context, (outcome) => shown(request, options, outcome));
  }

  return {
    Insert: (request, context) => {
      const options = prepare(request, context, { id: request.id });
      return insert(request, options, context, (record) => ({
        $typeName: 'millrace.db.v1.InsertResponse',
        record,
      }));
    },
    InsertWithKey: (request, context) => {
      const { id, key } = request;
      return insert(request, prepare(request, context, { id, key }), context, (record) => ({
        $typeName: 'millrace.db.v1.InsertWithKeyResponse',
        record,
      }));
    },
    Update: async (request, context) => {
      const record = await update(request, { id: request.id }, context);
      return { $typeName: 'millrace.db.v1.UpdateResponse', record };
    },
    UpdateByKey: async (request, context) => {
      const record = await update(request, { key: request.key }, context);
      return { $typeName: 'millrace.db.v1.UpdateByKeyResponse', record };
    },
    Upsert: (request, context) => {
      const { collection, key } = request;
      const { data, mode } = changeOf(request);
      const options = prepare(request, context, { mode });
      const write = parts.database.writes.upsert(collection, key, data, options);
      return settled(write, options, context, (outcome) => ({
        $typeName: 'millrace.db.v1.UpsertResponse',
        record: shown(request, options, outcome),
        created: outcome.created,
      }));
    },
    UpdateIfRev: (request, context) => {
      const { data, mode } = changeOf(request);
      const address = eitherAddress(request);
      const rev = wholeNumber(request.expectedRev, 'expected_rev');
      const options = prepare(request, context, { mode });
      const { writes } = parts.database;
      const write = writes.updateIfRev(request.collection, address, rev, data, options);
      return settled(write, options, context, (outcome) => ({
        $typeName: 'millrace.db.v1.UpdateIfRevResponse',
        record: shown(request, options, outcome),
      }));
    },
    Delete: async (request, context) => ({
      $typeName: 'millrace.db.v1.DeleteResponse',
      ...(await remove(request, { id: request.id }, context)),
    }),
    DeleteByKey: async (request, context) => ({
      $typeName: 'millrace.db.v1.DeleteByKeyResponse',
      ...(await remove(request, { key: request.key }, context)),
    }),
  };
}

function eitherAddress({ id, key }: { id: string; key: string }): Address {
  if (id !== '' && key !== '') throw refuse('BAD_REQUEST', 'Send key or id, not both.');
  if (id === '' && key === '') throw badField('key', 'is missing: send key or id');
  return id === '' ? { key } : { id };
}

const patienceMs = 5_000;

/**
 * Waits until the database has commit `minSeq`, so that a caller can read its own writes on any
 * node. Refuses REPLICA_BEHIND shortly before the caller's deadline.
 */
export async function reachSeq(
  parts: Pick<ServiceParts, 'database' | 'clock'>,
  minSeq: bigint,
  context: CallContext,
): Promise<void> {
  if (minSeq === 0n) return;
  const wanted = wholeNumber(minSeq, 'min_seq');
  const { core } = parts.database;
  if (core.durable.seq >= wanted) return;
  const leftMs = context.deadline === undefined ? patienceMs : context.deadline - parts.clock.now();
  const waitMs = context.deadline === undefined ? leftMs : leftMs - Math.max(20, leftMs / 10);
  await new Promise<void>((resolve, reject) => {
    const end = (settle: () => void) => {
      timer.cancel();
      stop();
      context.signal.removeEventListener('abort', onAbort);
      settle();
    };
    const onAbort = () => end(() => reject(context.signal.reason));
    const timer = parts.clock.after(Math.max(0, waitMs), () =>
      end(() => reject(behind(core.durable.seq, wanted))),
    );
    const stop = core.onDurable(() => {
      if (core.closed) end(() => reject(core.closed));
      else if (core.durable.seq >= wanted) end(resolve);
    });
    if (context.signal.aborted) onAbort();
    else context.signal.addEventListener('abort', onAbort);
  });
}

/** A transaction only reads the snapshot it began with. */
export function checkReadSeq(readSeq: number, minSeq: bigint): void {
  if (minSeq !== 0n && BigInt(readSeq) < minSeq) {
    throw behind(readSeq, wholeNumber(minSeq, 'min_seq'));
  }
}

function behind(seq: number, minSeq: number): Error {
  return refuse(
    'REPLICA_BEHIND',
    `This node is at commit ${seq} and did not reach ${minSeq} in time. Retry, or read from the leader.`,
    { seq: String(seq), min_seq: String(minSeq) },
  );
}

/** Limited, because each transaction holds a snapshot and up to 8 MiB. */
const maxTransactions = 256;

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

/** Ids of the records that a transaction has written and not committed. */
export function ownIds(
  database: Database,
  transaction: Transaction,
  collection: string,
): { has(id: string): boolean } {
  const info = database.core.catalog.find(collection);
  return info ? transaction.overlay(info.id) : new Set<string>();
}
