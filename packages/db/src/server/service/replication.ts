import type { Peer } from '@millrace/contract/db';
import type { CallContext } from './call.js';

export type Role = 'leader' | 'follower' | 'fenced';

export type NodeStage =
  | 'leading'
  | 'suspended'
  | 'electing'
  | 'bootstrapping'
  | 'streaming'
  | 'disconnected'
  | 'diverged'
  | 'fenced';

/** Replication state of a node. Times are epoch milliseconds. */
export interface ReplicationState {
  role: Role;
  state: NodeStage;
  /** gRPC address of the leader; "" on the leader itself. */
  leaderAddress: string;
  /** The leader's last commit known here. */
  leaderSeq: number;
  lag: number;
  /** Undefined: unknown. */
  lagMs: number | undefined;
  minAcks: number;
  followers: readonly FollowerState[];
  savedTails: readonly SavedTailState[];
}

export interface FollowerState {
  followerId: string;
  ackedSeq: number;
  connectedAt: number | undefined;
  lastAckAt: number | undefined;
  address: string;
}

export interface SavedTailState {
  file: string;
  firstSeq: number;
  lastSeq: number;
  epoch: number;
  savedAt: number;
}

export interface Promotion {
  role: Role;
  /** Commits of the old leader that were missing here, as far as known. */
  lag: number;
}

/** What this node knows about its cluster. */
export interface ClusterState {
  name: string;
  leader: { nodeId: string; address: string; epoch: number; isReady: boolean } | undefined;
  members: readonly { nodeId: string; address: string; isRunning: boolean }[];
  /** Milliseconds until this node stops accepting writes unless it renews its lease. */
  leaseRemainingMs: number;
  /** Why there is no leader, or why etcd cannot be used; "": all is well. */
  problem: string;
}

/** Calls between nodes. */
export type PeerCall = 'Watch' | 'Backup' | 'ReplicationStatus';

/** What the service needs from replication. */
export interface Replication {
  /** Refuses READ_ONLY_REPLICA or FENCED when this node accepts no writes. */
  checkWritable(): void;
  /**
   * Resolves when enough followers have the commit on disk; refuses NOT_ENOUGH_ACKS on timeout.
   * Undefined: nothing to wait for.
   */
  confirmed(seq: number, context: CallContext): Promise<void> | undefined;
  /**
   * Handles the peer information in a call of another node. Refuses FENCED, NOT_LEADER, DIVERGED or
   * LINEAGE_MISMATCH. State that belongs to the call ends with the context's signal. A returned
   * promise must resolve before the call is answered.
   */
  handlePeer(peer: Peer, call: PeerCall, context: CallContext): Promise<void> | undefined;
  promote(options: { force: boolean; maxLag: number }): Promise<Promotion>;
  state(): ReplicationState;
  stop(): Promise<void>;
}
