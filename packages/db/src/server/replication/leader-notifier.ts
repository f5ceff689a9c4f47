import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { Backoff } from '../../client/backoff.js';
import { isRefusal, otherLeaderIn, type LeaderLink } from './leader-link.js';
import type { PeerFields } from './self.js';

export interface LeaderNotifierParts {
  link: LeaderLink;
  clock: Clock;
  random: Random;
  log: Log;
  self: () => PeerFields;
  onReply: (answer: LeaderReply) => void;
}

/** Response of the old leader. */
export interface LeaderReply {
  /** The highest epoch it knows. */
  epoch: number;
  role: string;
  /** Address of the leader of that epoch. */
  leader: string;
  /** Another node than this one leads. */
  isOther: boolean;
}

const maxDelayMs = 5_000;

/** Notifies the old leader of a promotion, with retries until it responds. */
export class LeaderNotifier {
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(private readonly parts: LeaderNotifierParts) {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.parts.link.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { clock, link, log, random } = this.parts;
    const backoff = new Backoff(random);
    let lastProblem = '';
    while (!signal.aborted) {
      const problem = await this.#notify();
      if (problem === undefined || signal.aborted) return;
      if (problem !== lastProblem) {
        log.warn({ old_leader: link.url, problem }, 'failed to notify old leader');
      }
      lastProblem = problem;
      const delayMs = Math.min(backoff.next(), maxDelayMs);
      await clock.sleep(delayMs, signal).catch(() => undefined);
    }
  }

  /** Returns the problem; undefined on success. */
  async #notify(): Promise<string | undefined> {
    const { link, self, onReply } = this.parts;
    try {
      const peer = self();
      const { epoch, role, leaderAddress } = await link.status(peer, this.#stop.signal);
      if (role === 'leader' && epoch < peer.epoch) return 'it still leads';
      const leader = leaderAddress;
      onReply({ epoch: Number(epoch), role, leader, isOther: epoch > peer.epoch });
      return undefined;
    } catch (error) {
      const other = otherLeaderIn(error);
      if (other) {
        const { epoch, address } = other;
        onReply({ epoch, role: 'fenced', leader: address, isOther: true });
        return undefined;
      }
      if (!isRefusal(error, 'LINEAGE_MISMATCH')) return messageOf(error);
      // Another database runs at that address now, so there is no old leader to notify.
      onReply({ epoch: 0, role: 'unknown', leader: '', isOther: false });
      return undefined;
    }
  }
}
