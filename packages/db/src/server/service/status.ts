import { create } from '@bufbuild/protobuf';
import {
  ClusterMemberSchema,
  ClusterStatusSchema,
  CollectionStatusSchema,
  CompactionStatusSchema,
  FollowerStatusSchema,
  ReplicationStatusResponseSchema,
  SavedTailSchema,
  type CollectionStatus,
} from '@millrace/contract/db';
import type { CollectionInfo } from '@millrace/engine/core/core';
import type { CompactProgress } from '@millrace/engine/maintain/compact/compact';
import { checkFind } from '@millrace/engine/query/query';
import { RecordList } from '@millrace/engine/query/page';
import type { CallContext, UnaryMethods } from './call.js';
import { indexStatus } from './catalog.js';
import type { ServiceParts } from './parts.js';
import type {
  ClusterState,
  FollowerState,
  ReplicationState,
  SavedTailState,
} from './replication.js';
import { stoppableFind } from './queries.js';
import { duration, timestamp } from './records.js';

export function statusMethod(parts: ServiceParts): UnaryMethods['ReplicationStatus'] {
  return async (request, context) => {
    if (request.peer)
      await parts.replication.handlePeer(request.peer, 'ReplicationStatus', context);
    const { handle } = parts;
    const showsCollections = request.includeCollections && handle.isServed;
    const collections = showsCollections ? await collectionsOf(parts, context) : [];
    const { core } = handle.current;
    const place = parts.replication.state();
    const { state, durable } = core;
    return create(ReplicationStatusResponseSchema, {
      role: place.role,
      epoch: BigInt(state.epoch),
      seq: BigInt(state.seq),
      durableSeq: BigInt(durable.seq),
      oldestSeq: BigInt(durable.oldestSeq),
      lineageId: handle.lineageId,
      leaderAddress: place.leaderAddress,
      leaderSeq: BigInt(place.leaderSeq),
      lag: BigInt(place.lag),
      ...(place.lagMs !== undefined && { lagTime: duration(place.lagMs) }),
      state: place.state,
      followers: place.followers.map((follower) => followerStatus(follower, durable.seq)),
      durability: core.options.durability === 'relaxed' ? 'relaxed' : 'full',
      nodeId: parts.nodeId,
      version: parts.version,
      minAcks: place.minAcks,
      savedTails: place.savedTails.map(savedTail),
      collections,
      auth: parts.auth,
      ...clusterMember(parts.cluster(), place, durable.seq),
      ...compactionMember(handle.current.compaction),
    });
  };
}

function clusterMember(
  cluster: ClusterState | undefined,
  { role, minAcks, followers }: ReplicationState,
  seq: number,
) {
  if (!cluster) return {};
  const { name, leader, problem, leaseRemainingMs, members } = cluster;
  const acked = Math.max(0, ...followers.map(({ ackedSeq }) => ackedSeq));
  const hasWindow = role === 'leader' && minAcks === 0;
  return {
    cluster: create(ClusterStatusSchema, {
      name,
      leaderId: leader?.nodeId ?? '',
      leaderAddress: leader?.address ?? '',
      problem,
      leaseRemaining: duration(leaseRemainingMs),
      members: members.map(({ nodeId, address, isRunning }) =>
        create(ClusterMemberSchema, { nodeId, address, running: isRunning }),
      ),
      lossWindow: BigInt(hasWindow ? Math.max(0, seq - acked) : 0),
    }),
  };
}

function compactionMember(progress: CompactProgress | undefined) {
  if (!progress) return {};
  const { stage, rows, totalRows, elapsedMs } = progress;
  return {
    compaction: create(CompactionStatusSchema, {
      stage,
      rows: BigInt(rows),
      totalRows: BigInt(totalRows),
      elapsed: duration(elapsedMs),
    }),
  };
}

function followerStatus(follower: FollowerState, seq: number) {
  const { followerId, ackedSeq, connectedAt, lastAckAt, address } = follower;
  return create(FollowerStatusSchema, {
    followerId,
    ackedSeq: BigInt(ackedSeq),
    lag: BigInt(Math.max(0, seq - ackedSeq)),
    ...(connectedAt !== undefined && { connectedAt: timestamp(connectedAt) }),
    ...(lastAckAt !== undefined && { lastAckAt: timestamp(lastAckAt) }),
    address,
  });
}

function savedTail({ file, firstSeq, lastSeq, epoch, savedAt }: SavedTailState) {
  return create(SavedTailSchema, {
    file,
    firstSeq: BigInt(firstSeq),
    lastSeq: BigInt(lastSeq),
    epoch: BigInt(epoch),
    savedAt: timestamp(savedAt),
  });
}

async function collectionsOf(
  parts: ServiceParts,
  context: CallContext,
): Promise<CollectionStatus[]> {
  const infos = [...parts.database.catalog.collections()].sort((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const statuses: CollectionStatus[] = [];
  for (const info of infos) {
    statuses.push(
      create(CollectionStatusSchema, {
        name: info.name,
        records: BigInt(await countRecords(parts, info, context)),
        indexes: info.indexes.map(indexStatus),
        ...(info.defaultTtlMs > 0 && { defaultTtl: duration(info.defaultTtlMs) }),
      }),
    );
  }
  return statuses;
}

async function countRecords(
  parts: ServiceParts,
  { name }: CollectionInfo,
  context: CallContext,
): Promise<number> {
  const place = { collection: name, transaction: undefined, caller: context };
  const query = checkFind({ countOnly: true });
  const sink = new RecordList(undefined);
  for await (const { end } of stoppableFind(parts.database.core, place, query, sink)) {
    if (end) return end.count ?? 0;
  }
  return 0;
}
