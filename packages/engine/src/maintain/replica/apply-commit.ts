import { chainAfter, encodeCommit, type Change, type ChangeOp } from '../../format/changes.js';
import { contentHash } from '../../format/content-hash.js';
import type { Core } from '../../core/core.js';
import type { JsonObject } from '../../value/documents.js';
import type { Hash64 } from '../../value/hash.js';
import { encodeRecord, RecordImage } from '../../format/record.js';
import type { RequestResult } from '../../format/request-results.js';
import { storeLeaderResult } from '../../write/requests.js';
import { afterCommit } from '../../storage/file/state.js';
import { sameHash } from '../../watch/token.js';
import { noteLeaderSeq } from './leader-seq.js';
import { moveImages } from './move-images.js';

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

export interface IncomingRecord {
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
