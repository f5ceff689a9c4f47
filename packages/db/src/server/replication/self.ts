import type { Core } from '@millrace/engine/core/core';
import { lineageOf } from '@millrace/engine/storage/file/state';
import { emptyHash, hashToBigInt, type Hash64 } from '@millrace/engine/value/hash';
import type { Role } from '../service/replication.js';

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
