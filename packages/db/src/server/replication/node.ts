import type { Peer } from '@millrace/contract/db';
import type { World } from '@millrace/kit/world';
import type { TlsOptions } from '../../client/transport.js';
import type { Core } from '../../engine/core.js';
import { refuse } from '../../engine/refusal.js';
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
import { Followers } from './followers.js';
import type { DatabaseHolder } from './holder.js';
import { LeaderLink } from './leader-link.js';
import { checkHistory, checkPeer } from './peer-checks.js';
import { readPlace, roleAtStart, writePlace, type Place } from './place.js';
import {
  fenced,
  lineageMismatch,
  newerLeader,
  noFirstCopy,
  notLeader,
  readOnlyReplica,
  replicaLag,
} from './refusals.js';
import { describeSelf, type Identity } from './self.js';
import { savedTails } from './tail-file.js';
import { TellLeader, type Heard } from './tell-leader.js';

/** Who leads in an epoch. Empty texts: not known. */
interface NewerLeader {
  epoch: number;
  address: string;
  nodeId: string;
}

export type NodeEvent = 'copies' | 'streams' | 'tails';

export interface NodeOptions extends World {
  holder: DatabaseHolder;
  nodeId: string;
  /** Address of the leader to follow. undefined: none. */
  follow: string | undefined;
  followKey: string | undefined;
  tls: TlsOptions;
  minAcks: number;
  count: (what: NodeEvent) => void;
}

/** Why a store takes no commits of its own, as it lies there; undefined: it does. */
export function sealOf(core: Core, follow: string | undefined): (() => Error) | undefined {
  const place = readPlace(core);
  const role = roleAtStart(place, follow);
  if (role === 'leader') return undefined;
  return role === 'follower'
    ? () => readOnlyReplica(follow ?? '')
    : () => fenced(core.state.epoch, place.leader);
}

/**
 * This node's place among the others: leader, follower or fenced, and how it gets from one to the
 * other. What it becomes is on disk before anyone hears of it, but for the fencing: that works at
 * once, and is answered when it is on disk.
 */
export class Node implements Replication {
  readonly #identity: Identity;
  readonly #followers: Followers;
  #role: Role;
  #following: Following | undefined;
  #telling: TellLeader | undefined;
  #isPromoting = false;
  /** The newer leader that is being noted. */
  #fencer: NewerLeader | undefined;
  #tails: readonly SavedTailState[];

  constructor(private readonly options: NodeOptions) {
    const { holder, nodeId, clock, log, minAcks, follow } = options;
    this.#identity = { nodeId, address: '' };
    this.#followers = new Followers(clock, log, minAcks);
    this.#role = roleAtStart(this.#place, follow);
    this.#tails = savedTails(holder.current.directory);
    if (this.#role === 'follower') this.#prepareFollowing();
  }

  /** Begins to follow, or to tell of a promotion. `address` is where others reach this node. */
  start(address: string): void {
    this.#identity.address = address;
    const { log, follow } = this.options;
    const { epoch, seq } = this.#core.state;
    log.info(
      { role: this.#role, epoch, seq, ...(follow && { follow }) },
      `starts as ${this.#role}`,
    );
    if (this.#role === 'leader' && follow !== undefined) {
      log.warn({ follow }, 'it was promoted and leads on; take follow out of its settings');
    }
    if (this.#role === 'fenced') {
      const { leader } = this.#place;
      log.warn({ leader }, 'it takes no writes; tell it whom to follow, or promote it by force');
    }
    this.#following?.start();
    if (this.#role === 'leader' && this.#place.untold !== '') this.#tell(this.#place.untold);
  }

  async stop(): Promise<void> {
    this.#followers.giveUp();
    await Promise.all([this.#following?.stop(), this.#telling?.stop()]);
  }

  /** Before the end: lets followers have the last commits. */
  async lastWords(): Promise<void> {
    if (this.#role === 'leader') await this.#followers.caughtUp(this.#core.durable.seq);
  }

  checkWritable(): void {
    if (this.#role === 'leader') return;
    throw this.#whyReadOnly();
  }

  confirmed(seq: number, context: CallContext): Promise<void> | undefined {
    return this.#followers.confirmed(seq, context);
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
      const leaderAddress = this.options.follow ?? '';
      return { ...common, state: stage, leaderAddress, leaderSeq, lag, lagMs };
    }
    const isLeader = this.#role === 'leader';
    return {
      ...common,
      state: isLeader ? 'leading' : 'fenced',
      leaderAddress: isLeader ? '' : this.#place.leader,
      leaderSeq: seq,
      lag: 0,
      lagMs: isLeader ? 0 : undefined,
    };
  }

  meet(peer: Peer, call: PeerCall, context: CallContext): Promise<void> | undefined {
    const { lineageId } = this.options.holder;
    checkPeer(peer);
    if (peer.lineageId !== '' && peer.lineageId !== lineageId) throw lineageMismatch(lineageId);
    // What has no history yet cannot have seen a newer leader of ours.
    const epoch = peer.lineageId === '' ? 0 : Number(peer.epoch);
    const isNews = peer.role === 'leader' && call === 'ReplicationStatus';
    if (epoch > this.#newest.epoch && this.#role !== 'follower') {
      const { address, nodeId } = peer;
      const newer = { epoch, address, nodeId };
      const done = this.#fence(peer.role === 'leader' ? newer : { epoch, address: '', nodeId: '' });
      if (isNews) return done;
      return done.then(() => {
        throw this.#whyReadOnly();
      });
    }
    if (isNews) return this.#meetRival(peer, epoch);
    if (this.#role === 'fenced') throw this.#whyReadOnly();
    if (this.#role === 'follower') throw notLeader(this.options.follow ?? '');
    checkHistory(this.options.holder.current, peer);
    this.#followers.heard(peer);
    if (call === 'Watch') this.#followers.streams(peer, context.signal);
    return undefined;
  }

  /**
   * An epoch has one leader: to this node the first of whom it heard. The others are told so. Of
   * two that lead and meet, the one with the older data directory goes on.
   */
  #meetRival({ nodeId, address }: Peer, epoch: number): Promise<void> | undefined {
    const newest = this.#newest;
    const isSame = newest.nodeId === '' || newest.nodeId === nodeId;
    if (epoch !== newest.epoch || isSame) return undefined;
    if (this.#role !== 'leader') throw fenced(epoch, newest.address);
    this.options.log.error({ epoch, other: address }, 'another node leads in the same epoch');
    if (nodeId < newest.nodeId) return this.#fence({ epoch, address, nodeId });
    throw fenced(epoch, this.#identity.address);
  }

  async promote(ask: { force: boolean; maxLag: number }): Promise<Promotion> {
    if (this.#role === 'leader') return { role: 'leader', lag: 0 };
    if (this.#isPromoting) {
      throw refuse('ALREADY_RUNNING', 'This node is being promoted already; wait for it to end.');
    }
    this.#isPromoting = true;
    try {
      return await this.#promote(ask);
    } finally {
      this.#isPromoting = false;
    }
  }

  async #promote(ask: { force: boolean; maxLag: number }): Promise<Promotion> {
    const following = this.#following;
    const checkLag = () => {
      const lag = following?.state.lag ?? 0;
      if (lag > ask.maxLag && !ask.force) throw replicaLag(lag);
      return lag;
    };
    if (!following && !ask.force) throw this.#whyReadOnly();
    if (following && !following.hasCopy) throw noFirstCopy();
    // What another leader has committed since is not known here, and so not in the lag.
    const checkEpoch = () => {
      const { epoch } = this.#core.state;
      if (!following || ask.force || this.#place.provenEpoch === epoch) return;
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
    const followed = following ? (this.options.follow ?? '') : '';
    const untold = hasAgreed ? '' : followed;
    const leads = { role: 'leader' as const, leader: '', leaderId: this.#identity.nodeId };
    await writePlace(core, { ...this.#place, ...leads, followed, untold }, epoch);
    this.#following = undefined;
    this.#role = 'leader';
    core.sealed = undefined;
    this.options.log.warn({ epoch, seq: core.state.seq, lag, followed }, 'promoted: it leads now');
    if (untold !== '') this.#tell(untold);
    return { role: 'leader', lag };
  }

  /**
   * Takes no more writes, from this moment on. Resolves when that will outlast a restart. It then
   * follows whom it is told to, unless that one is known not to lead.
   */
  async #fence(newer: NewerLeader, mayFollow = true): Promise<void> {
    const core = this.#core;
    const { epoch, address: leader, nodeId: leaderId } = newer;
    if (this.#role === 'leader') {
      this.options.log.warn(
        { epoch, leader, seq: core.state.seq },
        'fenced: a newer leader is there',
      );
    }
    this.#role = 'fenced';
    this.#fencer = newer;
    core.sealed = () => this.#whyReadOnly();
    this.#followers.giveUp();
    const place = { ...this.#place, role: 'fenced' as const, leader, leaderId, untold: '' };
    await writePlace(core, place, epoch);
    if (this.#fencer === newer) this.#fencer = undefined;
    const telling = this.#telling;
    this.#telling = undefined;
    await telling?.stop();
    const isTold = this.options.follow !== undefined;
    if (isTold && mayFollow && this.#role === 'fenced') this.#followAgain();
  }

  #followAgain(): void {
    this.#role = 'follower';
    this.#prepareFollowing();
    this.options.log.info({ follow: this.options.follow }, 'follows again');
    this.#following?.start();
  }

  #prepareFollowing(): void {
    const { holder, clock, log, random, count, follow } = this.options;
    this.#following = new Following({
      holder,
      clock,
      log,
      random,
      identity: this.#identity,
      link: this.#link(follow ?? ''),
      count: (what) => {
        count(what);
        if (what === 'tails') this.#tails = savedTails(holder.current.directory);
      },
    });
  }

  #tell(oldLeader: string): void {
    const { clock, log, random } = this.options;
    this.#telling = new TellLeader({
      clock,
      log,
      random,
      link: this.#link(oldLeader),
      self: () => describeSelf(this.#identity, this.#core, this.#role),
      onHeard: (answer) => this.#told(oldLeader, answer),
    });
  }

  #told(oldLeader: string, { epoch, role, leader, isOther }: Heard): void {
    const { log } = this.options;
    const core = this.#core;
    if (this.#role !== 'leader') return;
    const failed = (error: unknown) => log.error({ err: error }, 'the place could not be noted');
    if (isOther) {
      const about = { epoch, other: leader, own_epoch: core.state.epoch };
      log.error(about, 'another node was promoted as well: this one takes no more writes');
      this.#fence({ epoch, address: leader, nodeId: '' }, role === 'leader').catch(failed);
      return;
    }
    log.info({ old_leader: oldLeader, role }, 'the old leader knows');
    writePlace(core, { ...this.#place, untold: '' }).catch(failed);
  }

  #link(url: string): LeaderLink {
    const { followKey: key, tls, clock, random } = this.options;
    return new LeaderLink({ url, key, tls, clock, random });
  }

  #whyReadOnly(): Error {
    return this.#role === 'follower'
      ? readOnlyReplica(this.options.follow ?? '')
      : fenced(this.#newest.epoch, this.#newest.address);
  }

  get #core(): Core {
    return this.options.holder.current.core;
  }

  /** The newest epoch that this node knows of, and who leads in it. */
  get #newest(): NewerLeader {
    const { epoch } = this.#core.state;
    if (this.#fencer && this.#fencer.epoch >= epoch) return this.#fencer;
    const { leader, leaderId } = this.#place;
    return { epoch, address: leader, nodeId: leaderId };
  }

  get #place(): Place {
    return readPlace(this.#core);
  }
}
