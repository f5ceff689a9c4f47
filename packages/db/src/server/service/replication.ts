import type { Peer } from '@millrace/contract/db';
import type { CallContext } from './call.js';

export type Role = 'leader' | 'follower' | 'fenced';

/** What a node says of its place among the nodes of a replicated database. Times are epoch ms. */
export interface ReplicationState {
  role: Role;
  state: 'leading' | 'bootstrapping' | 'streaming' | 'disconnected' | 'diverged' | 'fenced';
  /** gRPC address of the leader; "" on the leader itself. */
  leaderAddress: string;
  /** The leader's last commit, as last heard. */
  leaderSeq: number;
  lag: number;
  /** undefined: not known. */
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
  /** How many commits of the old leader were missing, as far as this node knew. */
  lag: number;
}

/** The calls that nodes make among themselves. */
export type PeerCall = 'Watch' | 'Backup' | 'ReplicationStatus';

/** What the service asks of replication. */
export interface Replication {
  /** Refuses READ_ONLY_REPLICA or FENCED where this node takes no writes. */
  checkWritable(): void;
  /**
   * Resolves when enough followers have the commit on their disks, refuses NOT_ENOUGH_ACKS when
   * they do not in time. undefined: nothing to wait for.
   */
  confirmed(seq: number, context: CallContext): Promise<void> | undefined;
  /**
   * Another node speaks in a call. Refuses FENCED, NOT_LEADER, DIVERGED or LINEAGE_MISMATCH.
   * Whatever it notes for as long as the call lasts ends with the context's signal. A promise is
   * of what must be on disk before the call is answered.
   */
  meet(peer: Peer, call: PeerCall, context: CallContext): Promise<void> | undefined;
  promote(ask: { force: boolean; maxLag: number }): Promise<Promotion>;
  state(): ReplicationState;
  stop(): Promise<void>;
}
