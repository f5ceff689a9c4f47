import { create } from '@bufbuild/protobuf';
import {
  DeleteManyResponseSchema,
  UpdateManyResponseSchema,
  type BulkOperation as OperationMessage,
  type BulkResult,
} from '@millrace/contract/db';
import { grpcCodes, type DbReason, dbReasons } from '@millrace/contract/db-reasons';
import type { BulkOperation, BulkOutcome } from '@millrace/engine/write/bulk-operations';
import type { ManyResult } from '@millrace/engine/write/bulk-filter';
import { refuse } from '@millrace/engine/value/documents';
import { Refusal } from '@millrace/kit/errors';
import type { CallContext, Request, UnaryMethods } from './call.js';
import type { ServiceParts } from './parts.js';
import {
  changeOf,
  documentOf,
  operatorsOf,
  recordMessage,
  badField,
  durationMs,
  wantsJson,
  wholeNumber,
} from './records.js';
import type { TransactionRegistry } from './writes.js';

type BulkMethods = Pick<UnaryMethods, 'BulkWrite' | 'UpdateMany' | 'DeleteMany'>;

/** What the results show. */
interface ResultView {
  returnRecords: boolean;
  json: boolean;
}

export function bulkMethods(parts: ServiceParts, transactions: TransactionRegistry): BulkMethods {
  const { replication } = parts;

  async function confirm(seq: number, context: CallContext): Promise<void> {
    if (seq > 0) await replication.confirmed(seq, context);
  }

  function manyOptions(request: Request<'DeleteMany'>, context: CallContext) {
    replication.checkWritable();
    if (request.filter === undefined) {
      throw badField('filter', 'is missing: to match all records send {}');
    }
    const { limit, requestId } = request;
    return { limit, requestId, transaction: transactions.of(request.txId, context) };
  }

  const counts = ({ matched, changed, seq }: ManyResult) => ({
    matched: BigInt(matched),
    changed: BigInt(changed),
    seq: BigInt(seq),
  });

  return {
    BulkWrite: async (request, context) => {
      const { collection, ordered, atomic, requestId, returnRecords } = request;
      const json = wantsJson(request.encoding);
      replication.checkWritable();
      const outcomes = await parts.database.bulk.write(
        collection,
        request.operations.map((operation, i) => bulkOperation(operation, `operations[${i}]`)),
        {
          ordered,
          atomic,
          requestId,
          transaction: transactions.of(request.txId, context),
          isDataOwn: true,
        },
      );
      const seq = lastSeq(outcomes);
      await confirm(seq, context);
      const head = { returnRecords, json };
      return {
        $typeName: 'millrace.db.v1.BulkWriteResponse',
        results: outcomes.map((outcome) => bulkResult(outcome, head)),
        seq: BigInt(seq),
      };
    },
    UpdateMany: async (request, context) => {
      const options = manyOptions(request, context);
      const patch = documentOf({ data: request.patch, dataJson: request.patchJson });
      const update = operatorsOf(request);
      if (patch === undefined && update === undefined) throw badField('patch', 'is missing');
      if (patch !== undefined && update !== undefined) {
        throw refuse('BAD_REQUEST', 'Send patch or update, not both.');
      }
      const { collection, filter } = request;
      const result = await parts.database.bulkByFilter.updateMany(
        collection,
        filter,
        update ?? patch,
        update === undefined ? options : { ...options, mode: 'operators' },
      );
      await confirm(result.seq, context);
      return create(UpdateManyResponseSchema, counts(result));
    },
    DeleteMany: async (request, context) => {
      const options = manyOptions(request, context);
      const { collection, filter } = request;
      const result = await parts.database.bulkByFilter.deleteMany(collection, filter, options);
      await confirm(result.seq, context);
      return create(DeleteManyResponseSchema, counts(result));
    },
  };
}

function lastSeq(outcomes: readonly BulkOutcome[]): number {
  let seq = 0;
  for (const outcome of outcomes) if (outcome.status === 'OK') seq = Math.max(seq, outcome.seq);
  return seq;
}

/** The message as an operation of the engine, or why it cannot be one. */
function bulkOperation(message: OperationMessage, place: string): BulkOperation | Refusal {
  try {
    return engineOperation(message, place);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function engineOperation(message: OperationMessage, place: string): BulkOperation {
  const { insert, upsert, update } = message;
  const operation: BulkOperation = {};
  if (insert) {
    const { id, key } = insert;
    const ttlMs = durationMs(insert.ttl, `${place}.insert.ttl`);
    operation.insert = { id, key, data: documentOf(insert), ttlMs };
  }
  if (upsert) {
    const ttlMs = durationMs(upsert.ttl, `${place}.upsert.ttl`);
    operation.upsert = { key: upsert.key, ...bodyOf(upsert), ttlMs };
  }
  if (update) {
    const { id, key, expectedRev: rev } = update;
    const ttlMs = durationMs(update.ttl, `${place}.update.ttl`);
    operation.update = { id, key, ...bodyOf(update), ttlMs };
    if (rev !== undefined) {
      operation.update.expectedRev = wholeNumber(rev, `${place}.update.expected_rev`);
    }
  }
  if (message.delete) operation.delete = { id: message.delete.id, key: message.delete.key };
  return operation;
}

/** The engine's bulk has operators beside the data. */
function bodyOf(
  message: Parameters<typeof changeOf>[0],
): Pick<BulkUpdate, 'data' | 'update' | 'mode'> {
  const { data, mode } = changeOf(message);
  return mode === 'operators' ? { update: data } : { data, mode };
}

type BulkUpdate = NonNullable<BulkOperation['update']>;

function bulkResult(outcome: BulkOutcome, head: ResultView): BulkResult {
  const result: BulkResult = {
    $typeName: 'millrace.db.v1.BulkResult',
    status: outcome.status,
    id: '',
    key: '',
    rev: 0n,
    created: false,
    seq: 0n,
  };
  if (outcome.status === 'FAILED') result.error = bulkError(outcome.error);
  if (outcome.status !== 'OK') return result;
  const { id, key, created, record, seq } = outcome;
  Object.assign(result, { id, key, created, rev: BigInt(outcome.rev), seq: BigInt(seq) });
  if (head.returnRecords && record) {
    result.record = recordMessage(record, { json: head.json, seq: seq === 0 ? 0 : undefined });
  }
  return result;
}

export function bulkError(error: Refusal): NonNullable<BulkResult['error']> {
  const { code } = dbReasons[error.code as DbReason];
  return {
    $typeName: 'millrace.db.v1.BulkError',
    code: grpcCodes[code],
    reason: error.code,
    message: error.detail,
  };
}
