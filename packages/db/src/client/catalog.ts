import {
  Database,
  type CollectionSchema,
  BackupFormat as FormatCode,
  type BackupHeader as HeaderMessage,
  type BackupResponse,
} from '@millrace/contract/db';
import type { DroppedCollection, RenamedCollection } from '@millrace/engine/write/catalog-changes';
import { compileIndex, definitionOf, type DeclaredIndex } from '@millrace/engine/format/entries';
import { dateOf, toHash, uint64Of } from './records.js';
import type { CallOptions, Session } from './session.js';
import { plainFilter } from '@millrace/engine/value/plain-query';
import { filterMember } from './queries.js';
import { toIndex, type IndexStatus } from './status.js';
import { checkSchemaObject } from '@millrace/engine/value/documents';
import type { JsonObject } from '@bufbuild/protobuf';
import type { SchemaInfo, SetSchemaOptions, SetSchemaResult } from '@millrace/engine/write/schemas';
import { CallRefusal } from './failures.js';
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { BackupOptions } from '@millrace/engine/maintain/backup/backup';
import {
  RecordCounter,
  type BackupHeader,
  type BackupPart,
} from '@millrace/engine/maintain/backup/frames';
import type { Compacted } from '@millrace/engine/maintain/compact/compact';

const { method: rpc } = Database;

// The server goes through all records of the collection, or copies its file.
const longTimeoutMs = 30 * 60_000;

/** An index that would have served slow queries. */
export interface IndexAdvice {
  collection: string;
  fields: string[];
  queryCount: number;
  totalMs: number;
  maxMs: number;
  rowsScanned: number;
  rowsReturned: number;
  /** The filter and order of the last one, without values. */
  filter: string;
  lastAt: Date;
  /** `ci` for an index without case, otherwise empty. */
  collation: string;
}

/** Changes of collections and indexes on the server. They need admin access. */
export class RemoteCatalog {
  constructor(private readonly session: Session) {}

  /** Deletes the records, the schema and the indexes of a collection. */
  async drop(collection: string, options: CallOptions = {}): Promise<DroppedCollection> {
    const { timeoutMs = longTimeoutMs, signal } = options;
    const call = { timeoutMs, signal };
    const reply = await this.session.callOnce(rpc.dropCollection, { collection }, call);
    return { deleted: Number(reply.deleted), seq: Number(reply.seq) };
  }

  /** Moves the records to another name. Can be repeated after a failure. */
  async rename(
    collection: string,
    newName: string,
    options: CallOptions = {},
  ): Promise<RenamedCollection> {
    const { timeoutMs = longTimeoutMs, signal } = options;
    const request = { collection, newName };
    const reply = await this.session.callOnce(rpc.renameCollection, request, { timeoutMs, signal });
    return { moved: Number(reply.moved), seq: Number(reply.seq) };
  }

  /** Returns before the index is built; `status` shows its state. */
  async createIndex(
    collection: string,
    declared: DeclaredIndex,
    options: CallOptions = {},
  ): Promise<{ index: IndexStatus; seq: number }> {
    const {
      fields,
      unique = false,
      sparse = false,
      collation,
      where,
      ...rest
    } = compileIndex(definitionOf(declared)).definition;
    const { kind, language = '', weights, dims = 0, metric, storage } = rest;
    const request = {
      collection,
      fields: kind === undefined ? [...fields] : [],
      search: kind === 'search' ? [...fields] : [],
      vector: kind === 'vector' ? fields[0]! : '',
      dims,
      metric: metric ?? '',
      storage: storage ?? '',
      language,
      ...(weights && { weights: { ...weights } }),
      unique,
      sparse,
      collation: collation ?? '',
      ...filterMember('where', plainFilter(where, 'where')),
    };
    const { index, seq } = await this.session.callOnce(rpc.createIndex, request, options);
    return { index: toIndex(index!), seq: Number(seq) };
  }

  /** `index` is its fields with commas between. Returns the commit. */
  async dropIndex(collection: string, index: string, options: CallOptions = {}): Promise<number> {
    const request = { collection, index };
    return Number((await this.session.callOnce(rpc.dropIndex, request, options)).seq);
  }

  /** Indexes that would have served the slow queries since the start of the server. */
  async adviseIndexes(options: CallOptions = {}): Promise<IndexAdvice[]> {
    const { advice } = await this.session.call(rpc.adviseIndexes, {}, options);
    return advice.map((each) => ({
      collection: each.collection,
      fields: each.fields,
      queryCount: Number(each.queryCount),
      totalMs: each.totalMs,
      maxMs: each.maxMs,
      rowsScanned: Number(each.rowsScanned),
      rowsReturned: Number(each.rowsReturned),
      filter: each.filter,
      lastAt: dateOf(each.lastAt),
      collation: each.collation ?? '',
    }));
  }
}

/** The JSON Schemas of the collections on the server. */
export class RemoteSchemas {
  constructor(private readonly session: Session) {}

  async list(options: CallOptions = {}): Promise<SchemaInfo[]> {
    const { schemas } = await this.session.call(rpc.listSchemas, {}, options);
    return schemas.map(infoOf);
  }

  async get(collection: string, options: CallOptions = {}): Promise<SchemaInfo | undefined> {
    try {
      const { schema } = await this.session.call(rpc.getSchema, { collection }, options);
      return schema && infoOf(schema);
    } catch (error) {
      if (error instanceof CallRefusal && error.code === 'SCHEMA_NOT_FOUND') return undefined;
      throw error;
    }
  }

  async set(
    collection: string,
    schema: object,
    options: SetSchemaOptions & CallOptions = {},
  ): Promise<SetSchemaResult> {
    checkSchemaObject(schema);
    const { validate = 'strict', force = false, timeoutMs = longTimeoutMs, signal } = options;
    const request = { collection, schema: schema as JsonObject, validate, force };
    const reply = await this.session.callOnce(rpc.setSchema, request, { timeoutMs, signal });
    return {
      applied: reply.applied,
      checked: Number(reply.checked),
      violating: Number(reply.violating),
      violations: reply.violations.map(({ id, key, path, message }) => ({
        id,
        key,
        path,
        message,
      })),
      seq: Number(reply.seq),
    };
  }

  /** Returns the commit that removed it. Refuses SCHEMA_NOT_FOUND. */
  async remove(collection: string, options: CallOptions = {}): Promise<number> {
    const { seq } = await this.session.callOnce(rpc.removeSchema, { collection }, options);
    return Number(seq);
  }
}

function infoOf(message: CollectionSchema): SchemaInfo {
  return {
    collection: message.collection,
    schema: message.schema ?? {},
    validate: message.validate === 'warn' ? 'warn' : 'strict',
    updatedAt: dateOf(message.updatedAt),
    violationCount: Number(message.violationCount),
  };
}

/** Streams the parts of a backup, with backpressure. */
export async function* backup(
  session: Session,
  options: BackupOptions & CallOptions = {},
): AsyncGenerator<BackupPart, void, void> {
  const { format = 'snapshot', collections = [], sinceSeq = 0, onProgress } = options;
  const request = {
    format: format === 'ndjson' ? FormatCode.NDJSON : FormatCode.SNAPSHOT,
    collections: [...collections],
    sinceSeq: uint64Of(sinceSeq, 'since_seq'),
  };
  let bytes = 0;
  // Counting costs time; an increment has changes instead of records.
  const counter = onProgress && sinceSeq === 0 ? new RecordCounter(format) : undefined;
  for await (const reply of session.stream(rpc.backup, request, options)) {
    const part = toPart(reply);
    if (!part) continue;
    if (part.kind === 'data') {
      bytes += part.bytes.length;
      counter?.push(part.bytes);
    }
    const records = part.kind === 'trailer' ? part.trailer.records : (counter?.records ?? 0);
    onProgress?.({ records, bytes });
    yield part;
  }
}

export async function compact(
  session: Session,
  options: { trimBeforeSeq?: number | undefined; dryRun?: boolean | undefined } & CallOptions = {},
): Promise<Compacted> {
  const { trimBeforeSeq = 0, dryRun = false, timeoutMs = longTimeoutMs, signal } = options;
  const request = { trimBeforeSeq: uint64Of(trimBeforeSeq, 'trim_before_seq'), dryRun };
  const reply = await session.callOnce(rpc.compact, request, { timeoutMs, signal });
  return {
    bytesBefore: Number(reply.bytesBefore),
    bytesAfter: Number(reply.bytesAfter),
    oldestSeq: Number(reply.oldestSeq),
    elapsedMs: reply.elapsed ? durationMs(reply.elapsed) : 0,
  };
}

export interface Promoted {
  role: string;
  epoch: number;
  seq: number;
  /** Commits of the old leader that were missing, as far as known. */
  lag: number;
}

export async function promote(
  session: Session,
  options: { force?: boolean | undefined; maxLag?: number | undefined } & CallOptions = {},
): Promise<Promoted> {
  const { force = false, maxLag = 0 } = options;
  const request = { force, maxLag: uint64Of(maxLag, 'max_lag') };
  const { role, epoch, seq, lag } = await session.call(rpc.promote, request, options);
  return { role, epoch: Number(epoch), seq: Number(seq), lag: Number(lag) };
}

/** Converts a backup message; undefined for a part that this client does not know. */
export function toPart({ part }: BackupResponse): BackupPart | undefined {
  switch (part.case) {
    case 'header':
      return { kind: 'header', header: toHeader(part.value) };
    case 'data': {
      const { buffer, byteOffset, byteLength } = part.value;
      return { kind: 'data', bytes: Buffer.from(buffer, byteOffset, byteLength) };
    }
    case 'trailer': {
      const { bytes, sha256, records } = part.value;
      const trailer = { bytes: Number(bytes), sha256, records: Number(records) };
      return { kind: 'trailer', trailer };
    }
    case undefined:
      return undefined;
  }
}

function toHeader(header: HeaderMessage): BackupHeader {
  return {
    formatVersion: header.formatVersion,
    seq: Number(header.seq),
    epoch: Number(header.epoch),
    lineageId: header.lineageId,
    createdAt: dateOf(header.createdAt),
    format: header.format === FormatCode.NDJSON ? 'ndjson' : 'snapshot',
    sinceSeq: Number(header.sinceSeq),
    chainHash: toHash(header.chainHash),
  };
}
