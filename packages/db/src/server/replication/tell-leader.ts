import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { Backoff } from '../../client/backoff.js';
import { isRefusal, otherLeaderIn, type LeaderLink } from './leader-link.js';
import type { PeerFields } from './self.js';

export interface TellingParts {
  link: LeaderLink;
  clock: Clock;
  random: Random;
  log: Log;
  self: () => PeerFields;
  onHeard: (answer: Heard) => void;
}

/** What the old leader said. */
export interface Heard {
  /** The highest that it knows. */
  epoch: number;
  role: string;
  /** Who leads in that epoch. */
  leader: string;
  /** It is another node than the one that was promoted here. */
  isOther: boolean;
}

const longestDelayMs = 5_000;

/** Tells the old leader of a promotion, again and again until it answers. */
export class TellLeader {
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(private readonly parts: TellingParts) {
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
      const problem = await this.#tell();
      if (problem === undefined || signal.aborted) return;
      if (problem !== lastProblem) {
        log.warn({ old_leader: link.url, problem }, 'the old leader does not know yet');
      }
      lastProblem = problem;
      const delayMs = Math.min(backoff.next(), longestDelayMs);
      await clock.sleep(delayMs, signal).catch(() => undefined);
    }
  }

  /** Why it has not heard; undefined when it has. */
  async #tell(): Promise<string | undefined> {
    const { link, self, onHeard } = this.parts;
    try {
      const peer = self();
      const { epoch, role, leaderAddress } = await link.status(peer, this.#stop.signal);
      if (role === 'leader' && epoch < peer.epoch) return 'it answered, but leads on';
      const leader = leaderAddress;
      onHeard({ epoch: Number(epoch), role, leader, isOther: epoch > peer.epoch });
      return undefined;
    } catch (error) {
      const other = otherLeaderIn(error);
      if (other) {
        const { epoch, address } = other;
        onHeard({ epoch, role: 'fenced', leader: address, isOther: true });
        return undefined;
      }
      if (!isRefusal(error, 'LINEAGE_MISMATCH')) return messageOf(error);
      // Another database lives there by now: there is nobody left to tell.
      onHeard({ epoch: 0, role: 'unknown', leader: '', isOther: false });
      return undefined;
    }
  }
}
