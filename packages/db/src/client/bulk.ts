import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Database,
  DataEncoding,
  UpdateMode,
  type BulkOperationSchema,
  type BulkResult as ResultMessage,
} from '@millrace/contract/db';
import { noBytes } from '../codec/scalars.js';
import type { BulkCall, BulkOperation, BulkResult, BulkWritten, ManyCall } from '../api.js';
import type { ManyResult } from '../engine/bulk-filter.js';
import { maxBulkOperations } from '../engine/bulk-operations.js';
import { plainFilter } from '../engine/query/plain-query.js';
import { refuse } from '../engine/refusal.js';
import { filterMessage } from './queries.js';
import { durationOf, encodeData, toStored, uint64Of } from './records.js';
import type { CallOptions, Session } from './session.js';

type OperationInit = MessageInitShape<typeof BulkOperationSchema>;

interface Body {
  data: object;
  mode?: 'replace' | 'merge' | undefined;
  ttlMs?: number | undefined;
  id?: string | undefined;
  key?: string | undefined;
  expectedRev?: number | undefined;
}
type Operation = { [kind in 'insert' | 'upsert' | 'update' | 'delete']?: Body };

const { method: rpc } = Database;

export async function bulkWrite<T extends object, In>(
  session: Session,
  collection: string,
  operations: readonly BulkOperation<T, In>[],
  options: BulkCall & CallOptions,
): Promise<BulkWritten<T>> {
  if (operations.length > maxBulkOperations) {
    throw refuse(
      'BAD_REQUEST',
      `operations has ${operations.length} items, more than the limit of ${maxBulkOperations}.`,
    );
  }
  const request = {
    collection,
    operations: operations.map((operation) => operationInit(operation)),
    ordered: options.ordered ?? false,
    atomic: options.atomic ?? false,
    requestId: options.requestId || session.newRequestId(),
    txId: options.transaction?.id ?? '',
    returnRecords: options.returnRecords ?? false,
    encoding: DataEncoding.JSON,
  };
  const { results, seq } = await session.write(rpc.bulkWrite, request, options);
  return { results: results.map((result) => toResult<T>(result)), seq: Number(seq) };
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
    { ...request, patchJson: encodeData(patch) },
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
  if (typeof filter !== 'object' || filter === null) {
    throw refuse('BAD_REQUEST', 'filter is missing. To match all records send {}.');
  }
  return {
    collection,
    filter: filterMessage(plainFilter(filter)!),
    limit: Number(uint64Of(limit, 'limit')),
    requestId: requestId || session.newRequestId(),
    txId: transaction?.id ?? '',
  };
}

function countsOf({ matched, changed, seq }: { matched: bigint; changed: bigint; seq: bigint }) {
  return { matched: Number(matched), changed: Number(changed), seq: Number(seq) };
}

function operationInit(given: object): OperationInit {
  const [kind = ''] = Object.keys(given);
  const body: Partial<Body> = (given as Operation)[kind as keyof Operation] ?? {};
  const { id = '', key = '', data, ttlMs, expectedRev } = body;
  if (kind === 'delete') return { delete: { id, key } };
  const dataJson = data === undefined ? noBytes : encodeData(data);
  const ttl = ttlMs === undefined ? undefined : durationOf(ttlMs, 'ttl');
  if (kind === 'insert') return { insert: { key, dataJson, ttl, id } };
  const mode = body.mode === 'merge' ? UpdateMode.MERGE : UpdateMode.REPLACE;
  if (kind === 'upsert') return { upsert: { key, dataJson, ttl, mode } };
  if (kind !== 'update') return {};
  const rev = expectedRev === undefined ? undefined : uint64Of(expectedRev, 'expected_rev');
  return { update: { key, dataJson, ttl, mode, expectedRev: rev, id } };
}

function toResult<T>(message: ResultMessage): BulkResult<T> {
  const { id, key, created, error, record } = message;
  return {
    status: message.status as BulkResult<T>['status'],
    id,
    key,
    rev: Number(message.rev),
    created,
    seq: Number(message.seq),
    ...(error ? { error: { reason: error.reason, message: error.message } } : {}),
    ...(record ? { record: toStored<T>(record) } : {}),
  };
}
