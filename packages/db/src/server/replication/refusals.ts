import { refuse } from '@millrace/engine/value/documents';
import type { Peer } from '@millrace/contract/db';
import type { Database } from '@millrace/engine/api/database';
import { hashToBigInt, emptyHash, type Hash64 } from '@millrace/engine/value/bytes';
import { badField } from '../service/records.js';
import type { Core } from '@millrace/engine/core/core';
import { lineageOf } from '@millrace/engine/storage/file/tables';
import type { Role } from '../service/replication.js';

export function readOnlyReplica(leader: string): Error {
  return refuse(
    'READ_ONLY_REPLICA',
    `This node is a follower and accepts no writes. Send them to its leader, ${leader}.`,
    { leader },
  );
}

export function fenced(epoch: number, leader: string): Error {
  const where = leader === '' ? '' : ` at ${leader}`;
  return refuse(
    'FENCED',
    `This node no longer accepts writes: another leader${where} has epoch ${epoch}. ` +
      'Restart it with follow set to that leader.',
    { epoch: String(epoch), leader },
  );
}

/** Refuses a write on a node of a cluster that does not lead at present. */
export function notLeading(epoch: number, leader: string): Error {
  const where = leader === '' ? 'No leader is known yet; retry later.' : `The leader is ${leader}.`;
  return refuse('FENCED', `This node does not lead its cluster and accepts no writes. ${where}`, {
    epoch: String(epoch),
    leader,
  });
}

/** Refuses a write on a leader that could not renew its lease. */
export function leaseExpired(epoch: number): Error {
  return refuse(
    'FENCED',
    'This node leads the cluster but could not renew its lease in etcd, so another node may lead ' +
      'soon. Retry later, or check etcd.',
    { epoch: String(epoch), leader: '' },
  );
}

/** A write that is on disk but must not be acknowledged, because the lease has expired. */
export function unconfirmed(seq: number, minAcks: number): Error {
  return refuse(
    'NOT_ENOUGH_ACKS',
    `The node has the write on disk as commit ${seq}, but its lease expired before it could ` +
      'acknowledge it. Retry it with the same request_id.',
    { min_acks: String(minAcks), acks: '0' },
  );
}

export function etcdDecides(epoch: number, leader: string): Error {
  return refuse(
    'FENCED',
    'The leader of this cluster is decided by etcd, so no node can be promoted by hand. To move ' +
      'the leader, restart the one that leads.',
    { epoch: String(epoch), leader },
  );
}

/** Refuses a promotion that would create a second leader. */
export function newerLeader(epoch: number, leader: string): Error {
  const where = leader === '' ? '' : ` at ${leader}`;
  return refuse(
    'FENCED',
    `Another node${where} was promoted in epoch ${epoch}, and this one may lack its commits. ` +
      'Follow that leader, or promote this node with force.',
    { epoch: String(epoch), leader },
  );
}

export function notLeader(leader: string): Error {
  return refuse('NOT_LEADER', `This node does not lead. Follow its leader, ${leader}.`, { leader });
}

export function lineageMismatch(lineageId: string): Error {
  return refuse(
    'LINEAGE_MISMATCH',
    `This is another database (lineage ${lineageId}). A follower of it needs an empty data ` +
      'directory.',
    { lineage_id: lineageId },
  );
}

function diverged(ackedSeq: number, afterSeq: number): Error {
  return refuse(
    'DIVERGED',
    `Commit ${ackedSeq} of the follower is not in the history of this leader. It must save ` +
      `and remove its commits after ${afterSeq}, or more.`,
    { diverged_after_seq: String(afterSeq) },
  );
}

export function replicaLag(lag: number): Error {
  return refuse(
    'REPLICA_LAG',
    `This follower lacks ${lag} commits of its leader. Wait until it has them, or promote with ` +
      'force and lose them.',
    { lag: String(lag) },
  );
}

export function noFirstCopy(): Error {
  return refuse('NOT_READY', 'This follower has no first copy of its leader yet. Retry later.');
}

export function switchingCopy(): Error {
  return refuse(
    'NOT_READY',
    'This follower is switching to a new copy of its leader. Retry later.',
  );
}

export function notEnoughAcks(seq: number, minAcks: number, acks: number): Error {
  return refuse(
    'NOT_ENOUGH_ACKS',
    `The leader has the write on disk as commit ${seq}, but only ${acks} of ${minAcks} required ` +
      'followers confirmed it in time. Retry it with the same request_id.',
    { min_acks: String(minAcks), acks: String(acks) },
  );
}

// Limit of the log format.
const maxEpoch = 2n ** 32n - 2n;
const maxNameLength = 256;

/** Refuses invalid peer information. */
export function checkPeer({ nodeId, address, epoch }: Peer): void {
  if (nodeId === '' || nodeId.length > maxNameLength) {
    throw badField('peer.node_id', `must have 1 to ${maxNameLength} characters`);
  }
  if (address.length > maxNameLength) {
    throw badField('peer.address', `must have ${maxNameLength} characters at most`);
  }
  if (epoch > maxEpoch) throw badField('peer.epoch', 'is larger than any epoch');
}

/** Refuses DIVERGED when the peer's last commit is not in this database's history. */
export function checkHistory({ core, watches }: Database, peer: Peer): void {
  // The peer has no history yet.
  if (peer.lineageId === '') return;
  const { seq, oldestSeq } = core.durable;
  const acked = Number(peer.ackedSeq);
  if (acked > seq) throw diverged(acked, seq);
  // Older than the log; its watch will be refused with WATCH_COMPACTED.
  if (acked < oldestSeq - 1) return;
  if (hashToBigInt(watches.chainAt(acked)) !== peer.chainHash) throw diverged(acked, acked - 1);
}

/** Peer information that a node sends to another. */
export interface PeerFields {
  nodeId: string;
  role: Role;
  epoch: bigint;
  ackedSeq: bigint;
  chainHash: bigint;
  lineageId: string;
  address: string;
}

/** Identity of this node, independent of its role. */
export interface Identity {
  nodeId: string;
  /** Public gRPC address; known once the server listens. */
  address: string;
}

/** Peer information with all commits, or only those up to `at`. */
export function describeSelf(
  { nodeId, address }: Identity,
  core: Core,
  role: Role,
  at: { seq: number; chain: Hash64 } = core.durable,
): PeerFields {
  return {
    nodeId,
    role,
    epoch: BigInt(core.state.epoch),
    ackedSeq: BigInt(at.seq),
    chainHash: hashToBigInt(at.chain),
    lineageId: lineageOf(core.tables),
    address,
  };
}

/** Peer information of a follower without any history. */
export function describeEmptyNode({ nodeId, address }: Identity): PeerFields {
  return {
    nodeId,
    role: 'follower',
    epoch: 0n,
    ackedSeq: 0n,
    chainHash: hashToBigInt(emptyHash),
    lineageId: '',
    address,
  };
}
