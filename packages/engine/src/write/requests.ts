import {
  type Change,
  RecordImage,
  encodeResult,
  type RequestResult,
  encodeDocument,
  type EncodedDocument,
} from '../format/record.js';
import type { Core, CollectionInfo } from '../core/core.js';
import { expiryKey, expiryKinds, idLength, readId, readUint48, writeId } from '../format/keys.js';
import { hashText } from '../value/bytes.js';
import { refuse, checkCollectionName, toDocument, type JsonObject } from '../value/documents.js';
import { insert, update, type Target, type WriteOptions, CommitBuilder } from './mutations.js';
import type { ReadView, WriterView } from '../storage/views.js';
import type { RowWriter } from '../core/read-snapshot.js';
import type { DatabaseState } from '../storage/file/tables.js';

/** How long the result of a request is stored for repetitions. */
export const requestMemoryMs = 10 * 60_000;
const maxRequestIdLength = 128;

/** The result of a write, as a repetition returns it. */
export interface Outcome {
  seq: number;
  created: boolean;
  /** The record after the write, or the one that a delete removed. */
  record?: RecordImage | undefined;
}

/**
 * Runs a write once per request id. The result is stored in the same commit as the write, so a
 * client that lost the answer, even in a crash, can repeat the request safely.
 */
export function once(
  core: Core,
  requestId: string | undefined,
  fingerprint: string,
  run: () => Outcome,
): Outcome {
  if (requestId === undefined || requestId === '') return run();
  checkRequestId(requestId);
  const now = core.clock.now();
  const row = Buffer.from(`r:${requestId}`);
  const print = hashText(fingerprint);
  const stored = core.writer.get('requests', row);
  if (stored && readUint48(stored, 0) > now) {
    if (stored.readUInt32BE(6) !== print.high || stored.readUInt32BE(10) !== print.low) {
      throw requestIdReused(requestId);
    }
    return decodeOutcome(core, stored);
  }
  // The sweeper must not remove the new result in place of the expired one.
  if (stored) forgetResult(core, row, stored);
  const outcome = run();
  const head = Buffer.alloc(14);
  head.writeUIntBE(now + requestMemoryMs, 0, 6);
  head.writeUInt32BE(print.high, 6);
  head.writeUInt32BE(print.low, 10);
  const value = Buffer.concat([head, encodeOutcome(outcome)]);
  // Every node encodes records differently, so the image is not replicated.
  const shared = value.subarray(0, outcome.record ? imageStart : value.length);
  storeResult(core, { key: row, value: shared, expiresAt: now + requestMemoryMs }, value);
  return outcome;
}

export function checkRequestId(requestId: string): void {
  if (requestId.length <= maxRequestIdLength) return;
  throw refuse('BAD_REQUEST', `request_id takes at most ${maxRequestIdLength} characters.`);
}

export function requestIdReused(requestId: string) {
  return refuse(
    'REQUEST_ID_REUSED',
    `The request_id "${requestId}" was used for another request; make a new one for each.`,
    { request_id: requestId },
  );
}

/**
 * Stores the result of a request until it expires, and adds it to the commit of the same job, so
 * that a promoted follower has it too. `row` is the complete value if it contains more than other
 * nodes need.
 */
function storeResult(core: Core, result: RequestResult, row = result.value): void {
  const { key, expiresAt } = result;
  core.writer.put('requests', key, row);
  core.writer.put('expiry', expiryKey(expiresAt, expiryKinds.request, key), Buffer.alloc(0));
  core.writer.extendCommit(encodeResult(result));
}

/** Removes a row of `requests`. Only inside a job. */
export function forgetResult(core: Core, key: Buffer, value: Buffer): void {
  const { expiresAt } = aboutResult(key, value);
  core.writer.remove('requests', key);
  core.writer.remove('expiry', expiryKey(expiresAt, expiryKinds.request, key));
}

/** Stores a row of `requests` for ten minutes. */
export function remember(core: Core, row: Buffer, now: number, value: Buffer): void {
  storeResult(core, { key: row, value, expiresAt: now + requestMemoryMs });
}

/**
 * Stores a result that came with a commit of the leader. False: it refers to a record that is not
 * in the commit. Only inside a job, after the commit.
 */
export function storeLeaderResult(
  core: Core,
  result: RequestResult,
  changes: readonly Change[],
): boolean {
  const { key, value } = result;
  const before = core.writer.get('requests', key);
  if (before) forgetResult(core, key, before);
  const hasRecord = key[0] === writeMark && (value[outcomeStart + 6]! & 2) !== 0;
  if (!hasRecord) {
    storeResult(core, result);
    return true;
  }
  if (value.length !== imageStart) return false;
  const id = readId(value, outcomeStart + 7);
  const change = changes.find((each) => each.id === id);
  const image = change?.after ?? change?.before;
  if (!image) return false;
  storeResult(core, result, Buffer.concat([value, image.bytes.subarray(0, image.end)]));
  return true;
}

/** The commit of a row of `requests`, 0 for none, and when the row expires. */
export function aboutResult(key: Buffer, value: Buffer): { seq: number; expiresAt: number } {
  if (key[0] === transactionMark) {
    const { seq, committedAt } = JSON.parse(value.toString()) as Record<string, number>;
    return { seq: seq!, expiresAt: committedAt! + requestMemoryMs };
  }
  const expiresAt = readUint48(value, 0);
  if (key[0] !== manyMark) return { seq: readUint48(value, outcomeStart), expiresAt };
  const { seq } = JSON.parse(value.toString('utf8', outcomeStart)) as { seq: number };
  return { seq, expiresAt };
}

// Key prefixes of the rows: single writes, changes by filter, transactions.
const [writeMark, manyMark, transactionMark] = Buffer.from('rmt');
const outcomeStart = 14;
const imageStart = outcomeStart + 7 + idLength;

function encodeOutcome({ seq, created, record }: Outcome): Buffer {
  const head = Buffer.alloc(7 + (record ? idLength : 0));
  head.writeUIntBE(seq, 0, 6);
  head[6] = (created ? 1 : 0) | (record ? 2 : 0);
  if (!record) return head;
  writeId(record.id, head, 7);
  return Buffer.concat([head, record.bytes.subarray(0, record.end)]);
}

function decodeOutcome(core: Core, stored: Buffer): Outcome {
  const flags = stored[outcomeStart + 6]!;
  const outcome = { seq: readUint48(stored, outcomeStart), created: (flags & 1) !== 0 };
  if (!(flags & 2)) return outcome;
  const bytes = stored.subarray(outcomeStart + 7 + idLength);
  const id = readId(stored, outcomeStart + 7);
  return { ...outcome, record: new RecordImage(id, bytes, bytes.length, core.codec) };
}

/** A record inside a step of `transact`. */
export interface StepRecord<T> {
  readonly id: string;
  readonly key: string;
  readonly data: T;
}

export interface PutOptions extends WriteOptions {
  /** The ULID of a record that does not exist yet; a new one unless given. */
  id?: string | undefined;
}

/**
 * The records of one collection inside a step of `transact`, by key. It sees the writes of its own
 * step. The collection is created with its first record.
 */
export class StepCollection<T extends object> {
  constructor(
    private readonly core: Core,
    private readonly target: Target & { readonly view: ReadView },
    readonly name: string,
  ) {
    checkCollectionName(name);
  }

  /** The document with this key, or undefined. */
  get(key: string): T | undefined {
    const info = this.#find();
    return info && (this.target.byKey(info, key)?.data as T | undefined);
  }

  /** Replaces the document with this key, or creates it. */
  put(key: string, data: T, { id, ttlMs }: PutOptions = {}): void {
    const document = { data: toDocument(data) };
    const info = this.core.collectionNow(this.name);
    if (this.target.byKey(info, key)) update(this.target, info, { key }, document, { ttlMs });
    else insert(this.target, info, document, { id, key, ttlMs });
  }

  /** Deletes the record with this key; false when there is none. */
  delete(key: string): boolean {
    const info = this.#find();
    const record = info && this.target.byKey(info, key);
    if (!record) return false;
    this.target.remove(info, record);
    return true;
  }

  /** All records that have not expired, in order of their ids. */
  all(): StepRecord<T>[] {
    const info = this.#find();
    if (!info) return [];
    const { now, view } = this.target;
    const records = view.scan(info.id, {}, (record) => !record.isExpired(now));
    return [...records] as unknown as StepRecord<T>[];
  }

  #find(): CollectionInfo | undefined {
    return this.core.catalog.find(this.name);
  }
}

/** Operations that write directly into a commit. Used inside one job of the writer. */
export class CommitTarget implements Target {
  readonly commit: CommitBuilder;

  constructor(private readonly core: Core) {
    this.commit = new CommitBuilder(core);
  }

  /** The records of one collection, by key. */
  collection<T extends object = Record<string, unknown>>(name: string): StepCollection<T> {
    return new StepCollection<T>(this.core, this, name);
  }

  /** Raw rows beside the records. */
  get rows(): RowWriter {
    return (this.#rows ??= rowWriter(this.core));
  }
  #rows: RowWriter | undefined;

  get view(): WriterView<DatabaseState> {
    return (this.#view ??= this.core.view());
  }
  #view: WriterView<DatabaseState> | undefined;

  get now(): number {
    return this.commit.now;
  }

  newId(): string {
    return this.core.random.ulid(this.now);
  }

  encode(data: JsonObject): EncodedDocument {
    return encodeDocument(this.core, data);
  }

  byId(collection: CollectionInfo, id: string): RecordImage | undefined {
    return this.#live(collection, this.view.record(collection.id, id));
  }

  byKey(collection: CollectionInfo, key: string): RecordImage | undefined {
    const id = this.view.idOfKey(collection.id, key);
    return id === undefined ? undefined : this.byId(collection, id);
  }

  store(
    collection: CollectionInfo,
    id: string,
    before: RecordImage | undefined,
    document: EncodedDocument,
    fields: { key: string; expiresAt: number },
  ): RecordImage {
    return this.commit.store(collection, id, before, document, fields);
  }

  remove(collection: CollectionInfo, before: RecordImage): void {
    this.commit.remove(collection, before);
  }

  /** An expired record that is not swept yet is removed now. */
  #live(collection: CollectionInfo, record: RecordImage | undefined): RecordImage | undefined {
    if (!record?.isExpired(this.now)) return record;
    this.commit.remove(collection, record, 'expire');
    return undefined;
  }
}

/** Inside a writer job: also sees rows that are not in the file yet. */
function rowWriter({ writer }: Core): RowWriter {
  return {
    get: (key) => writer.get('rows', key),
    range: (range) => writer.range('rows', range),
    put: (key, value) => writer.put('rows', key, value),
    remove: (key) => writer.remove('rows', key),
  };
}

/** How transactions end, and what is reported about ended ones. */

export interface CommitResult {
  seq: number;
  operations: number;
  committedAt: number;
}

/** Stores the result of a commit for ten minutes, in case the answer was lost. */
export function rememberCommit(core: Core, id: string, result: CommitResult): void {
  remember(core, commitRow(id), result.committedAt, Buffer.from(JSON.stringify(result)));
}

export function rememberedCommit(core: Core, id: string): CommitResult | undefined {
  if (core.closed) throw core.closed;
  const row = core.store.get('requests', commitRow(id));
  return row && (JSON.parse(row.toString()) as CommitResult);
}

function commitRow(id: string): Buffer {
  return Buffer.from(`t:${id}`);
}

export function expired(id: string) {
  return refuse(
    'TX_EXPIRED',
    `The transaction ${id} has expired (60 s in all, 10 s without a call); begin another.`,
    { tx_id: id },
  );
}

export function closed(id: string) {
  return refuse('TX_CLOSED', `The transaction ${id} has ended; begin another.`, { tx_id: id });
}
