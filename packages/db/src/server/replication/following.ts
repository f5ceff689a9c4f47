import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import { Backoff } from '../../client/backoff.js';
import type { Core } from '../../engine/core.js';
import { untilDurable } from '../../engine/durable-snapshot.js';
import { DoesNotFit } from '../../engine/replica/apply-commit.js';
import { notedLeaderSeq } from '../../engine/replica/leader-seq.js';
import { CatchUp, type CatchUpParts } from './catch-up.js';
import { FollowState } from './follow-state.js';
import { isRefusal, otherLeaderIn } from './leader-link.js';
import { readPlace, writePlace } from './place.js';
import { describeSelf } from './self.js';
import { CommitStream } from './stream.js';

export interface FollowingParts extends CatchUpParts {
  random: Random;
}

/** Another node does not change its mind about these within moments. */
const stubborn: ReadonlySet<string> = new Set([
  'LINEAGE_MISMATCH',
  'FENCED',
  'NOT_LEADER',
  'MISSING_KEY',
  'UNKNOWN_KEY',
  'EXPIRED_KEY',
  'SCOPE',
]);
const stubbornDelayMs = 2_000;
const fullDiskDelayMs = 30_000;
const askLeaderMs = 2_000;
const lastCommitsMs = 5_000;

/**
 * Follows a leader: takes a first copy, then streams its commits, for as long as it is not told to
 * stop. Whatever is cut begins again where it stopped, after a delay that grows.
 */
export class Following {
  readonly state: FollowState;
  readonly #catchUp: CatchUp;
  readonly #stop = new AbortController();
  readonly #backoff: Backoff;
  #running: Promise<void> | undefined;
  /** The commit that did not fit the last time, and whether the copy is to blame. */
  #misfitSeq = 0;
  #isCopyWrong = false;
  #isTakingOver = false;
  /** The epoch that the leader has left to this node, while it does not lead yet. */
  #claimedEpoch = 0;
  #newerLeader = '';

  constructor(private readonly parts: FollowingParts) {
    const { clock, log, random } = parts;
    const notedSeq = notedLeaderSeq(this.#core);
    this.state = new FollowState(clock, log, () => this.#core.durable.seq, notedSeq);
    this.#catchUp = new CatchUp(parts, this.state, this.#stop.signal);
    this.#backoff = new Backoff(random);
  }

  get hasCopy(): boolean {
    return this.#catchUp.hasCopy;
  }

  /** Who leads now, when the leader said that it does not any more; "": not known. */
  get newerLeader(): string {
    return this.#newerLeader;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when nothing more will be written. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.parts.link.close();
  }

  /**
   * Before a promotion: asks the leader, if it is there, to take no more writes, and waits for the
   * last ones. True when it agreed. When it has left the epoch to another node, that is noted.
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
      const leader = await link.status(next, this.#stop.signal, askLeaderMs);
      if (leader.role === 'leader') return false;
      this.#claimedEpoch = Number(next.epoch);
      const lastSeq = Number(leader.durableSeq);
      this.state.heard(lastSeq);
      const timeUp = clock.sleep(lastCommitsMs, enough.signal).catch(() => undefined);
      await Promise.race([untilDurable(core, lastSeq), timeUp]);
      return true;
    } catch (error) {
      log.warn({ problem: messageOf(error) }, 'the old leader did not hand over');
      await this.#noteOther(error);
      return false;
    } finally {
      enough.abort();
      this.#isTakingOver = false;
    }
  }

  get #core(): Core {
    return this.parts.holder.current.core;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const delayMs = await this.#connection().then(
        () => this.#afterCut('the leader ended the stream'),
        async (error: unknown) => {
          if (signal.aborted) return 0;
          await this.#noteOther(error);
          return this.#afterFailure(error);
        },
      );
      await this.parts.clock.sleep(delayMs, signal).catch(() => undefined);
    }
  }

  /** One connection from its first word to its end. */
  async #connection(): Promise<void> {
    const { link, holder } = this.parts;
    const { signal } = this.#stop;
    await holder.reopen();
    if (!this.hasCopy) await this.#catchUp.copy('this node has none yet');
    const greet = () => link.status(this.#catchUp.self(), signal);
    const leader = await greet().catch(async (error: unknown) => {
      if (!isRefusal(error, 'DIVERGED')) throw error;
      await this.#catchUp.reconcile();
      return greet();
    });
    const epoch = Number(leader.epoch);
    if (this.#isCopyWrong) {
      await this.#catchUp.copyAnew(epoch, 'the commits of the leader do not fit the one it has');
      this.#isCopyWrong = false;
    } else if (Number(leader.oldestSeq) > this.#core.durable.seq + 1) {
      await this.#catchUp.copyAnew(epoch, 'the log of the leader no longer reaches back to it');
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
      onEpoch: (epoch) => this.#noteEpoch(epoch),
      isOver: (error) => !this.#isTakingOver && isParting(error),
    });
    this.state.heard(Math.max(leaderSeq, this.#core.durable.seq));
    this.state.enter('streaming', { leader: link.url, leader_seq: leaderSeq });
    this.#backoff.reset();
    this.#newerLeader = '';
    count('streams');
    await stream.run(this.#stop.signal);
  }

  #noteEpoch(epoch: number): void {
    if (epoch <= Math.max(this.#core.state.epoch, this.#claimedEpoch) || this.#isTakingOver) return;
    this.#writeEpoch(epoch).catch((error: unknown) =>
      this.parts.log.error({ err: error, epoch }, 'the new epoch could not be noted'),
    );
  }

  /** Not proven by it: a leader that was fenced meanwhile speaks of the epoch of another one. */
  #writeEpoch(epoch: number): Promise<void> {
    const core = this.#core;
    return writePlace(core, { ...readPlace(core), leaderId: '' }, epoch);
  }

  /** Notes what a leader says of the one that leads in its place. */
  async #noteOther(error: unknown): Promise<void> {
    const other = otherLeaderIn(error);
    if (!other || other.address === this.parts.identity.address) return;
    this.#newerLeader = other.address;
    if (other.epoch > this.#core.state.epoch) await this.#writeEpoch(other.epoch);
  }

  /** Says what went wrong and how long to wait before the next try. */
  #afterFailure(error: unknown): number {
    const { link, log } = this.parts;
    const about = { leader: link.url };
    if (isRefusal(error, 'WATCH_COMPACTED')) return 0;
    if (error instanceof DoesNotFit) return this.#afterMisfit(error);
    if (error instanceof Refusal && stubborn.has(error.code)) {
      const stage = error.code === 'LINEAGE_MISMATCH' ? 'diverged' : 'disconnected';
      this.state.enter(stage, { ...about, reason: error.code }, error.detail);
      return this.#backoff.next(stubbornDelayMs);
    }
    if (!(error instanceof Refusal) || error.code === 'CORRUPT') {
      log.error({ ...about, err: error }, 'following failed');
    }
    // A copy that did not fit must not be fetched again and again.
    return this.#afterCut(messageOf(error), isRefusal(error, 'DISK_FULL') ? fullDiskDelayMs : 0);
  }

  #afterCut(problem: string, atLeastMs = 0): number {
    this.state.enter('disconnected', { leader: this.parts.link.url }, problem);
    return this.#backoff.next(atLeastMs);
  }

  /** The first time it may have been the way here; the second time it is the copy. */
  #afterMisfit(error: DoesNotFit): number {
    this.#isCopyWrong = error.seq === this.#misfitSeq;
    this.#misfitSeq = error.seq;
    this.state.enter('diverged', { leader: this.parts.link.url }, error.message);
    return this.#backoff.next();
  }
}

/** Whether the leader says that it leads us no more, or never did. */
function isParting(error: unknown): boolean {
  return error instanceof Refusal && (stubborn.has(error.code) || error.code === 'DIVERGED');
}
