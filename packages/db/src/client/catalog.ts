import { Database } from '@millrace/contract/db';
import type { DroppedCollection, RenamedCollection } from '@millrace/engine/write/catalog-changes';
import type { IndexDefinition } from '@millrace/engine/format/entries';
import { dateOf } from './records.js';
import type { CallOptions, Session } from './session.js';
import type { IndexStatus } from './status.js';

const { method: rpc } = Database;

// The server goes through all records of the collection.
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
    { fields, unique = false, sparse = false }: IndexDefinition,
    options: CallOptions = {},
  ): Promise<{ index: IndexStatus; seq: number }> {
    const request = { collection, fields: [...fields], unique, sparse };
    const { index, seq } = await this.session.callOnce(rpc.createIndex, request, options);
    const { name, state } = index!;
    const made = { name, fields: index!.fields, unique: index!.unique, sparse: index!.sparse };
    return { index: { ...made, state }, seq: Number(seq) };
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
    }));
  }
}
