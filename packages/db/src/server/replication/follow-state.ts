import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';

export type FollowStage = 'bootstrapping' | 'streaming' | 'disconnected' | 'diverged';

/** Where a follower stands, and how far behind its leader. */
export class FollowState {
  #stage: FollowStage = 'disconnected';
  #leaderSeq: number | undefined;
  readonly #notedSeq: number;
  /** When it last had all that its leader had; undefined: not since the start. */
  #caughtUpAt: number | undefined;
  #lastProblem = '';

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly ownSeq: () => number,
    /** How far the leader was when this node last ran. */
    notedSeq = 0,
  ) {
    this.#notedSeq = notedSeq;
  }

  get stage(): FollowStage {
    return this.#stage;
  }

  /** A line in the log whenever it changes, and for each new reason why it does not. */
  enter(stage: FollowStage, about: object = {}, problem = ''): void {
    const isNews = stage !== this.#stage || problem !== this.#lastProblem;
    this.#stage = stage;
    this.#lastProblem = problem;
    if (!isNews) return;
    const fields = { state: stage, seq: this.ownSeq(), ...about };
    if (stage === 'streaming' || stage === 'bootstrapping') this.log.info(fields, lines[stage]);
    else this.log.warn({ ...fields, problem }, lines[stage]);
  }

  /** The leader has said how far it is. */
  heard(leaderSeq: number): void {
    this.#leaderSeq = leaderSeq;
    this.check();
  }

  /** Something was put on disk here. */
  check(): void {
    if (this.#leaderSeq !== undefined && this.ownSeq() >= this.#leaderSeq) {
      this.#caughtUpAt = this.clock.monotonic();
    }
  }

  get leaderSeq(): number {
    return Math.max(this.#leaderSeq ?? this.#notedSeq, this.ownSeq());
  }

  /** Commits that are missing here, as far as this node has heard. */
  get lag(): number {
    return this.leaderSeq - this.ownSeq();
  }

  /** undefined: not known. */
  get lagMs(): number | undefined {
    if (this.#caughtUpAt === undefined) return undefined;
    if (this.#stage === 'streaming' && this.lag === 0) return 0;
    return this.clock.monotonic() - this.#caughtUpAt;
  }
}

const lines: Record<FollowStage, string> = {
  bootstrapping: 'copying the leader',
  streaming: 'following the leader',
  disconnected: 'not connected to the leader',
  diverged: 'the history of the leader is another one',
};
