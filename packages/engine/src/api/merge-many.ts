import { isDeepStrictEqual } from 'node:util';
import { Refusal } from '@millrace/kit/errors';
import { wholeNumber } from '../query/query.js';
import { mergePatch, toDocument, type JsonObject } from '../value/documents.js';
import { checkFilterGiven, type ManyResult } from '../write/bulk-filter.js';

/**
 * Merges records one by one through `merge`, which validates them against the collection's schema.
 */
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
