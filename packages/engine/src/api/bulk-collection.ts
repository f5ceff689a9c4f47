import { isDeepStrictEqual } from 'node:util';
import type { Bulk } from '../write/bulk.js';
import {
  checkFilterGiven,
  type BulkByFilter,
  type ManyOptions,
  type ManyResult,
} from '../write/bulk-filter.js';
import type { BulkOptions, BulkOutcome } from '../write/bulk-operations.js';
import type { BulkResult, BulkWritten } from '../write/bulk-types.js';
import { mergePatch, toDocument, type JsonObject } from '../value/documents.js';
import { Refusal } from '@millrace/kit/errors';
import { wholeNumber } from '../query/query.js';
import { refuse } from '../value/refusal.js';
import { toStoredRecord, type StoredRecord } from '../format/stored-record.js';
import type { CallOptions } from '../write/writes.js';

export interface BulkParts {
  readonly bulk: Bulk;
  readonly bulkByFilter: BulkByFilter;
}

export interface BulkCallOptions extends BulkOptions {
  returnRecords?: boolean | undefined;
}

/** Inserts all or none. Inside a transaction a failure leaves the inserts before it. */
export async function insertMany<T>(
  { bulk }: BulkParts,
  name: string,
  documents: readonly object[],
  { transaction, requestId, ttlMs }: CallOptions,
): Promise<StoredRecord<T>[]> {
  const operations = documents.map((data) => ({ insert: { data, ttlMs } }));
  const options = { requestId, transaction, atomic: !transaction, ordered: true };
  const outcomes = await bulk.write(name, operations, options);
  return outcomes.map((outcome) => {
    if (outcome.status === 'FAILED') throw outcome.error;
    if (outcome.status === 'OK' && outcome.record) return toStoredRecord<T>(outcome.record);
    throw refuse('REQUEST_ID_REUSED', 'The records of this request have changed since.');
  });
}

export async function bulkWrite<T>(
  { bulk }: BulkParts,
  name: string,
  operations: readonly object[],
  { returnRecords, ...options }: BulkCallOptions,
): Promise<BulkWritten<T>> {
  const outcomes = await bulk.write(name, operations, options);
  let seq = 0;
  const results = outcomes.map((outcome) => {
    if (outcome.status === 'OK') seq = Math.max(seq, outcome.seq);
    return resultOf<T>(outcome, returnRecords ?? false);
  });
  return { results, seq };
}

function resultOf<T>(outcome: BulkOutcome, withRecord: boolean): BulkResult<T> {
  const { status } = outcome;
  const none = { status, id: '', key: '', rev: 0, created: false, seq: 0 };
  if (outcome.status === 'NOT_RUN') return none;
  if (outcome.status === 'FAILED') {
    return { ...none, error: { reason: outcome.error.code, message: outcome.error.detail } };
  }
  const { record, ...rest } = outcome;
  return withRecord && record ? { ...rest, record: toStoredRecord<T>(record) } : rest;
}

/** Merges one by one through `merge`, which validates, where a collection has a schema. */
export async function mergeMany(
  found: AsyncIterable<{ id: string; data: object }>,
  patch: object,
  { filter, limit: given }: { filter: unknown; limit: number | undefined },
  merge: (id: string) => Promise<{ seq: number }>,
): Promise<ManyResult> {
  checkFilterGiven(filter);
  toDocument(patch, 'patch');
  const limit = wholeNumber(given, 'limit') || Infinity;
  const result = { matched: 0, changed: 0, seq: 0 };
  for await (const { id, data } of found) {
    if (result.changed >= limit) break;
    result.matched++;
    const before = data as JsonObject;
    if (isDeepStrictEqual(mergePatch(before, patch as JsonObject), before)) continue;
    try {
      const { seq } = await merge(id);
      result.changed++;
      result.seq = Math.max(result.seq, seq);
    } catch (error) {
      // Another writer deleted it since it was found.
      if (!(error instanceof Refusal && error.code === 'RECORD_NOT_FOUND')) throw error;
      result.matched--;
    }
  }
  return result;
}

export type { ManyOptions, ManyResult };
