import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import { Backoff } from '@millrace/kit/backoff';
import { retryPolicy } from '../../client/session.js';
import type { Core } from '@millrace/engine/core/core';
import { untilDurable } from '@millrace/engine/core/durable-snapshot';
import { DoesNotFit, notedLeaderSeq } from '@millrace/engine/maintain/replica/apply-commit';
import { CatchUp, type CatchUpParts } from './catch-up.js';
import { FollowState, readNodeState, writeNodeState } from './node-state.js';
import { isRefusal, otherLeaderIn } from './leader-link.js';
import { describeSelf } from './refusals.js';
import { CommitStream } from './stream.js';

export interface FollowingParts extends CatchUpParts {
  random: Random;
}

/** Errors that a quick retry will not resolve. */
const persistentErrors: ReadonlySet<string> = new Set([
  'LINEAGE_MISMATCH',
  'FENCED',
  'NOT_LEADER',
  'MISSING_KEY',
  'UNKNOWN_KEY',
  'EXPIRED_KEY',
  'SCOPE',
]);
const persistentErrorDelayMs = 2_000;
const fullDiskDelayMs = 30_000;
const statusTimeoutMs = 2_000;
const lastCommitsTimeoutMs = 5_000;

/**
 * Follows a leader until stopped: takes a first copy, then streams commits. Reconnects with backoff
 * and resumes where it stopped.
 */
export class Following {
  readonly state: FollowState;
  readonly #catchUp: CatchUp;
  readonly #stop = new AbortController();
  readonly #backoff: Backoff;
  #running: Promise<void> | undefined;
  /** The commit that could not be applied last time, and whether a new copy is needed. */
  #misfitSeq = 0;
  #isCopyWrong = false;
  #isTakingOver = false;
  /** The epoch that the leader has handed over, while this node does not lead yet. */
  #claimedEpoch = 0;
  #newerLeader = '';

  constructor(private readonly parts: FollowingParts) {
    const { clock, log, random } = parts;
    const savedLeaderSeq = notedLeaderSeq(this.#core);
    this.state = new FollowState(clock, log, () => this.#core.durable.seq, savedLeaderSeq);
    this.#catchUp = new CatchUp(parts, this.state, this.#stop.signal);
    this.#backoff = new Backoff(retryPolicy, random);
  }

  get hasCopy(): boolean {
    return this.#catchUp.hasCopy;
  }

  /** Address of the new leader when the old one has stepped down; "": unknown. */
  get newerLeader(): string {
    return this.#newerLeader;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when no more commits will be applied. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.parts.link.close();
  }

  /**
   * Before a promotion: requests the leader to stop accepting writes and waits for its last
   * commits. True when it agreed. Saves the other node's epoch when the leader was already fenced.
   */
  async takeOver(): Promise<boolean> {
    if (this.state.stage !== 'streaming') return false;
    const { link, identity, log, clock } = this.parts;
    const core = this.#core;
    const self = describeSelf(identity, core, 'leader');
    this.#isTakingOver = true;
    const enough = new AbortController();
    try {
      const next = { ...self, epoch: self.epoch + 1n };
      const leader = await link.status(next, this.#stop.signal, statusTimeoutMs);
      if (leader.role === 'leader') return false;
      this.#claimedEpoch = Number(next.epoch);
      const lastSeq = Number(leader.durableSeq);
      this.state.onLeaderSeq(lastSeq);
      const timeUp = clock.sleep(lastCommitsTimeoutMs, enough.signal).catch(() => undefined);
      await Promise.race([untilDurable(core, lastSeq), timeUp]);
      return true;
    } catch (error) {
      log.warn({ problem: messageOf(error) }, 'handover by the old leader failed');
      await this.#saveOtherLeader(error);
      return false;
    } finally {
      enough.abort();
      this.#isTakingOver = false;
    }
  }

  get #core(): Core {
    return this.parts.handle.current.core;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const delayMs = await this.#connection().then(
        () => this.#afterCut('the leader ended the stream'),
        async (error: unknown) => {
          if (signal.aborted) return 0;
          await this.#saveOtherLeader(error);
          return this.#afterFailure(error);
        },
      );
      await this.parts.clock.sleep(delayMs, signal).catch(() => undefined);
    }
  }

  /** Runs one connection to the leader until it ends. */
  async #connection(): Promise<void> {
    const { link, handle } = this.parts;
    const { signal } = this.#stop;
    await handle.reopen();
    if (!this.hasCopy) await this.#catchUp.copy('first copy');
    const readStatus = () => link.status(this.#catchUp.self(), signal);
    const leader = await readStatus().catch(async (error: unknown) => {
      if (!isRefusal(error, 'DIVERGED')) throw error;
      await this.#catchUp.reconcile();
      return readStatus();
    });
    const epoch = Number(leader.epoch);
    if (this.#isCopyWrong) {
      await this.#catchUp.recopy(epoch, 'the commits of the leader do not apply to the local copy');
      this.#isCopyWrong = false;
    } else if (Number(leader.oldestSeq) > this.#core.durable.seq + 1) {
      await this.#catchUp.recopy(epoch, 'the log of the leader no longer has the next commit');
    }
    await this.#catchUp.prove(epoch, leader.nodeId);
    await this.#stream(Number(leader.durableSeq));
  }

  async #stream(leaderSeq: number): Promise<void> {
    const { link, clock, count } = this.parts;
    const stream = new CommitStream({
      core: this.#core,
      link,
      clock,
      state: this.state,
      self: () => this.#catchUp.self(),
      onEpoch: (epoch) => this.#saveEpoch(epoch),
      isFinal: (error) => !this.#isTakingOver && isLeaderGone(error),
    });
    this.state.onLeaderSeq(Math.max(leaderSeq, this.#core.durable.seq));
    this.state.enter('streaming', { leader: link.url, leader_seq: leaderSeq });
    this.#backoff.reset();
    this.#newerLeader = '';
    count('streams');
    await stream.run(this.#stop.signal);
  }

  #saveEpoch(epoch: number): void {
    if (epoch <= Math.max(this.#core.state.epoch, this.#claimedEpoch) || this.#isTakingOver) return;
    this.#writeEpoch(epoch).catch((error: unknown) =>
      this.parts.log.error({ err: error, epoch }, 'failed to save epoch'),
    );
  }

  /** Does not record proof of history: a fenced leader may report the epoch of another leader. */
  #writeEpoch(epoch: number): Promise<void> {
    const core = this.#core;
    return writeNodeState(core, { ...readNodeState(core), leaderId: '' }, epoch);
  }

  /** Saves the new leader that a fenced leader reports. */
  async #saveOtherLeader(error: unknown): Promise<void> {
    const other = otherLeaderIn(error);
    if (!other || other.address === this.parts.identity.address) return;
    this.#newerLeader = other.address;
    if (other.epoch > this.#core.state.epoch) await this.#writeEpoch(other.epoch);
  }

  /** Logs the failure and returns the delay before the next attempt. */
  #afterFailure(error: unknown): number {
    const { link, log } = this.parts;
    const fields = { leader: link.url };
    if (isRefusal(error, 'WATCH_COMPACTED')) return 0;
    if (error instanceof DoesNotFit) return this.#afterMisfit(error);
    if (error instanceof Refusal && persistentErrors.has(error.code)) {
      const stage = error.code === 'LINEAGE_MISMATCH' ? 'diverged' : 'disconnected';
      this.state.enter(stage, { ...fields, reason: error.code }, error.detail);
      return this.#backoff.next(persistentErrorDelayMs);
    }
    if (!(error instanceof Refusal) || error.code === 'CORRUPT') {
      log.error({ ...fields, err: error }, 'replication failed');
    }
    // Retries slowly on a full disk, because each attempt may fetch a full copy.
    return this.#afterCut(messageOf(error), isRefusal(error, 'DISK_FULL') ? fullDiskDelayMs : 0);
  }

  #afterCut(problem: string, atLeastMs = 0): number {
    this.state.enter('disconnected', { leader: this.parts.link.url }, problem);
    return this.#backoff.next(atLeastMs);
  }

  /**
   * The first failure may be a transmission error; the second at the same commit needs a new copy.
   */
  #afterMisfit(error: DoesNotFit): number {
    this.#isCopyWrong = error.seq === this.#misfitSeq;
    this.#misfitSeq = error.seq;
    this.state.enter('diverged', { leader: this.parts.link.url }, error.message);
    return this.#backoff.next();
  }
}

/** Whether the leader refuses to lead this node. */
function isLeaderGone(error: unknown): boolean {
  return (
    error instanceof Refusal && (persistentErrors.has(error.code) || error.code === 'DIVERGED')
  );
}
