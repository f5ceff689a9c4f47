import { isMerge, isUpdate, refuse } from '@millrace/engine/value/documents';
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Database,
  DataEncoding,
  UpdateMode,
  type BulkOperationSchema,
  type BulkResult as ResultMessage,
} from '@millrace/contract/db';
import { Refusal } from '@millrace/kit/errors';
import { noBytes } from '../codec/encoder.js';
import type { BulkCall, BulkResult, BulkWritten, ManyCall } from './api.js';
import { checkFilterGiven, type ManyResult } from '@millrace/engine/write/bulk-filter';
import { maxBulkOperations } from '@millrace/engine/write/bulk-operations';
import type { Filter } from '@millrace/engine/value/filter';
import { filterMessage } from './queries.js';
import { durationOf, encodeData, encodeUpdate, toStored, uint64Of } from './records.js';
import type { CallOptions, Session } from './session.js';

type OperationInit = MessageInitShape<typeof BulkOperationSchema>;

interface Body {
  data: object;
  update?: object | undefined;
  mode?: 'replace' | 'merge' | undefined;
  ttlMs?: number | undefined;
  id?: string | undefined;
  key?: string | undefined;
  expectedRev?: number | undefined;
}
type Operation = { [kind in 'insert' | 'upsert' | 'update' | 'delete']?: Body };

const { method: rpc } = Database;

export async function bulkWrite<T>(
  session: Session,
  collection: string,
  operations: readonly object[],
  options: BulkCall & CallOptions,
): Promise<BulkWritten<T>> {
  if (!Array.isArray(operations)) throw refuse('BAD_REQUEST', 'operations must be a list.');
  if (operations.length > maxBulkOperations) {
    throw refuse(
      'BAD_REQUEST',
      `operations has ${operations.length} items, more than the limit of ${maxBulkOperations}.`,
    );
  }
  const prepared = operations.map(prepare);
  const at = prepared.findIndex((operation) => operation instanceof Refusal);
  if (options.atomic && at !== -1) {
    const { code, detail, extra } = prepared[at] as Refusal;
    throw new Refusal(code, `operations[${at}]: ${detail}`, extra);
  }
  const request = {
    collection,
    // The server fails an empty operation, in its turn.
    operations: prepared.map((operation) => (operation instanceof Refusal ? {} : operation)),
    ordered: options.ordered ?? false,
    atomic: options.atomic ?? false,
    requestId: options.requestId || session.newRequestId(),
    txId: options.transaction?.id ?? '',
    returnRecords: options.returnRecords ?? false,
    encoding: DataEncoding.JSON,
  };
  const { results, seq } = await session.write(rpc.bulkWrite, request, options);
  return {
    results: results.map((result, i) => toResult<T>(result, prepared[i])),
    seq: Number(seq),
  };
}

export async function updateMany(
  session: Session,
  collection: string,
  { filter, patch }: { filter: unknown; patch: object },
  options: ManyCall & CallOptions,
): Promise<ManyResult> {
  const request = { ...manyRequest(session, collection, filter, options) };
  const reply = await session.write(
    rpc.updateMany,
    isUpdate(patch)
      ? { ...request, updateJson: encodeUpdate(patch) }
      : { ...request, patchJson: encodeData(patch, 'patch') },
    options,
  );
  return countsOf(reply);
}

export async function deleteMany(
  session: Session,
  collection: string,
  filter: unknown,
  options: ManyCall & CallOptions,
): Promise<ManyResult> {
  const request = manyRequest(session, collection, filter, options);
  return countsOf(await session.write(rpc.deleteMany, request, options));
}

function manyRequest(session: Session, collection: string, filter: unknown, options: ManyCall) {
  const { limit = 0, requestId, transaction } = options;
  checkFilterGiven(filter);
  return {
    collection,
    filter: filterMessage(filter as Filter),
    limit: Number(uint64Of(limit, 'limit')),
    requestId: requestId || session.newRequestId(),
    txId: transaction?.id ?? '',
  };
}

function countsOf({ matched, changed, seq }: { matched: bigint; changed: bigint; seq: bigint }) {
  return { matched: Number(matched), changed: Number(changed), seq: Number(seq) };
}

/** The operation as a message, or why it cannot be one. */
function prepare(operation: object): OperationInit | Refusal {
  if (operation instanceof Refusal) return operation;
  try {
    return operationInit(operation);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function operationInit(operation: object): OperationInit {
  const operations = (operation ?? {}) as Operation;
  const given = Object.keys(operations).filter((name) => operations[name as keyof Operation]);
  if (given.length !== 1) return {};
  const [kind] = given;
  const body: Partial<Body> = operations[kind as keyof Operation]!;
  const { id = '', key = '', data, ttlMs, expectedRev } = body;
  if (typeof key !== 'string') throw refuse('BAD_KEY', 'A key must be a string.');
  if (kind === 'delete') return { delete: { id, key } };
  const dataJson = data === undefined ? noBytes : encodeData(data);
  const ttl = ttlMs === undefined ? undefined : durationOf(ttlMs, 'ttl');
  if (kind === 'insert') return { insert: { key, dataJson, ttl, id } };
  const updateJson = body.update === undefined ? noBytes : encodeUpdate(body.update);
  const replaces = body.update === undefined ? UpdateMode.REPLACE : UpdateMode.UNSPECIFIED;
  const mode = isMerge(body.mode) ? UpdateMode.MERGE : replaces;
  if (kind === 'upsert') return { upsert: { key, dataJson, updateJson, ttl, mode } };
  if (kind !== 'update') return {};
  const rev = expectedRev === undefined ? undefined : uint64Of(expectedRev, 'expected_rev');
  return { update: { key, dataJson, updateJson, ttl, mode, expectedRev: rev, id } };
}

function toResult<T>(
  message: ResultMessage,
  operation: OperationInit | Refusal | undefined,
): BulkResult<T> {
  const { id, key, created, record } = message;
  const refusal = operation instanceof Refusal ? operation : undefined;
  const error = message.error && {
    reason: refusal?.code ?? message.error.reason,
    message: refusal?.detail ?? message.error.message,
  };
  return {
    status: message.status as BulkResult<T>['status'],
    id,
    key,
    rev: Number(message.rev),
    created,
    seq: Number(message.seq),
    ...(error ? { error } : {}),
    ...(record ? { record: toStored<T>(record) } : {}),
  };
}
