import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  Database,
  type ClusterStatus as ClusterMessage,
  type CollectionStatus as CollectionMessage,
  type CompactionStatus as CompactionMessage,
  type FollowerStatus as FollowerMessage,
  type IndexStatus as IndexMessage,
  type ReplicationStatusResponse,
} from '@millrace/contract/db';
import { dateOf } from './records.js';
import type { CallOptions, Session } from './session.js';

/** Status of a node; the contract describes each field. */
export interface DatabaseStatus {
  role: string;
  state: string;
  epoch: number;
  seq: number;
  durableSeq: number;
  oldestSeq: number;
  lineageId: string;
  nodeId: string;
  version: string;
  durability: string;
  /** `keys`, or `none` where every local user has full access. */
  auth: string;
  minAcks: number;
  leaderAddress: string;
  leaderSeq: number;
  /** In commits. */
  lag: number;
  /** Absent if unknown. */
  lagMs?: number;
  followers: FollowerStatus[];
  savedTails: SavedTail[];
  /** By name; empty with `includeCollections: false`, which is faster: records are counted. */
  collections: CollectionStatus[];
  /** Absent without a cluster. */
  cluster?: ClusterStatus;
  /** Absent unless one runs. */
  compaction?: CompactionStatus;
}

/** A compaction in progress: every row is copied, then compared. */
export interface CompactionStatus {
  stage: string;
  /** Rows copied and rows compared. */
  rows: number;
  totalRows: number;
  elapsedMs: number;
}

export interface ClusterStatus {
  name: string;
  leaderId: string;
  leaderAddress: string;
  /** Why there is no leader; "": all is well. */
  problem: string;
  leaseRemainingMs: number;
  members: { nodeId: string; address: string; running: boolean }[];
  /** Commits that would be lost with the leader; only with min_acks 0. */
  lossWindow: number;
}

export interface FollowerStatus {
  followerId: string;
  ackedSeq: number;
  lag: number;
  connectedAt?: Date;
  lastAckAt?: Date;
  address: string;
}

export interface SavedTail {
  file: string;
  firstSeq: number;
  lastSeq: number;
  epoch: number;
  savedAt: Date;
}

export interface CollectionStatus {
  name: string;
  records: number;
  indexes: IndexStatus[];
  defaultTtlMs: number;
}

export interface IndexStatus {
  name: string;
  fields: string[];
  unique: boolean;
  sparse: boolean;
  /** Absent: text as it is. */
  collation?: 'ci';
  /** The condition of a partial index. */
  where?: object;
  /** Absent: an index of values. */
  kind?: 'search' | 'vector';
  dims?: number;
  metric?: 'cosine' | 'dot' | 'l2';
  /** Absent: a number of a vector takes four bytes. */
  storage?: 'int8';
  language?: string;
  weights?: Record<string, number>;
  state: string;
}

export async function status(
  session: Session,
  options: { includeCollections?: boolean | undefined } & CallOptions = {},
): Promise<DatabaseStatus> {
  const request = { includeCollections: options.includeCollections ?? true };
  return toStatus(await session.call(Database.method.replicationStatus, request, options));
}

function toStatus(reply: ReplicationStatusResponse): DatabaseStatus {
  const { role, state, lineageId, nodeId, version, durability, minAcks, leaderAddress } = reply;
  return {
    role,
    state,
    epoch: Number(reply.epoch),
    seq: Number(reply.seq),
    durableSeq: Number(reply.durableSeq),
    oldestSeq: Number(reply.oldestSeq),
    lineageId,
    nodeId,
    version,
    durability,
    auth: reply.auth,
    minAcks,
    leaderAddress,
    leaderSeq: Number(reply.leaderSeq),
    lag: Number(reply.lag),
    ...(reply.lagTime ? { lagMs: durationMs(reply.lagTime) } : {}),
    followers: reply.followers.map(toFollower),
    savedTails: reply.savedTails.map(({ file, firstSeq, lastSeq, epoch, savedAt }) => ({
      file,
      firstSeq: Number(firstSeq),
      lastSeq: Number(lastSeq),
      epoch: Number(epoch),
      savedAt: dateOf(savedAt),
    })),
    collections: reply.collections.map(toCollection),
    ...(reply.cluster ? { cluster: toCluster(reply.cluster) } : {}),
    ...(reply.compaction ? { compaction: toCompaction(reply.compaction) } : {}),
  };
}

function toCluster(cluster: ClusterMessage): ClusterStatus {
  const { name, leaderId, leaderAddress, problem, leaseRemaining, members, lossWindow } = cluster;
  return {
    name,
    leaderId,
    leaderAddress,
    problem,
    leaseRemainingMs: leaseRemaining ? durationMs(leaseRemaining) : 0,
    members: members.map(({ nodeId, address, running }) => ({ nodeId, address, running })),
    lossWindow: Number(lossWindow),
  };
}

function toCompaction(compaction: CompactionMessage): CompactionStatus {
  const { stage, rows, totalRows, elapsed } = compaction;
  return {
    stage,
    rows: Number(rows),
    totalRows: Number(totalRows),
    elapsedMs: elapsed ? durationMs(elapsed) : 0,
  };
}

function toFollower(follower: FollowerMessage): FollowerStatus {
  const { followerId, ackedSeq, lag, connectedAt, lastAckAt, address } = follower;
  return {
    followerId,
    ackedSeq: Number(ackedSeq),
    lag: Number(lag),
    ...(connectedAt ? { connectedAt: dateOf(connectedAt) } : {}),
    ...(lastAckAt ? { lastAckAt: dateOf(lastAckAt) } : {}),
    address,
  };
}

function toCollection({ name, records, indexes, defaultTtl }: CollectionMessage): CollectionStatus {
  return {
    name,
    records: Number(records),
    indexes: indexes.map(toIndex),
    defaultTtlMs: defaultTtl ? durationMs(defaultTtl) : 0,
  };
}

export function toIndex(message: IndexMessage): IndexStatus {
  const { name, fields, unique, sparse, state, collation, where, kind, language, weights } =
    message;
  return {
    name,
    fields,
    unique,
    sparse,
    ...(collation === 'ci' ? { collation } : {}),
    ...(where === undefined ? {} : { where: JSON.parse(where) as object }),
    ...(kind === 'search' || kind === 'vector' ? { kind } : {}),
    ...(message.dims === undefined ? {} : { dims: message.dims }),
    ...(message.metric === undefined ? {} : { metric: message.metric as 'cosine' }),
    ...(message.storage === undefined ? {} : { storage: message.storage as 'int8' }),
    ...(language === undefined ? {} : { language }),
    ...(weights === undefined ? {} : { weights: weights as Record<string, number> }),
    state,
  };
}
