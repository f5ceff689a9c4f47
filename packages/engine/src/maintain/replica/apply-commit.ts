import { afterCommit } from '../../write/mutations.js';
import { Core, type CoreOptions } from '../../core/core.js';
import {
  chainAfter,
  encodeCommit,
  type Change,
  type ChangeOp,
  encodeRecord,
  RecordImage,
  type RequestResult,
} from '../../format/record.js';
import { contentHash } from '../../format/document-writer.js';
import type { JsonObject } from '../../value/documents.js';
import type { Hash64 } from '../../value/bytes.js';
import { storeLeaderResult } from '../../write/requests.js';
import { Tables } from '../../storage/file/tables.js';
import { sameHash } from '../../watch/message.js';
import { moveImages } from './cut-tail.js';
import { join } from 'node:path';
import { applyBackup } from '../backup/apply.js';
import type { BackupHeader, BackupPart } from '../backup/frames.js';
import { readBackup } from '../backup/reader.js';
import { openFormat } from '../upgrade/format.js';
import { removeStore } from '../../storage/file/directory.js';
import { nodeFiles } from '../../storage/file/files.js';

const name = 'leader_seq';

/**
 * Stores the leader's position, so that a follower that starts while its leader is down still knows
 * what it lacks. Only inside a job.
 */
function noteLeaderSeq(core: Core, seq: number, epoch: number): void {
  core.putMeta(name, { seq, epoch });
}

/** The newest commit of the leader of this epoch that this node knows about; 0: none. */
export function notedLeaderSeq(core: Core): number {
  const row = core.store.get('meta', Buffer.from(name));
  if (!row) return 0;
  const { seq, epoch } = JSON.parse(row.toString()) as { seq: number; epoch: number };
  // The commits of another leader may never have become part of this history.
  return epoch === core.state.epoch ? seq : 0;
}

/** A commit of the leader as it arrives at a follower. */
export interface IncomingCommit {
  seq: number;
  /** Milliseconds since the epoch. */
  at: number;
  epoch: number;
  /** The newest commit of the leader when it sent this one. */
  leaderSeq: number;
  /** The leader's chain hash over this commit and all before it. */
  chain: Hash64;
  changes: IncomingChange[];
  /** Results of the requests in the commit. Leaders of 0.1.0 send none; required from 1.0.0 on. */
  results?: readonly RequestResult[];
}

export interface IncomingChange {
  op: ChangeOp;
  /** Name of the collection. */
  collection: string;
  id: string;
  /** Absent after a delete or an expiry. */
  after: IncomingRecord | undefined;
}

interface IncomingRecord {
  key: string;
  rev: number;
  createdAt: number;
  updatedAt: number;
  /** 0: never. */
  expiresAt: number;
  data: JsonObject;
}

/** A commit that does not continue the history of this database. */
export class DoesNotFit extends Error {
  constructor(
    readonly seq: number,
    problem: string,
  ) {
    super(`Commit ${seq} of the leader does not fit here: ${problem}`);
  }
}

/**
 * Applies a commit of the leader as one commit of this database, with the same number, times and
 * chain hash. Resolves when it is on disk. Calls are executed in order, many per flush; a commit
 * that does not follow the last one, or has another chain hash than the leader's, is rejected
 * completely.
 */
export function applyCommit(core: Core, incoming: IncomingCommit): Promise<void> {
  const images = incoming.changes.map(({ id, after }) => {
    if (!after) return undefined;
    const { key, rev, createdAt, updatedAt, expiresAt, data } = after;
    const hash = contentHash(data);
    const bytes = encodeRecord(
      { key, rev, createdAt, updatedAt, expiresAt, seq: incoming.seq, contentHash: hash },
      core.codec.encode(data),
    );
    return new RecordImage(id, bytes, bytes.length, core.codec).withData(data);
  });
  return core.writer.submit(() => applyNow(core, incoming, images));
}

function applyNow(
  core: Core,
  incoming: IncomingCommit,
  images: readonly (RecordImage | undefined)[],
): void {
  const { seq, at, epoch, chain, leaderSeq } = incoming;
  const last = core.state.seq;
  if (seq !== last + 1) throw new DoesNotFit(seq, `the last one is ${last}`);
  const moves = incoming.changes.map((change, i) => {
    const collection = core.collectionNow(change.collection);
    const before = core.view().record(collection.id, change.id);
    if (Boolean(before) === (change.op === 'insert')) {
      throw new DoesNotFit(seq, `${change.op} of ${change.collection}/${change.id}`);
    }
    return { op: change.op, collection, id: change.id, before, after: images[i] };
  });
  const changes: Change[] = moves.map(({ op, collection, id, before, after }) => {
    return { op, collection: collection.id, id, before, after };
  });
  const nameOf = (id: number) => core.catalog.byId(id).name;
  const computed = chainAfter(core.state.chain, { seq, epoch, changes }, nameOf);
  if (!sameHash(computed, chain)) throw new DoesNotFit(seq, 'the chain breaks');
  moveImages(core, moves);
  core.writer.appendCommit(encodeCommit({ seq, at, epoch, chain, changes }));
  for (const result of incoming.results ?? []) {
    if (!storeLeaderResult(core, result, changes)) {
      throw new DoesNotFit(seq, `the result of request ${result.key.toString()}`);
    }
  }
  if (leaderSeq > seq) noteLeaderSeq(core, leaderSeq, epoch);
  const state = afterCommit(core.state, seq, chain);
  core.writer.state = { ...state, epoch: Math.max(epoch, state.epoch), commitEpoch: epoch };
}

/**
 * Appends a commit without changes, the first one of a leader's epoch. Once enough followers have
 * it, their histories are newer than every history of an earlier epoch. Only inside a job.
 */
export function appendEpochMarker(core: Core): number {
  const { state, clock } = core;
  const seq = state.seq + 1;
  const { epoch } = state;
  const changes: Change[] = [];
  const chain = chainAfter(state.chain, { seq, epoch, changes }, () => '');
  core.writer.appendCommit(encodeCommit({ seq, at: clock.now(), epoch, chain, changes }));
  core.writer.state = afterCommit(state, seq, chain);
  return seq;
}

/**
 * Creates a store from a backup, beside the current store. It keeps the lineage of the backup.
 * Removed again when the backup is incomplete.
 */
export async function fillStore(
  directory: string,
  name: string,
  parts: AsyncIterable<BackupPart>,
  source: string,
  options: CoreOptions,
): Promise<BackupHeader> {
  removeStore(directory, name);
  const tables = new Tables(join(directory, name));
  let core: Core | undefined;
  let isWhole = false;
  try {
    await openFormat(tables, { ...options, files: nodeFiles });
    core = new Core(tables, undefined, options);
    const statements = readBackup(parts, source);
    const { header } = await applyBackup(core, statements, source, { keepLineage: true });
    isWhole = true;
    return header;
  } finally {
    if (core) await core.close(new Error('The copy is over'));
    else await tables.close();
    if (!isWhole) removeStore(directory, name);
  }
}
