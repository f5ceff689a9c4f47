import type { Peer } from '@millrace/contract/db';
import type { World } from '@millrace/kit/world';
import type { TlsOptions } from '../../client/transport.js';
import type { Core } from '@millrace/engine/core/core';
import { refuse } from '@millrace/engine/value/documents';
import type { CallContext } from '../service/call.js';
import type {
  PeerCall,
  Promotion,
  Replication,
  ReplicationState,
  Role,
  SavedTailState,
} from '../service/replication.js';
import { Following } from './following.js';
import { Followers, type DatabaseHandle } from './followers.js';
import { LeaderLink, LeaderNotifier, type LeaderReply } from './leader-link.js';
import {
  checkHistory,
  checkPeer,
  etcdDecides,
  fenced,
  leaseExpired,
  lineageMismatch,
  newerLeader,
  noFirstCopy,
  notLeader,
  notLeading,
  readOnlyReplica,
  replicaLag,
  unconfirmed,
  describeSelf,
  type Identity,
} from './refusals.js';
import {
  readNodeState,
  roleAtStart,
  roleInCluster,
  startEpoch,
  writeNodeState,
  type NodeState,
} from './node-state.js';
import { savedTails } from './tail-file.js';

/** The leader of an epoch. Empty strings mean unknown. */
interface NewerLeader {
  epoch: number;
  address: string;
  nodeId: string;
}

export type NodeEvent = 'copies' | 'streams' | 'tails';

export interface NodeOptions extends World {
  handle: DatabaseHandle;
  nodeId: string;
  /** Address of the leader to follow; undefined: none. */
  follow: string | undefined;
  followKey: string | undefined;
  tls: TlsOptions;
  minAcks: number;
  count: (what: NodeEvent) => void;
  /** In a cluster: whether the lease still allows this node to lead. */
  lease?: { isValid(): boolean } | undefined;
}

/** The last commit of a node. Of two nodes the one with the higher epoch, then seq, is ahead. */
export interface Position {
  /** Epoch of the leader that made the last commit. */
  epoch: number;
  seq: number;
  /** "": the node has no history yet. */
  lineageId: string;
}

/** Why a store accepts no local commits at startup; undefined: it accepts them. */
export function sealOf(
  core: Core,
  follow: string | undefined,
  isClustered = false,
): (() => Error) | undefined {
  const nodeState = readNodeState(core);
  if (isClustered) return () => notLeading(core.state.epoch, '');
  const role = roleAtStart(nodeState, follow);
  if (role === 'leader') return undefined;
  return role === 'follower'
    ? () => readOnlyReplica(follow ?? '')
    : () => fenced(core.state.epoch, nodeState.leader);
}

/**
 * Role of this node (leader, follower or fenced) and its transitions. A new role is saved before it
 * takes effect, except fencing, which takes effect at once and is confirmed when it is on disk.
 */
export class Node implements Replication {
  readonly #identity: Identity;
  readonly #followers: Followers;
  #role: Role;
  #following: Following | undefined;
  #notifier: LeaderNotifier | undefined;
  #isPromoting = false;
  /** The newer leader that is being saved. */
  #fencer: NewerLeader | undefined;
  #tails: readonly SavedTailState[];
  /** Address of the leader to follow; in a cluster it changes. */
  #follow: string | undefined;
  /** First commit of this leader's epoch: nothing is acknowledged before followers have it. */
  #markerSeq = 0;
  #isSuspended = false;

  constructor(private readonly options: NodeOptions) {
    const { handle, nodeId, clock, log, minAcks, follow } = options;
    this.#identity = { nodeId, address: '' };
    this.#followers = new Followers(clock, log, minAcks);
    this.#follow = follow;
    this.#role = options.lease
      ? roleInCluster(this.#nodeState)
      : roleAtStart(this.#nodeState, follow);
    this.#tails = savedTails(handle.current.directory);
    if (options.lease) handle.isServed = this.#core.state.seq > 0;
    else if (this.#role === 'follower') this.#prepareFollowing();
  }

  /**
   * Starts following, or notifying the old leader of a promotion. `address` is the public gRPC
   * address of this node.
   */
  start(address: string): void {
    this.#identity.address = address;
    const { log, follow } = this.options;
    const { epoch, seq } = this.#core.state;
    log.info({ role: this.#role, epoch, seq, ...(follow && { follow }) }, 'node started');
    if (this.#role === 'leader' && follow !== undefined) {
      log.warn({ follow }, 'setting follow ignored: this node was promoted');
    }
    if (this.options.lease) return;
    if (this.#role === 'fenced') {
      const { leader } = this.#nodeState;
      log.warn({ leader }, 'node is fenced: set follow, or promote it with force');
    }
    this.#following?.start();
    if (this.#role === 'leader' && this.#nodeState.untold !== '')
      this.#notifyOldLeader(this.#nodeState.untold);
  }

  async stop(): Promise<void> {
    this.#followers.rejectWaiters();
    await Promise.all([this.#following?.stop(), this.#notifier?.stop()]);
  }

  /** Before shutdown: waits for followers to receive the last commits. */
  async drainFollowers(): Promise<void> {
    if (this.#role === 'leader') await this.#followers.caughtUp(this.#core.durable.seq);
  }

  checkWritable(): void {
    if (this.#role === 'leader' && this.#holdsLease) return;
    throw this.#readOnlyError();
  }

  confirmed(seq: number, context: CallContext): Promise<void> | undefined {
    const { lease, minAcks } = this.options;
    if (lease && (this.#role !== 'leader' || !this.#holdsLease)) throw unconfirmed(seq, minAcks);
    return this.#followers.confirmed(Math.max(seq, this.#markerSeq), context);
  }

  get role(): Role {
    return this.#role;
  }

  get epoch(): number {
    return this.#core.state.epoch;
  }

  /** Whether enough followers have joined the epoch of this leader. */
  get isEpochConfirmed(): boolean {
    return this.#role === 'leader' && this.#followers.safeSeq >= this.#markerSeq;
  }

  /** Whether enough followers have reported within this time. */
  hasRecentAcks(withinMs: number): boolean {
    return this.#followers.hasRecentAcks(withinMs);
  }

  /** Stops accepting writes while the lease is in doubt; reads continue. */
  suspend(): void {
    if (this.#role !== 'leader' || this.#isSuspended) return;
    this.#isSuspended = true;
    this.#core.sealed = () => this.#readOnlyError();
    this.#followers.rejectWaiters();
    this.options.log.warn({ epoch: this.#core.state.epoch }, 'lease expired, writes stopped');
  }

  /** The lease was renewed before another node could lead. */
  resume(): void {
    if (this.#role !== 'leader' || !this.#isSuspended) return;
    this.#isSuspended = false;
    this.#core.sealed = undefined;
    this.options.log.info({ epoch: this.#core.state.epoch }, 'lease renewed, writes resumed');
  }

  /**
   * Neither leads nor follows until the next leader is known. The returned position cannot change
   * before that, and nothing more is acknowledged to the previous leader.
   */
  async standDown(): Promise<Position> {
    const wasLeader = this.#role === 'leader';
    if (wasLeader) this.#role = 'fenced';
    this.#core.sealed = () => this.#readOnlyError();
    this.#isSuspended = false;
    this.#followers.rejectWaiters();
    await this.#following?.stop();
    this.#following = undefined;
    this.#follow = undefined;
    const { handle } = this.options;
    await handle.reopen();
    // Commits that were queued before the seal become part of the position.
    await this.#core.writer.submit(() => undefined);
    const { commitEpoch, seq, epoch } = this.#core.durable;
    if (wasLeader) this.options.log.warn({ epoch, seq }, 'leadership ended');
    return { epoch: commitEpoch, seq, lineageId: seq > 0 ? handle.lineageId : '' };
  }

  /** Follows the leader that the cluster has decided on. */
  async followLeader(address: string): Promise<void> {
    await this.standDown();
    this.#follow = address;
    this.#role = 'follower';
    this.#prepareFollowing();
    this.options.log.info({ follow: address }, 'following the leader of the cluster');
    this.#following?.start();
  }

  /** Leads the given epoch, which no other node has led. */
  async lead(epoch: number): Promise<void> {
    await this.standDown();
    const core = this.#core;
    const leads = { role: 'leader' as const, leader: '', leaderId: this.#identity.nodeId };
    const nodeState = { ...this.#nodeState, ...leads, followed: '', untold: '' };
    this.#markerSeq = await startEpoch(core, nodeState, epoch);
    this.#followers.resetAcks();
    this.#role = 'leader';
    core.sealed = undefined;
    this.options.handle.isServed = true;
    this.options.log.warn({ epoch, seq: core.state.seq }, 'promoted to leader');
  }

  get followers(): Followers {
    return this.#followers;
  }

  state(): ReplicationState {
    const { seq } = this.#core.durable;
    const following = this.#following?.state;
    const common = {
      role: this.#role,
      minAcks: this.#followers.minAcks,
      followers: this.#role === 'leader' ? this.#followers.all : [],
      savedTails: this.#tails,
    };
    if (following) {
      const { stage, leaderSeq, lag, lagMs } = following;
      const leaderAddress = this.#follow ?? '';
      return { ...common, state: stage, leaderAddress, leaderSeq, lag, lagMs };
    }
    const isLeader = this.#role === 'leader';
    const idleState = this.options.lease ? 'electing' : 'fenced';
    return {
      ...common,
      state: !isLeader ? idleState : this.#holdsLease ? 'leading' : 'suspended',
      leaderAddress: isLeader ? '' : this.#newest.address,
      leaderSeq: seq,
      lag: 0,
      lagMs: isLeader ? 0 : undefined,
    };
  }

  handlePeer(peer: Peer, call: PeerCall, context: CallContext): Promise<void> | undefined {
    const { lineageId } = this.options.handle;
    checkPeer(peer);
    if (peer.lineageId !== '' && peer.lineageId !== lineageId) throw lineageMismatch(lineageId);
    // A node without history cannot know a newer leader.
    const epoch = peer.lineageId === '' ? 0 : Number(peer.epoch);
    const isNews = peer.role === 'leader' && call === 'ReplicationStatus';
    if (epoch > this.#newest.epoch && this.#role !== 'follower') {
      const { address, nodeId } = peer;
      const newer = { epoch, address, nodeId };
      const done = this.#fence(peer.role === 'leader' ? newer : { epoch, address: '', nodeId: '' });
      if (isNews) return done;
      return done.then(() => {
        throw this.#readOnlyError();
      });
    }
    if (isNews) return this.#checkRivalLeader(peer, epoch);
    if (this.#role === 'fenced') throw this.#readOnlyError();
    if (this.#role === 'follower') throw notLeader(this.#follow ?? '');
    checkHistory(this.options.handle.current, peer);
    this.#followers.onAck(peer);
    if (call === 'Watch') {
      const { core } = this.options.handle.current;
      this.#followers.onStream(peer, context.signal, (seq) => core.pinLog(seq));
    }
    return undefined;
  }

  /**
   * An epoch has one leader: the first one this node knows. Others are refused. Of two leaders in
   * the same epoch, the one with the lower node id (older data directory) continues.
   */
  #checkRivalLeader({ nodeId, address }: Peer, epoch: number): Promise<void> | undefined {
    const newest = this.#newest;
    const isSame = newest.nodeId === '' || newest.nodeId === nodeId;
    if (epoch !== newest.epoch || isSame) return undefined;
    if (this.#role !== 'leader') throw fenced(epoch, newest.address);
    this.options.log.error({ epoch, other: address }, 'another leader in the same epoch');
    if (nodeId < newest.nodeId) return this.#fence({ epoch, address, nodeId });
    throw fenced(epoch, this.#identity.address);
  }

  async promote(options: { force: boolean; maxLag: number }): Promise<Promotion> {
    if (this.#role === 'leader') return { role: 'leader', lag: 0 };
    if (this.options.lease) throw etcdDecides(this.#core.state.epoch, this.#follow ?? '');
    if (this.#isPromoting) {
      throw refuse(
        'ALREADY_RUNNING',
        'A promotion of this node is already running. Wait for it to end.',
      );
    }
    this.#isPromoting = true;
    try {
      return await this.#promote(options);
    } finally {
      this.#isPromoting = false;
    }
  }

  async #promote(options: { force: boolean; maxLag: number }): Promise<Promotion> {
    const following = this.#following;
    const checkLag = () => {
      const lag = following?.state.lag ?? 0;
      if (lag > options.maxLag && !options.force) throw replicaLag(lag);
      return lag;
    };
    if (!following && !options.force) throw this.#readOnlyError();
    if (following && !following.hasCopy) throw noFirstCopy();
    // Commits of another leader are unknown here and not part of the lag.
    const checkEpoch = () => {
      const { epoch } = this.#core.state;
      if (!following || options.force || this.#nodeState.provenEpoch === epoch) return;
      throw newerLeader(epoch, following.newerLeader);
    };
    checkEpoch();
    checkLag();
    const hasAgreed = (await following?.takeOver()) ?? false;
    checkEpoch();
    checkLag();
    await following?.stop();
    const lag = following?.state.lag ?? 0;
    const core = this.#core;
    const epoch = core.state.epoch + 1;
    const followed = following ? (this.#follow ?? '') : '';
    const untold = hasAgreed ? '' : followed;
    const leads = { role: 'leader' as const, leader: '', leaderId: this.#identity.nodeId };
    await writeNodeState(core, { ...this.#nodeState, ...leads, followed, untold }, epoch);
    this.#following = undefined;
    this.#role = 'leader';
    core.sealed = undefined;
    this.options.log.warn({ epoch, seq: core.state.seq, lag, followed }, 'promoted to leader');
    if (untold !== '') this.#notifyOldLeader(untold);
    return { role: 'leader', lag };
  }

  /**
   * Stops accepting writes at once. Resolves when this is on disk. Then follows the configured
   * leader, unless that one is known not to lead.
   */
  async #fence(newer: NewerLeader, mayFollow = true): Promise<void> {
    const core = this.#core;
    const { epoch, address: leader, nodeId: leaderId } = newer;
    if (this.#role === 'leader') {
      this.options.log.warn({ epoch, leader, seq: core.state.seq }, 'fenced by a newer leader');
    }
    this.#role = 'fenced';
    this.#fencer = newer;
    core.sealed = () => this.#readOnlyError();
    this.#followers.rejectWaiters();
    const nodeState = { ...this.#nodeState, role: 'fenced' as const, leader, leaderId, untold: '' };
    await writeNodeState(core, nodeState, epoch);
    if (this.#fencer === newer) this.#fencer = undefined;
    const notifier = this.#notifier;
    this.#notifier = undefined;
    await notifier?.stop();
    const hasLeader = this.#follow !== undefined;
    if (hasLeader && mayFollow && this.#role === 'fenced') this.#followAgain();
  }

  #followAgain(): void {
    this.#role = 'follower';
    this.#prepareFollowing();
    this.options.log.info({ follow: this.#follow }, 'following resumed');
    this.#following?.start();
  }

  #prepareFollowing(): void {
    const { handle, clock, log, random, count } = this.options;
    this.#following = new Following({
      handle,
      clock,
      log,
      random,
      identity: this.#identity,
      link: this.#link(this.#follow ?? ''),
      count: (what) => {
        count(what);
        if (what === 'tails') this.#tails = savedTails(handle.current.directory);
      },
    });
  }

  #notifyOldLeader(oldLeader: string): void {
    const { clock, log, random } = this.options;
    this.#notifier = new LeaderNotifier({
      clock,
      log,
      random,
      link: this.#link(oldLeader),
      self: () => describeSelf(this.#identity, this.#core, this.#role),
      onReply: (answer) => this.#onOldLeaderReply(oldLeader, answer),
    });
  }

  #onOldLeaderReply(oldLeader: string, { epoch, role, leader, isOther }: LeaderReply): void {
    const { log } = this.options;
    const core = this.#core;
    if (this.#role !== 'leader') return;
    const failed = (error: unknown) => log.error({ err: error }, 'failed to save node state');
    if (isOther) {
      const about = { epoch, other: leader, own_epoch: core.state.epoch };
      log.error(about, 'another node was promoted, fencing this one');
      this.#fence({ epoch, address: leader, nodeId: '' }, role === 'leader').catch(failed);
      return;
    }
    log.info({ old_leader: oldLeader, role }, 'old leader notified');
    writeNodeState(core, { ...this.#nodeState, untold: '' }).catch(failed);
  }

  #link(url: string): LeaderLink {
    const { followKey: key, tls, clock, random } = this.options;
    return new LeaderLink({ url, key, tls, clock, random });
  }

  #readOnlyError(): Error {
    const { lease } = this.options;
    const { epoch } = this.#core.state;
    if (lease && this.#role === 'leader') return leaseExpired(epoch);
    if (lease && !this.#following) return notLeading(epoch, '');
    return this.#role === 'follower'
      ? readOnlyReplica(this.#follow ?? '')
      : fenced(this.#newest.epoch, this.#newest.address);
  }

  get #holdsLease(): boolean {
    return !this.#isSuspended && (this.options.lease?.isValid() ?? true);
  }

  get #core(): Core {
    return this.options.handle.current.core;
  }

  /** The newest epoch known to this node, and its leader. */
  get #newest(): NewerLeader {
    const { epoch } = this.#core.state;
    if (this.#fencer && this.#fencer.epoch >= epoch) return this.#fencer;
    const { leader, leaderId } = this.#nodeState;
    return { epoch, address: leader, nodeId: leaderId };
  }

  get #nodeState(): NodeState {
    return readNodeState(this.#core);
  }
}
