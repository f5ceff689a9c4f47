import { type Hash64, emptyHash } from '@millrace/engine/value/bytes';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Core } from '@millrace/engine/core/core';
import { canCut } from '@millrace/engine/maintain/replica/cut-tail';
import { type FollowState, readNodeState, writeNodeState } from './node-state.js';
import type { DatabaseHandle } from './followers.js';
import { isRefusal, type LeaderLink } from './leader-link.js';
import { describeEmptyNode, describeSelf, type Identity, type PeerFields } from './refusals.js';
import { saveTail } from './tail-file.js';

interface HistoryProbe {
  /** Lower bound: the commit before the oldest one in both logs. */
  low: number;
  /** Upper bound: the last commit that both may have. */
  high: number;
  /** The chain hash of this node after a commit. */
  chainAt(seq: number): Hash64;
  /** Whether the leader has the same chain hash at this commit. */
  isShared(at: { seq: number; chain: Hash64 }): Promise<boolean>;
}

/**
 * The last common commit of two histories; undefined when it is older than their logs. Equal chain
 * hashes mean equal histories, so binary search finds it.
 */
export async function lastCommonCommit(probe: HistoryProbe): Promise<number | undefined> {
  const isSharedAt = (seq: number) => probe.isShared({ seq, chain: probe.chainAt(seq) });
  let { low, high } = probe;
  if (high < low || !(await isSharedAt(low))) return undefined;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (await isSharedAt(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

export interface CatchUpParts {
  handle: DatabaseHandle;
  link: LeaderLink;
  identity: Identity;
  clock: Clock;
  log: Log;
  /** Increments a counter. */
  count: (what: 'copies' | 'streams' | 'tails') => void;
}

/** The empty history, a prefix of every history. */
const emptyHistory = { seq: 0, chain: emptyHash };

/** Brings a follower to a state from which it can stream from its leader. */
export class CatchUp {
  #hasCopy: boolean;

  constructor(
    private readonly parts: CatchUpParts,
    private readonly state: FollowState,
    private readonly signal: AbortSignal,
  ) {
    this.#hasCopy = this.#core.state.seq > 0;
    parts.handle.isServed = this.#hasCopy;
  }

  /** False before the first copy, when there is nothing to serve. */
  get hasCopy(): boolean {
    return this.#hasCopy;
  }

  self(at = this.#core.durable as { seq: number; chain: typeof emptyHash }): PeerFields {
    const { identity } = this.parts;
    return this.#hasCopy
      ? describeSelf(identity, this.#core, 'follower', at)
      : describeEmptyNode(identity);
  }

  /** Takes a full copy of the leader. The old data is served until it is complete. */
  async copy(reason: string): Promise<void> {
    const { link, handle, log, count } = this.parts;
    this.state.enter('bootstrapping', { leader: link.url, reason });
    const parts = link.copy(this.self(emptyHistory), this.signal);
    const header = await handle.replace(parts, `The copy of ${link.url}`);
    this.#hasCopy = true;
    handle.isServed = true;
    await this.prove(header.epoch);
    count('copies');
    log.info({ leader: link.url, seq: header.seq }, 'copy of the leader completed');
  }

  /** Like `copy`, for a node whose commits can no longer be compared with the leader's log. */
  async recopy(leaderEpoch: number, reason: string): Promise<void> {
    const nodeState = readNodeState(this.#core);
    const isProven = nodeState.role === 'follower' && nodeState.provenEpoch === leaderEpoch;
    if (!isProven)
      await this.#saveTail(0, 'the leader can no longer check which of these commits it has');
    await this.copy(reason);
  }

  /** Records that the leader of this epoch has all commits of this node. */
  async prove(epoch: number, leaderId = ''): Promise<void> {
    const nodeState = readNodeState(this.#core);
    const leader = this.parts.link.url;
    const isSaved =
      nodeState.role === 'follower' &&
      nodeState.leader === leader &&
      nodeState.leaderId === leaderId;
    if (isSaved && nodeState.provenEpoch === epoch && this.#core.state.epoch >= epoch) return;
    const proven = {
      ...nodeState,
      role: 'follower' as const,
      leader,
      leaderId,
      provenEpoch: epoch,
    };
    await writeNodeState(this.#core, proven, epoch);
  }

  /**
   * Resolves diverged histories: saves the commits that the leader lacks and rolls back to the last
   * common commit.
   */
  async reconcile(): Promise<void> {
    const { handle, link } = this.parts;
    const core = this.#core;
    this.state.enter(
      'diverged',
      { leader: link.url },
      'this node has commits that the leader lacks',
    );
    const leader = await link.status(this.self(emptyHistory), this.signal);
    const common = await lastCommonCommit({
      low: Math.max(core.durable.oldestSeq, Number(leader.oldestSeq)) - 1,
      high: Math.min(core.durable.seq, Number(leader.durableSeq)),
      chainAt: (seq) => handle.current.watches.chainAt(seq),
      isShared: (at) => this.#isShared(at),
    });
    await this.#saveTail(common ?? 0, 'the leader has other commits at these positions');
    // The log must have the last common commit: its epoch counts in the election of a leader.
    const hasCommon = common === 0 || (common ?? 0) >= core.durable.oldestSeq;
    if (common !== undefined && hasCommon && canCut(core, common))
      await handle.current.cutTail(common);
    else await this.copy('the local commits cannot be rolled back');
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

  async #saveTail(afterSeq: number, reason: string): Promise<void> {
    const { handle, link, identity, clock, log, count } = this.parts;
    const { directory, core } = handle.current;
    const { nodeId } = identity;
    const options = { directory, nodeId, leader: link.url, reason, afterSeq, now: clock.now() };
    const tail = await saveTail(core, options);
    if (!tail) return;
    count('tails');
    const { file, firstSeq, lastSeq } = tail;
    log.warn({ file, first_seq: firstSeq, last_seq: lastSeq, reason }, 'diverged commits saved');
  }

  get #core(): Core {
    return this.parts.handle.current.core;
  }
}
