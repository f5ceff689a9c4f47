import type { Core } from '@millrace/engine/core/core';
import { untilDurable } from '@millrace/engine/core/durable-snapshot';
import { appendEpochMarker } from '@millrace/engine/maintain/replica/apply-commit';
import type { Role } from '../service/replication.js';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';

/** Persistent replication state of a node, stored with the commits. */
export interface NodeState {
  /** The last role; undefined: only ever the role of its settings. */
  role: Role | undefined;
  /** Address of the leader it followed when it was promoted. */
  followed: string;
  /** Address of the old leader while it does not know of the promotion. */
  untold: string;
  /** The leader it followed, or the one that fenced it, if known. */
  leader: string;
  /** Node id of the leader of the current epoch; "": unknown. */
  leaderId: string;
  /** Epoch of the leader that confirmed all commits of this node. */
  provenEpoch: number;
}

const name = 'replication';
export const nowhere: NodeState = {
  role: undefined,
  followed: '',
  untold: '',
  leader: '',
  leaderId: '',
  provenEpoch: 0,
};

export function readNodeState(core: Core): NodeState {
  const row = core.store.get('meta', Buffer.from(name));
  return row ? { ...nowhere, ...(JSON.parse(row.toString()) as Partial<NodeState>) } : nowhere;
}

/** Saves the state and, if it is higher, the epoch. Resolves when it is on disk. */
export function writeNodeState(core: Core, nodeState: NodeState, epoch = 0): Promise<void> {
  return core.writer.submit(() => {
    core.putMeta(name, nodeState);
    if (epoch > core.state.epoch) core.writer.state = { ...core.state, epoch };
  });
}

/** Begins the epoch of a new leader with a commit of its own; returns that commit's number. */
export async function startEpoch(core: Core, nodeState: NodeState, epoch: number): Promise<number> {
  const seq = await core.writer.submit(() => {
    core.putMeta(name, nodeState);
    core.writer.state = { ...core.state, epoch };
    return appendEpochMarker(core);
  });
  await untilDurable(core, seq);
  return seq;
}

/** In a cluster nobody leads at startup; a former leader is fenced until it follows. */
export function roleInCluster({ role }: NodeState): Role {
  return role === 'leader' || role === 'fenced' ? 'fenced' : 'follower';
}

/**
 * The role at startup. A promoted node keeps leading even if its settings still name its old
 * leader; only a different `follow` address makes it a follower. A former follower without `follow`
 * is fenced, because another node may lead.
 */
export function roleAtStart(nodeState: NodeState, follow: string | undefined): Role {
  if (follow !== undefined) {
    return nodeState.role === 'leader' && nodeState.followed === follow ? 'leader' : 'follower';
  }
  return nodeState.role === 'fenced' || nodeState.role === 'follower' ? 'fenced' : 'leader';
}

type FollowStage = 'bootstrapping' | 'streaming' | 'disconnected' | 'diverged';

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
