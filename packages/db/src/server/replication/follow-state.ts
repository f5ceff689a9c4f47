import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';

export type FollowStage = 'bootstrapping' | 'streaming' | 'disconnected' | 'diverged';

/** State of a follower and its lag. */
export class FollowState {
  #stage: FollowStage = 'disconnected';
  #leaderSeq: number | undefined;
  readonly #savedLeaderSeq: number;
  /** When the follower was last caught up; undefined: not since the start. */
  #caughtUpAt: number | undefined;
  #lastProblem = '';

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly ownSeq: () => number,
    /** The leader's last commit known to the previous run. */
    savedLeaderSeq = 0,
  ) {
    this.#savedLeaderSeq = savedLeaderSeq;
  }

  get stage(): FollowStage {
    return this.#stage;
  }

  /** Logs each change of stage and each new problem. */
  enter(stage: FollowStage, details: object = {}, problem = ''): void {
    const isNews = stage !== this.#stage || problem !== this.#lastProblem;
    this.#stage = stage;
    this.#lastProblem = problem;
    if (!isNews) return;
    const fields = { state: stage, seq: this.ownSeq(), ...details };
    if (stage === 'streaming' || stage === 'bootstrapping') this.log.info(fields, messages[stage]);
    else this.log.warn({ ...fields, problem }, messages[stage]);
  }

  /** The leader reported its last commit. */
  onLeaderSeq(leaderSeq: number): void {
    this.#leaderSeq = leaderSeq;
    this.check();
  }

  /** Call after each local commit. */
  check(): void {
    if (this.#leaderSeq !== undefined && this.ownSeq() >= this.#leaderSeq) {
      this.#caughtUpAt = this.clock.monotonic();
    }
  }

  get leaderSeq(): number {
    return Math.max(this.#leaderSeq ?? this.#savedLeaderSeq, this.ownSeq());
  }

  /** Commits of the leader that are missing here, as far as known. */
  get lag(): number {
    return this.leaderSeq - this.ownSeq();
  }

  /** Undefined: unknown. */
  get lagMs(): number | undefined {
    if (this.#caughtUpAt === undefined) return undefined;
    if (this.#stage === 'streaming' && this.lag === 0) return 0;
    return this.clock.monotonic() - this.#caughtUpAt;
  }
}

const messages: Record<FollowStage, string> = {
  bootstrapping: 'copying from leader',
  streaming: 'streaming from leader',
  disconnected: 'disconnected from leader',
  diverged: 'history diverged from leader',
};
