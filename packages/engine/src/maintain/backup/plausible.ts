import { checkCollectionName, maxDepth } from '../../value/documents.js';
import { systemCollection } from '../../core/catalog.js';
import { compileIndex } from '../../format/entries.js';
import type { BackupHeader, BackupTrailer } from './parts.js';

/**
 * Checksums detect damage, not malice: an attacker can compute them for any content. So the content
 * of a backup is checked here before it is used. Each function returns the problem.
 */

const maxSeq = 2 ** 48 - 1;
const maxEpoch = 2 ** 32 - 1;
const hexHash = /^[0-9a-f]{16}$/;
const lineage = /^[0-9A-Za-z_-]{1,64}$/;

const isCount = (value: unknown, max: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max;

export function headerProblem(header: BackupHeader): string | undefined {
  const { seq, sinceSeq, epoch, lineageId, createdAt, chainHash } = header;
  if (!isCount(seq, maxSeq)) return 'its header has no valid seq';
  if (!isCount(sinceSeq, seq)) return 'its header has no valid since_seq';
  if (!isCount(epoch, maxEpoch)) return 'its header has no valid epoch';
  if (!lineage.test(lineageId)) return 'its header has no valid lineage_id';
  if (Number.isNaN(createdAt.getTime())) return 'its header has no valid created_at';
  const { high, low } = chainHash;
  if (Number.isNaN(high) || Number.isNaN(low)) return 'its header has no valid chain_hash';
  return undefined;
}

export function trailerProblem(trailer: BackupTrailer | null): string | undefined {
  const { bytes, records, sha256 } = trailer ?? {};
  const isValid = [bytes, records].every((count) => isCount(count, Number.MAX_SAFE_INTEGER));
  return isValid && typeof sha256 === 'string' ? undefined : 'its trailer is not one';
}

export function catalogProblem(catalog: unknown): string | undefined {
  if (typeof catalog !== 'object' || catalog === null) return 'its catalog is not an object';
  const { collections, indexes, only, since_chain: chain } = catalog as Record<string, unknown>;
  if (!Array.isArray(collections) || !Array.isArray(indexes)) return 'its catalog lacks a list';
  if (chain !== null && !(typeof chain === 'string' && hexHash.test(chain))) {
    return 'its catalog has no valid since_chain';
  }
  const names = new Set<unknown>();
  for (const each of collections as unknown[]) {
    const { number, name } = (each ?? {}) as { number?: unknown; name?: unknown };
    if (!isCount(number, maxEpoch)) return 'its catalog has a collection without a number';
    if (names.has(name)) return `its catalog has the collection "${String(name)}" twice`;
    names.add(name);
    const problem = problemOf(() => name === systemCollection || checkCollectionName(name));
    if (problem !== undefined) return `its catalog: ${problem}`;
  }
  for (const index of indexes as unknown[]) {
    const { collection, fields } = (index ?? {}) as { collection?: unknown; fields?: unknown };
    if (!names.has(collection)) return 'its catalog has an index of no collection';
    const problem = problemOf(() => compileIndex(index as Parameters<typeof compileIndex>[0]));
    if (!Array.isArray(fields) || problem !== undefined) {
      return `its catalog has an index that cannot be used: ${problem ?? 'it has no fields'}`;
    }
  }
  const isList = Array.isArray(only) && only.every((name) => typeof name === 'string');
  return only === null || isList ? undefined : 'its catalog has no valid list of collections';
}

/** A document must satisfy the rules for writes. */
export function documentProblem(data: unknown): string | undefined {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return 'is not an object';
  return nestedProblem(data, 1);
}

function nestedProblem(value: object, depth: number): string | undefined {
  if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
  if (Object.hasOwn(value, '__proto__')) return 'has a field named "__proto__"';
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part !== 'object' || part === null) continue;
    const problem = nestedProblem(part, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
