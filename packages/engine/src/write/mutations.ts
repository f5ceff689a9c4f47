import type { Hash64 } from '../value/bytes.js';
import type { CollectionInfo, IndexInfo, Core } from '../core/core.js';
import {
  chainAfter,
  coalesce,
  encodeCommit,
  type Change,
  type ChangeOp,
  type EncodedDocument,
  RecordImage,
  type RecordFields,
} from '../format/record.js';
import {
  refuse,
  checkKey,
  mergePatch,
  type JsonObject,
  type WriteMode,
} from '../value/documents.js';
import { enforceSchema } from '../core/schema.js';
import type { IndexEntries } from '../format/entries.js';
import { sameTexts } from '../format/search-entries.js';
import { entryKey, expiryKey, expiryKinds, idBytes, prefixed, recordKey } from '../format/keys.js';
import type { DatabaseState } from '../storage/file/tables.js';
import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { CheckedUpdate } from './operators.js';

/**
 * Builds one commit inside a job of the writer: every change is applied at once, so that the rest
 * of the job sees it, and `finish` writes the log.
 */
export class CommitBuilder {
  readonly #changes: Change[] = [];
  readonly seq: number;
  readonly now: number;

  constructor(private readonly core: Core) {
    this.seq = core.state.seq + 1;
    this.now = core.clock.now();
  }

  get isEmpty(): boolean {
    return this.#changes.length === 0;
  }

  /** Stores a record in place of `before` and returns the new one. */
  store(
    collection: CollectionInfo,
    id: string,
    before: RecordImage | undefined,
    document: EncodedDocument,
    fields: { key: string; expiresAt: number },
  ): RecordImage {
    return this.storeExactly(collection, id, before, document, {
      key: fields.key,
      expiresAt: fields.expiresAt,
      rev: before ? before.rev + 1 : 1,
      createdAt: before ? before.createdAt : this.now,
      updatedAt: this.now,
    });
  }

  /** Stores a record with all fields given. Refuses one that violates its schema. */
  storeExactly(
    collection: CollectionInfo,
    id: string,
    before: RecordImage | undefined,
    document: EncodedDocument,
    fields: Omit<RecordFields, 'contentHash' | 'seq'>,
  ): RecordImage {
    if (collection.schema) enforceSchema(this.core, collection, document.data);
    // Written field by field, here and below: spreading an object costs more than writing the
    // record.
    const bytes = document.toRecord({
      key: fields.key,
      expiresAt: fields.expiresAt,
      rev: fields.rev,
      createdAt: fields.createdAt,
      updatedAt: fields.updatedAt,
      seq: this.seq,
      contentHash: document.contentHash,
    });
    return this.#storeBytes(collection, id, before, bytes, document);
  }

  /**
   * Stores a record whose earlier image, `base`, this commit has already removed: it continues from
   * there, and the log shows one update.
   */
  storeAgain(
    collection: CollectionInfo,
    id: string,
    base: RecordImage | undefined,
    document: EncodedDocument,
    fields: { key: string; expiresAt: number },
  ): RecordImage {
    return this.storeExactly(collection, id, undefined, document, {
      key: fields.key,
      expiresAt: fields.expiresAt,
      rev: (base?.rev ?? 0) + 1,
      createdAt: base?.createdAt ?? this.now,
      updatedAt: this.now,
    });
  }

  remove(collection: CollectionInfo, before: RecordImage, op: ChangeOp = 'delete'): void {
    this.#apply(collection, { op, collection: collection.id, id: before.id, before });
  }

  /** Writes the log entry and moves the database to this commit. Returns its changes. */
  finish(): readonly Change[] {
    const changes = coalesce(this.#changes);
    if (changes.length === 0) return changes;
    const { core, seq } = this;
    if (core.sealed) throw core.sealed();
    const { state } = core;
    const nameOf = (id: number) => core.catalog.byId(id).name;
    const { epoch } = state;
    const chain = chainAfter(state.chain, { seq, epoch, changes }, nameOf);
    core.writer.appendCommit(encodeCommit({ seq, at: this.now, epoch, chain, changes }));
    core.writer.state = afterCommit(state, seq, chain);
    return changes;
  }

  #storeBytes(
    collection: CollectionInfo,
    id: string,
    before: RecordImage | undefined,
    bytes: Buffer,
    document: EncodedDocument,
  ): RecordImage {
    const image = new RecordImage(id, bytes, bytes.length, this.core.codec);
    const after = image.withData(document.decodedData);
    const op = before ? 'update' : 'insert';
    this.#apply(collection, { op, collection: collection.id, id, before, after });
    return after;
  }

  #apply(collection: CollectionInfo, change: Change): void {
    const { writer, codec } = this.core;
    const { id, after } = change;
    // The entries and the log are of the document as it is stored.
    const before = (change.before &&= change.before.stored(codec));
    for (const index of collection.indexes) this.#applyIndex(collection, index, change);
    const key = recordKey(collection.id, id);
    if (after) writer.put('records', key, after.bytes as Buffer);
    else writer.remove('records', key);
    this.#applyKey(collection.id, id, before?.key ?? '', after?.key ?? '');
    this.#applyExpiry(collection.id, id, before?.expiresAt ?? 0, after?.expiresAt ?? 0);
    this.#changes.push(change);
  }

  #applyKey(collection: number, id: string, before: string, after: string): void {
    if (before === after) return;
    const { writer } = this.core;
    const bytes = idBytes(id);
    if (before) {
      const row = prefixed(collection, Buffer.from(before));
      // The key of an expired record may already belong to a newer record.
      if (writer.get('keys', row)?.equals(bytes)) writer.remove('keys', row);
    }
    if (after) writer.put('keys', prefixed(collection, Buffer.from(after)), bytes);
  }

  #applyExpiry(collection: number, id: string, before: number, after: number): void {
    if (before === after) return;
    const what = recordKey(collection, id);
    const row = (time: number) => expiryKey(time, expiryKinds.record, what);
    if (before) this.core.writer.remove('expiry', row(before));
    if (after) this.core.writer.put('expiry', row(after), Buffer.alloc(0));
  }

  #applyIndex(collection: CollectionInfo, index: IndexInfo, change: Change): void {
    if (index.state === 'failed') return;
    if (index.definition.kind === 'search') return this.#applySearch(index, change);
    const { id, before, after } = change;
    const old = before ? index.compiled.entriesOf(before) : noEntries;
    const fresh = after ? index.compiled.entriesOf(after) : noEntries;
    // Even when no entry changes: an empty array has the same entries as a missing value.
    this.core.catalog.noteEntry(index, fresh.multi, fresh.cut);
    if (
      sameValues(old.values, fresh.values) &&
      sameValues(old.unique, fresh.unique) &&
      samePayload(old.payload, fresh.payload)
    ) {
      return;
    }
    if (fresh.problem !== undefined) throw refuse('BAD_DATA', fresh.problem);
    for (const values of missingFrom(fresh.unique, old.unique)) {
      this.#makeRoom(collection, index, id, values);
    }
    moveEntries(this.core, index, id, old, fresh);
  }

  /** Splits the old text into words only if a filter decides whether it is in the index. */
  #applySearch(index: IndexInfo, { id, before, after }: Change): void {
    const { compiled, definition } = index;
    const isPartial = definition.where !== undefined;
    if (before && after && !isPartial && sameTexts(compiled.paths, before, after)) return;
    const fresh = after ? compiled.entriesOf(after) : noEntries;
    this.core.catalog.noteEntry(index, fresh.multi, fresh.cut);
    const old = before && isPartial ? compiled.entriesOf(before) : noEntries;
    if ((isPartial || !before) && samePayload(old.payload, fresh.payload)) return;
    moveEntries(this.core, index, id, old, fresh);
  }

  /** A unique value of an expired record is free: that record is removed now. */
  #makeRoom(collection: CollectionInfo, index: IndexInfo, id: string, values: Uint8Array): void {
    const view = this.core.view();
    const holder = view.idOfUnique(index.id, values);
    if (holder === undefined || holder === id) return;
    const record = view.record(collection.id, holder);
    if (record?.isExpired(this.now)) this.remove(collection, record, 'expire');
  }
}

const noEntries: IndexRows & Pick<IndexEntries, 'multi' | 'cut' | 'problem'> = {
  values: [],
  unique: [],
  multi: false,
  cut: false,
};
type IndexRows = Pick<IndexEntries, 'values' | 'unique' | 'payload' | 'terms'>;
const noBytes = Buffer.alloc(0);

/** Updates one record's entries in one index. Refuses a value that a unique index already has. */
export function moveEntries(
  core: Core,
  index: IndexInfo,
  id: string,
  old: IndexRows,
  fresh: IndexRows,
  isBuild = false,
): void {
  const { writer } = core;
  index.touched?.add(id);
  if (index.definition.kind === 'search') {
    const { payload, terms } = fresh;
    writer.changeSearch({ index: index.id, id, payload, terms, isBuild });
    return;
  }
  if (index.definition.kind === 'vector') noteVector(core, index, id);
  if (fresh.unique.length > 0 || old.unique.length > 0) moveUnique(core, index, id, old, fresh);
  for (const values of missingFrom(old.values, fresh.values)) {
    writer.remove('index', entryKey(index.id, values, id));
  }
  const isSame = samePayload(old.payload, fresh.payload);
  for (const values of isSame ? missingFrom(fresh.values, old.values) : fresh.values) {
    writer.put('index', entryKey(index.id, values, id), fresh.payload ?? noBytes);
  }
}

function samePayload(a: Buffer | undefined, b: Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.equals(b));
}

const maxTouched = 5_000;

/** Notes a changed vector, so that codes in memory are not used for it. */
function noteVector(core: Core, { compiled }: IndexInfo, id: string): void {
  const { touched } = compiled;
  const seq = core.state.seq + 1;
  touched.ids.set(id, seq);
  if (touched.ids.size <= maxTouched) return;
  touched.ids.clear();
  touched.since = seq;
}

function moveUnique(
  core: Core,
  index: IndexInfo,
  id: string,
  old: Pick<IndexEntries, 'unique'>,
  fresh: Pick<IndexEntries, 'unique'>,
): void {
  const { writer } = core;
  const holder = idBytes(id);
  for (const values of missingFrom(fresh.unique, old.unique)) {
    const row = prefixed(index.id, values);
    const other = writer.get('unique', row);
    if (other && !other.equals(holder)) throw uniqueViolation(index);
    writer.put('unique', row, holder);
  }
  for (const values of missingFrom(old.unique, fresh.unique)) {
    const row = prefixed(index.id, values);
    if (writer.get('unique', row)?.equals(holder)) writer.remove('unique', row);
  }
}

export function uniqueViolation(index: IndexInfo) {
  const fields = index.definition.fields.join(', ');
  return refuse(
    'UNIQUE_VIOLATION',
    `Another record of "${index.collection}" already has this value of ${fields}.`,
    { collection: index.collection, index: index.compiled.name },
  );
}

function sameValues(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((value, i) => Buffer.compare(value, b[i]!) === 0);
}

/** More pairs than this are not compared one by one. */
const maxPairs = 1_000;

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** The items of `list` that are not in `other`. */
function missingFrom(
  list: readonly Uint8Array[],
  other: readonly Uint8Array[],
): readonly Uint8Array[] {
  if (other.length === 0) return list;
  if (list.length * other.length > maxPairs) {
    const there = new Set(other.map(textOf));
    return list.filter((value) => !there.has(textOf(value)));
  }
  return list.filter((value) => !other.some((each) => Buffer.compare(each, value) === 0));
}

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
  /** The data is this update, to apply to the document that is there. */
  update?: CheckedUpdate | undefined;
}

export interface WriteOptions {
  /** TTL of the record from now on; 0: it never expires; absent: unchanged, or the default. */
  ttlMs?: number | undefined;
}

/** The latest time that RFC 3339 and protobuf can represent. */
const latestTime = Date.UTC(10_000, 0, 1) - 1;

/** A record by its id or by its key. */
export type Address = { id: string } | { key: string };

/** Takes anything, because callers may be untyped. */
export function checkAddress(address: unknown): void {
  if (typeof address === 'object' && address && ('id' in address || 'key' in address)) return;
  throw refuse('BAD_REQUEST', 'A record is named by its id, { id } or { key }.');
}

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
  options: WriteOptions & { mode?: WriteMode | undefined } = {},
): Written {
  const before = existing(target, collection, address);
  return { record: overwrite(target, collection, before, document, options), created: false };
}

export function upsert(
  target: Target,
  collection: CollectionInfo,
  key: string,
  document: Document,
  options: WriteOptions & { mode?: WriteMode | undefined } = {},
): Written {
  checkKey(key);
  const before = target.byKey(collection, key);
  if (before) {
    return { record: overwrite(target, collection, before, document, options), created: false };
  }
  const fresh = intoNothing(target, document, options.mode);
  return insert(target, collection, fresh, { ...options, key });
}

/** A merge or update that creates the record: what it makes of an empty document. */
function intoNothing(target: Target, document: Document, mode: WriteMode | undefined): Document {
  if (document.update) return { data: document.update.apply({}, target.now) };
  return mode === 'merge' ? { data: mergePatch({}, document.data) } : document;
}

/** Changes a record only if its revision is the expected one. */
export function updateIfRev(
  target: Target,
  collection: CollectionInfo,
  address: Address,
  expectedRev: number,
  document: Document,
  options: WriteOptions & { mode?: WriteMode | undefined } = {},
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
    if (there) throw revMismatch(collection.name, there.rev, expectedRev);
    const fresh = intoNothing(target, document, options.mode);
    return insert(target, collection, fresh, { ...options, key: address.key });
  }
  const before = existing(target, collection, address);
  if (before.rev !== expectedRev) throw revMismatch(collection.name, before.rev, expectedRev);
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
  options: WriteOptions & { mode?: WriteMode | undefined },
): RecordImage {
  const encoded = document.update
    ? target.encode(document.update.apply(before.data, target.now))
    : options.mode === 'merge'
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

export function revMismatch(collection: string, rev: number, expected: number): Error {
  return refuse(
    'REV_MISMATCH',
    `The record of "${collection}" is at revision ${rev}, not ${expected}: ` +
      'read the record again and retry.',
    { current_rev: String(rev) },
  );
}

/** The state after one more commit. Written by hand because it is built for every commit. */
export function afterCommit(state: DatabaseState, seq: number, chain: Hash64): DatabaseState {
  return {
    seq,
    epoch: state.epoch,
    commitEpoch: state.epoch,
    chain,
    oldestSeq: state.oldestSeq,
    oldestChain: state.oldestChain,
    nextCollection: state.nextCollection,
    nextIndex: state.nextIndex,
  };
}
