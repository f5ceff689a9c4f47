/** Records and related objects as JSON, in the shapes of the REST API. */
import type { AggregateResult, PlanReport, StoredRecord, WatchMessage } from '@millrace/db';
import type { CompactionStatus, DatabaseStatus } from '@millrace/db/client';

export function recordJson(record: StoredRecord<object>) {
  return {
    id: record.id,
    key: record.key,
    rev: record.rev,
    data: record.data,
    created_at: record.createdAt.toISOString(),
    updated_at: record.updatedAt.toISOString(),
    seq: record.seq,
    ...(record.expiresAt ? { expires_at: record.expiresAt.toISOString() } : {}),
    ...(record.score === undefined ? {} : { score: record.score }),
    ...(record.highlights ? { highlights: record.highlights } : {}),
  };
}

export function planJson(plan: PlanReport) {
  return {
    index: plan.index,
    rows_scanned: plan.rowsScanned,
    rows_returned: plan.rowsReturned,
    full_scan: plan.fullScan,
    sorted_in_memory: plan.sortedInMemory,
    elapsed_ms: plan.elapsedMs,
    ...(plan.note === undefined ? {} : { note: plan.note }),
  };
}

export function aggregateJson(result: AggregateResult & { readSeq: number }, explain: boolean) {
  const { groups, plan, readSeq } = result;
  const shown = groups.map(({ key, count, values }) => ({ key, count, values }));
  return { groups: shown, read_seq: readSeq, ...(explain ? { plan: planJson(plan) } : {}) };
}

export function watchJson(message: WatchMessage) {
  return {
    kind: `WATCH_KIND_${message.kind.toUpperCase()}`,
    seq: message.seq,
    epoch: message.epoch,
    ...(message.committedAt ? { committed_at: message.committedAt.toISOString() } : {}),
    changes: message.changes.map(({ op, collection, record, before, entered, left }) => ({
      op: `CHANGE_OP_${op.toUpperCase()}`,
      collection,
      record: 'data' in record ? recordJson(record) : record,
      ...(before ? { before: recordJson(before) } : {}),
      entered,
      left,
    })),
    resume_token: message.resumeToken,
    leader_seq: message.leaderSeq,
  };
}

export function statusJson(status: DatabaseStatus) {
  return {
    role: status.role,
    state: status.state,
    epoch: status.epoch,
    seq: status.seq,
    durable_seq: status.durableSeq,
    oldest_seq: status.oldestSeq,
    lineage_id: status.lineageId,
    node_id: status.nodeId,
    version: status.version,
    durability: status.durability,
    auth: status.auth,
    min_acks: status.minAcks,
    leader_address: status.leaderAddress,
    leader_seq: status.leaderSeq,
    lag: status.lag,
    ...(status.lagMs === undefined ? {} : { lag_time: secondsText(status.lagMs) }),
    followers: status.followers.map((follower) => ({
      follower_id: follower.followerId,
      acked_seq: follower.ackedSeq,
      lag: follower.lag,
      ...(follower.connectedAt ? { connected_at: follower.connectedAt.toISOString() } : {}),
      ...(follower.lastAckAt ? { last_ack_at: follower.lastAckAt.toISOString() } : {}),
      address: follower.address,
    })),
    saved_tails: status.savedTails.map((tail) => ({
      file: tail.file,
      first_seq: tail.firstSeq,
      last_seq: tail.lastSeq,
      epoch: tail.epoch,
      saved_at: tail.savedAt.toISOString(),
    })),
    collections: status.collections.map(collectionJson),
    ...(status.cluster ? { cluster: clusterJson(status.cluster) } : {}),
    ...(status.compaction ? { compaction: compactionJson(status.compaction) } : {}),
  };
}

function compactionJson({ stage, rows, totalRows, elapsedMs }: CompactionStatus) {
  return { stage, rows, total_rows: totalRows, elapsed: secondsText(elapsedMs) };
}

function clusterJson(cluster: NonNullable<DatabaseStatus['cluster']>) {
  return {
    name: cluster.name,
    leader_id: cluster.leaderId,
    leader_address: cluster.leaderAddress,
    problem: cluster.problem,
    lease_remaining: secondsText(cluster.leaseRemainingMs),
    members: cluster.members.map(({ nodeId, address, running }) => ({
      node_id: nodeId,
      address,
      running,
    })),
    loss_window: cluster.lossWindow,
  };
}

export function collectionJson(collection: DatabaseStatus['collections'][number]) {
  return {
    name: collection.name,
    records: collection.records,
    indexes: collection.indexes,
    ...(collection.defaultTtlMs > 0 ? { default_ttl: secondsText(collection.defaultTtlMs) } : {}),
  };
}

/** `0.250s`, the protobuf JSON form of a duration. */
export function secondsText(durationMs: number): string {
  const whole = Math.round(durationMs);
  return whole % 1000 === 0 ? `${whole / 1000}s` : `${(whole / 1000).toFixed(3)}s`;
}
