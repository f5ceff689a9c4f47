import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Core } from '../../engine/core.js';
import { emptyHash } from '../../engine/hash.js';
import { canCut } from '../../engine/replica/cut-tail.js';
import { lastCommonCommit } from './common-commit.js';
import type { FollowState } from './follow-state.js';
import type { DatabaseHolder } from './holder.js';
import { isRefusal, type LeaderLink } from './leader-link.js';
import { readPlace, writePlace } from './place.js';
import { describeNewcomer, describeSelf, type Identity, type PeerFields } from './self.js';
import { saveTail } from './tail-file.js';

export interface CatchUpParts {
  holder: DatabaseHolder;
  link: LeaderLink;
  identity: Identity;
  clock: Clock;
  log: Log;
  /** Something happened that a counter counts. */
  count: (what: 'copies' | 'streams' | 'tails') => void;
}

/** A history of nothing, which is the beginning of every other. */
const nothing = { seq: 0, chain: emptyHash };

/** Brings a follower to a place from which the stream of its leader goes on. */
export class CatchUp {
  #hasCopy: boolean;

  constructor(
    private readonly parts: CatchUpParts,
    private readonly state: FollowState,
    private readonly signal: AbortSignal,
  ) {
    this.#hasCopy = this.#core.state.seq > 0;
    parts.holder.isServed = this.#hasCopy;
  }

  /** False before the first copy: then there is nothing to serve. */
  get hasCopy(): boolean {
    return this.#hasCopy;
  }

  self(at = this.#core.durable as { seq: number; chain: typeof emptyHash }): PeerFields {
    const { identity } = this.parts;
    return this.#hasCopy
      ? describeSelf(identity, this.#core, 'follower', at)
      : describeNewcomer(identity);
  }

  /** Takes a whole copy of the leader. What is here stays, and is served, until it is complete. */
  async copy(reason: string): Promise<void> {
    const { link, holder, log, count } = this.parts;
    this.state.enter('bootstrapping', { leader: link.url, reason });
    const parts = link.copy(this.self(nothing), this.signal);
    const header = await holder.replace(parts, `The copy of ${link.url}`);
    this.#hasCopy = true;
    holder.isServed = true;
    await this.prove(header.epoch);
    count('copies');
    log.info({ leader: link.url, seq: header.seq }, 'the copy of the leader is complete');
  }

  /** As `copy`, by a node whose commits the leader can no longer be asked for one by one. */
  async copyAnew(leaderEpoch: number, reason: string): Promise<void> {
    const place = readPlace(this.#core);
    const isProven = place.role === 'follower' && place.provenEpoch === leaderEpoch;
    if (!isProven) await this.#save(0, 'the leader can no longer tell which of these it has');
    await this.copy(reason);
  }

  /** The leader of this epoch knows every commit that is here. */
  async prove(epoch: number, leaderId = ''): Promise<void> {
    const place = readPlace(this.#core);
    const leader = this.parts.link.url;
    const isNoted =
      place.role === 'follower' && place.leader === leader && place.leaderId === leaderId;
    if (isNoted && place.provenEpoch === epoch && this.#core.state.epoch >= epoch) return;
    const proven = { ...place, role: 'follower' as const, leader, leaderId, provenEpoch: epoch };
    await writePlace(this.#core, proven, epoch);
  }

  /** The histories went apart: saves what the leader has not, and goes back to where they meet. */
  async reconcile(): Promise<void> {
    const { holder, link } = this.parts;
    const core = this.#core;
    this.state.enter('diverged', { leader: link.url }, 'it has commits that the leader has not');
    const leader = await link.status(this.self(nothing), this.signal);
    const common = await lastCommonCommit({
      low: Math.max(core.durable.oldestSeq, Number(leader.oldestSeq)) - 1,
      high: Math.min(core.durable.seq, Number(leader.durableSeq)),
      chainAt: (seq) => holder.current.watches.chainAt(seq),
      isShared: (at) => this.#isShared(at),
    });
    await this.#save(common ?? 0, 'the leader has other commits in their place');
    if (common !== undefined && canCut(core, common)) await holder.current.cutTail(common);
    else await this.copy('its own commits cannot be taken back');
  }

  async #isShared(at: { seq: number; chain: typeof emptyHash }): Promise<boolean> {
    try {
      await this.parts.link.status(this.self(at), this.signal);
      return true;
    } catch (error) {
      if (isRefusal(error, 'DIVERGED')) return false;
      throw error;
    }
  }

  async #save(afterSeq: number, reason: string): Promise<void> {
    const { holder, link, identity, clock, log, count } = this.parts;
    const { directory, core } = holder.current;
    const { nodeId } = identity;
    const ask = { directory, nodeId, leader: link.url, reason, afterSeq, now: clock.now() };
    const tail = await saveTail(core, ask);
    if (!tail) return;
    count('tails');
    const { file, firstSeq, lastSeq } = tail;
    log.warn({ file, first_seq: firstSeq, last_seq: lastSeq, reason }, 'commits are set aside');
  }

  get #core(): Core {
    return this.parts.holder.current.core;
  }
}
