import type { Core } from '../../engine/core.js';
import { lineageOf } from '../../engine/format.js';
import { emptyHash, hashToBigInt, type Hash64 } from '../../engine/hash.js';
import type { Role } from '../service/replication.js';

/** What a node says of itself to another one. */
export interface PeerFields {
  nodeId: string;
  role: Role;
  epoch: bigint;
  ackedSeq: bigint;
  chainHash: bigint;
  lineageId: string;
  address: string;
}

/** Who this node is, whatever its place. */
export interface Identity {
  nodeId: string;
  /** gRPC address at which others reach it; known once it listens. */
  address: string;
}

/** What the node says when all its commits are meant, or when only those up to `at` are. */
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

/** What a follower says that has nothing yet: no history that could differ. */
export function describeNewcomer({ nodeId, address }: Identity): PeerFields {
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
