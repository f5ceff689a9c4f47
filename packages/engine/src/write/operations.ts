import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { CollectionInfo } from '../core/catalog.js';
import { checkKey, mergePatch, type JsonObject, type UpdateMode } from '../value/documents.js';
import type { EncodedDocument } from '../format/encoded-document.js';
import type { RecordImage } from '../format/record.js';
import { refuse } from '../value/refusal.js';

/**
 * Where an operation reads and writes: directly into a commit, or into the private writes of an
 * interactive transaction. The operations below work on either.
 */
export interface Target {
  readonly now: number;
  newId(): string;
  encode(data: JsonObject): EncodedDocument;
  /** The record, unless it has expired. */
  byId(collection: CollectionInfo, id: string): RecordImage | undefined;
  byKey(collection: CollectionInfo, key: string): RecordImage | undefined;
  store(
    collection: CollectionInfo,
    id: string,
    before: RecordImage | undefined,
    document: EncodedDocument,
    fields: { key: string; expiresAt: number },
  ): RecordImage;
  remove(collection: CollectionInfo, before: RecordImage): void;
}

/** The document of a write: plain, or already encoded outside the writer. */
export interface Document {
  data: JsonObject;
  encoded?: EncodedDocument | undefined;
}

export interface WriteOptions {
  /** TTL of the record from now on; 0: it never expires; absent: unchanged, or the default. */
  ttlMs?: number | undefined;
}

/** The latest time that RFC 3339 and protobuf can represent. */
const latestTime = Date.UTC(10_000, 0, 1) - 1;

/** A record by its id or by its key. */
export type Address = { id: string } | { key: string };

export interface Written {
  record: RecordImage;
  created: boolean;
}

export function insert(
  target: Target,
  collection: CollectionInfo,
  document: Document,
  options: WriteOptions & { id?: string | undefined; key?: string | undefined } = {},
): Written {
  const key = options.key ?? '';
  if (options.key !== undefined) checkKey(options.key);
  if (key && target.byKey(collection, key)) throw duplicateKey(collection, key);
  const id = options.id === undefined ? target.newId() : checkId(options.id);
  if (options.id !== undefined && target.byId(collection, id)) {
    throw refuse('DUPLICATE_ID', `"${collection.name}" already has a record with the id ${id}.`, {
      collection: collection.name,
      id,
    });
  }
  const expiresAt = expiryFor(target, collection, options, undefined);
  const fields = { key, expiresAt };
  const encoded = document.encoded ?? target.encode(document.data);
  return { record: target.store(collection, id, undefined, encoded, fields), created: true };
}

export function update(
  target: Target,
  collection: CollectionInfo,
  address: Address,
  document: Document,
  options: WriteOptions & { mode?: UpdateMode | undefined } = {},
): Written {
  const before = existing(target, collection, address);
  return { record: overwrite(target, collection, before, document, options), created: false };
}

export function upsert(
  target: Target,
  collection: CollectionInfo,
  key: string,
  document: Document,
  options: WriteOptions & { mode?: UpdateMode | undefined } = {},
): Written {
  checkKey(key);
  const before = target.byKey(collection, key);
  if (before) {
    return { record: overwrite(target, collection, before, document, options), created: false };
  }
  return insert(target, collection, intoNothing(document, options.mode), { ...options, key });
}

/** A merge that creates the record: the fields that the patch sets, without those it removes. */
function intoNothing(document: Document, mode: UpdateMode | undefined): Document {
  return mode === 'merge' ? { data: mergePatch({}, document.data) } : document;
}

/** Changes a record only if its revision is the expected one. */
export function updateIfRev(
  target: Target,
  collection: CollectionInfo,
  address: Address,
  expectedRev: number,
  document: Document,
  options: WriteOptions & { mode?: UpdateMode | undefined } = {},
): Written {
  if (!Number.isSafeInteger(expectedRev) || expectedRev < 0) {
    throw refuse(
      'BAD_REQUEST',
      `expected_rev must be a whole number of 0 or more, not ${expectedRev}.`,
    );
  }
  if (expectedRev === 0) {
    if (!('key' in address)) {
      throw refuse('BAD_REQUEST', 'expected_rev 0 (must not exist) needs a key, not an id.');
    }
    checkKey(address.key);
    const there = target.byKey(collection, address.key);
    if (there) throw revMismatch(collection, there, expectedRev);
    const fresh = intoNothing(document, options.mode);
    return insert(target, collection, fresh, { ...options, key: address.key });
  }
  const before = existing(target, collection, address);
  if (before.rev !== expectedRev) throw revMismatch(collection, before, expectedRev);
  return { record: overwrite(target, collection, before, document, options), created: false };
}

/** Removes a record and returns its last image. */
export function remove(target: Target, collection: CollectionInfo, address: Address): RecordImage {
  const before = existing(target, collection, address);
  target.remove(collection, before);
  return before;
}

export function checkId(id: string): string {
  if (typeof id === 'string' && isUlid(id)) return normalizeUlid(id);
  throw refuse('BAD_ID', `"${id}" is not an id: ids are ULIDs, 26 characters.`);
}

function existing(target: Target, collection: CollectionInfo, address: Address): RecordImage {
  if ('id' in address) {
    // Text that is not an id matches no record.
    const record = isUlid(address.id)
      ? target.byId(collection, normalizeUlid(address.id))
      : undefined;
    if (record) return record;
    throw notFoundById(collection.name, address.id);
  }
  checkKey(address.key);
  const record = target.byKey(collection, address.key);
  if (record) return record;
  throw notFoundByKey(collection.name, address.key);
}

function overwrite(
  target: Target,
  collection: CollectionInfo,
  before: RecordImage,
  document: Document,
  options: WriteOptions & { mode?: UpdateMode | undefined },
): RecordImage {
  const encoded =
    options.mode === 'merge'
      ? target.encode(mergePatch(before.data, document.data))
      : (document.encoded ?? target.encode(document.data));
  const expiresAt = expiryFor(target, collection, options, before);
  return target.store(collection, before.id, before, encoded, { key: before.key, expiresAt });
}

function expiryFor(
  target: Target,
  collection: CollectionInfo,
  options: WriteOptions,
  before: RecordImage | undefined,
): number {
  const { ttlMs } = options;
  if (ttlMs === undefined) {
    if (before) return before.expiresAt;
    return collection.defaultTtlMs > 0 ? Math.ceil(target.now + collection.defaultTtlMs) : 0;
  }
  if (!Number.isFinite(ttlMs) || ttlMs < 0) {
    throw refuse(
      'BAD_REQUEST',
      `ttl must be a duration of 0 (never expires) or more, not ${ttlMs}.`,
    );
  }
  if (target.now + ttlMs > latestTime) {
    throw refuse(
      'BAD_REQUEST',
      'ttl reaches beyond the year 9999; use 0 for a record without end.',
    );
  }
  return ttlMs === 0 ? 0 : Math.ceil(target.now + ttlMs);
}

export function notFoundById(collection: string, id: string) {
  return refuse('RECORD_NOT_FOUND', `"${collection}" has no record with the id ${id}.`, {
    collection,
    id,
  });
}

export function notFoundByKey(collection: string, key: string) {
  return refuse('KEY_NOT_FOUND', `"${collection}" has no record with the key "${key}".`, {
    collection,
    key,
  });
}

function duplicateKey(collection: CollectionInfo, key: string) {
  return refuse(
    'DUPLICATE_KEY',
    `"${collection.name}" already has a record with the key "${key}".`,
    { collection: collection.name, key },
  );
}

function revMismatch(collection: CollectionInfo, record: RecordImage, expected: number) {
  return refuse(
    'REV_MISMATCH',
    `The record of "${collection.name}" is at revision ${record.rev}, not ${expected}: ` +
      'read the record again and retry.',
    { current_rev: String(record.rev) },
  );
}
