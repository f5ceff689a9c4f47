import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Peer } from '@millrace/contract/db';
import type { CallContext } from '../service/call.js';
import type { FollowerState } from '../service/replication.js';
import { notEnoughAcks } from './refusals.js';

interface Known extends FollowerState {
  /** Streams that are open: a new one may come before the old one is known to be dead. */
  streams: number;
}

interface Waiter {
  seq: number;
  settle(failure?: Error): void;
}

const patienceMs = 5_000;
const mostKnown = 256;
const lastWordsMs = 2_000;
const lookEveryMs = 10;

/** What a leader knows of its followers, and the writes that wait for them. */
export class Followers {
  readonly #known = new Map<string, Known>();
  readonly #waiters = new Set<Waiter>();

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
    readonly minAcks: number,
  ) {}

  get all(): readonly FollowerState[] {
    return [...this.#known.values()];
  }

  get connected(): number {
    return [...this.#known.values()].filter(({ streams }) => streams > 0).length;
  }

  /** A follower says what it has on its disk. */
  heard(peer: Peer): void {
    const known = this.#of(peer);
    known.ackedSeq = Number(peer.ackedSeq);
    known.lastAckAt = this.clock.now();
    known.address = peer.address;
    if (this.#waiters.size === 0) return;
    const safeSeq = this.#safeSeq();
    for (const waiter of this.#waiters) if (waiter.seq <= safeSeq) waiter.settle();
  }

  /** A follower streams from us until the signal is aborted. */
  streams(peer: Peer, signal: AbortSignal): void {
    const known = this.#of(peer);
    const about = { follower: known.followerId, address: known.address };
    known.streams++;
    known.connectedAt = this.clock.now();
    this.log.info({ ...about, seq: Number(peer.ackedSeq) }, 'a follower streams');
    const gone = () => {
      known.streams--;
      if (known.streams > 0) return;
      known.connectedAt = undefined;
      this.log.warn({ ...about, acked_seq: known.ackedSeq }, 'a follower is gone');
    };
    if (signal.aborted) gone();
    else signal.addEventListener('abort', gone, { once: true });
  }

  /** See `Replication.confirmed`. */
  confirmed(seq: number, context: CallContext): Promise<void> | undefined {
    const { minAcks, clock } = this;
    if (minAcks === 0 || seq <= this.#safeSeq()) return undefined;
    const { deadline } = context;
    const leftMs = deadline === undefined ? patienceMs : deadline - clock.now();
    // The caller is to hear of it before it stops listening.
    const waitMs = deadline === undefined ? leftMs : leftMs - Math.max(20, leftMs / 10);
    return new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        seq,
        settle: (failure) => {
          timer.cancel();
          this.#waiters.delete(waiter);
          if (failure) reject(failure);
          else resolve();
        },
      };
      const timer = clock.after(Math.max(0, waitMs), () => waiter.settle(this.#tooFew(seq)));
      this.#waiters.add(waiter);
    });
  }

  /** Resolves when every follower that streams has this commit, or has had time enough for it. */
  async caughtUp(seq: number): Promise<void> {
    const { clock } = this;
    const until = clock.monotonic() + lastWordsMs;
    const isBehind = ({ streams, ackedSeq }: Known) => streams > 0 && ackedSeq < seq;
    while ([...this.#known.values()].some(isBehind) && clock.monotonic() < until) {
      await clock.sleep(lookEveryMs);
    }
  }

  /** Nobody will confirm anything any more. */
  giveUp(): void {
    for (const waiter of this.#waiters) waiter.settle(this.#tooFew(waiter.seq));
  }

  #tooFew(seq: number): Error {
    const acks = this.all.filter(({ ackedSeq }) => ackedSeq >= seq).length;
    return notEnoughAcks(seq, this.minAcks, acks);
  }

  /** The last commit that enough followers have. */
  #safeSeq(): number {
    const acked = Array.from(this.#known.values(), ({ ackedSeq }) => ackedSeq);
    return acked.sort((a, b) => b - a)[this.minAcks - 1] ?? 0;
  }

  #of({ nodeId, address }: Peer): Known {
    const known = this.#known.get(nodeId);
    if (known) return known;
    if (this.#known.size >= mostKnown) this.#forgetOne();
    const fresh: Known = {
      followerId: nodeId,
      ackedSeq: 0,
      connectedAt: undefined,
      lastAckAt: undefined,
      address,
      streams: 0,
    };
    this.#known.set(nodeId, fresh);
    return fresh;
  }

  #forgetOne(): void {
    for (const [id, { streams }] of this.#known) {
      if (streams > 0) continue;
      this.#known.delete(id);
      return;
    }
  }
}
