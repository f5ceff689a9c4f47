import { WatchKind, type WatchResponse } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Core } from '../../engine/core.js';
import { applyCommit } from '../../engine/replica/apply-commit.js';
import { repeat } from '../repeat.js';
import type { FollowState } from './follow-state.js';
import { incomingCommit } from './incoming.js';
import type { LeaderLink } from './leader-link.js';
import type { PeerFields } from './self.js';

// Enough to share a flush; beyond that the leader waits for us.
const mostUnderWay = 256;
const mostBytesUnderWay = 32 * 2 ** 20;
const reportEveryMs = 1_000;

export interface StreamParts {
  core: Core;
  link: LeaderLink;
  state: FollowState;
  clock: Clock;
  self: () => PeerFields;
  /** The leader speaks of this epoch. */
  onEpoch: (epoch: number) => void;
  /** Whether this answer to a report means that the leader leads us no more. */
  isOver: (error: unknown) => boolean;
}

/**
 * One stream of commits from the leader, until it is cut: each becomes a commit here, and as soon
 * as some are on disk the leader is told.
 */
export class CommitStream {
  readonly #stop = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #failure: { error: unknown } | undefined;
  #reporting = false;
  #reportedSeq = -1;
  #bytesUnderWay = 0;

  constructor(private readonly parts: StreamParts) {}

  /** Resolves or rejects when the stream is over and all that came by it is settled. */
  async run(signal: AbortSignal): Promise<void> {
    const { core, link, clock, self, state } = this.parts;
    const onAbort = () => this.#stop.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const stopListening = core.onDurable(() => {
      state.check();
      this.#report();
    });
    const stopReporting = repeat(clock, reportEveryMs, () => this.#report(true));
    try {
      for await (const message of link.commits(self(), this.#stop.signal)) {
        await this.#take(message);
        if (this.#failure) break;
      }
    } catch (error) {
      this.#failure ??= { error };
    } finally {
      stopReporting();
      stopListening();
      signal.removeEventListener('abort', onAbort);
      this.#stop.abort();
      await Promise.allSettled(this.#underWay);
    }
    if (this.#failure) throw this.#failure.error;
  }

  async #take(message: WatchResponse): Promise<void> {
    const { core, state, onEpoch } = this.parts;
    onEpoch(Number(message.epoch));
    if (message.kind === WatchKind.CHANGES) {
      const bytes = message.changes.reduce((sum, { record }) => sum + recordBytes(record), 0);
      const applied = applyCommit(core, incomingCommit(message))
        .catch((error: unknown) => this.#fail(error))
        .then(() => {
          this.#underWay.delete(applied);
          this.#bytesUnderWay -= bytes;
        });
      this.#underWay.add(applied);
      this.#bytesUnderWay += bytes;
    }
    state.heard(Number(message.leaderSeq));
    while (this.#underWay.size >= mostUnderWay || this.#bytesUnderWay > mostBytesUnderWay) {
      await Promise.race(this.#underWay);
    }
  }

  /** Tells the leader what is on disk here; one report at a time, the newest state each. */
  #report(isDue = false): void {
    const { core, link, state, self, onEpoch } = this.parts;
    const { seq } = core.durable;
    if (this.#reporting || this.#stop.signal.aborted) return;
    if (!isDue && seq === this.#reportedSeq) return;
    this.#reporting = true;
    this.#reportedSeq = seq;
    link.status(self(), this.#stop.signal).then(
      (leader) => {
        this.#reporting = false;
        onEpoch(Number(leader.epoch));
        state.heard(Math.max(Number(leader.durableSeq), core.durable.seq));
        this.#report();
      },
      (error: unknown) => {
        this.#reporting = false;
        if (this.parts.isOver(error)) this.#fail(error);
      },
    );
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#stop.abort(error);
  }
}

function recordBytes(record: { dataJson: Uint8Array } | undefined): number {
  return record?.dataJson.length ?? 0;
}
