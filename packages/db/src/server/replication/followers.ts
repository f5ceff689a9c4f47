import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Peer } from '@millrace/contract/db';
import type { CallContext } from '../service/call.js';
import type { FollowerState } from '../service/replication.js';
import { notEnoughAcks, switchingCopy, noFirstCopy } from './refusals.js';
import type { BackupHeader, BackupPart } from '@millrace/engine/maintain/backup/frames';
import type { Database } from '@millrace/engine/api/database';
import { lineageOf } from '@millrace/engine/storage/file/tables';

/** Retains the leader's change log from `seq` on. */
interface LogPin {
  seq: number;
  release(): void;
}

interface Known extends FollowerState {
  /** Held while it is connected: it needs the commits after `ackedSeq`. */
  pin: LogPin | undefined;
  /** Monotonic time of the last ack. */
  ackedAt: number;
  /** Open streams; a new one may start before the old one is detected as dead. */
  streams: number;
}

interface Waiter {
  seq: number;
  settle(failure?: Error): void;
}

const ackTimeoutMs = 5_000;
const maxKnown = 256;
const catchUpTimeoutMs = 2_000;
const pollIntervalMs = 10;

/** The leader's followers and the writes that wait for their acks. */
export class Followers {
  readonly #known = new Map<string, Known>();
  readonly #waiters = new Set<Waiter>();
  /** Acks of other followers do not count; undefined: all count. */
  #voters: ReadonlySet<string> | undefined;

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

  /** Restricts whose acks count to the members of a cluster. */
  set voters(voters: ReadonlySet<string>) {
    this.#voters = voters;
  }

  /** Forgets all acks: a new epoch has begun, in which none was given yet. */
  resetAcks(): void {
    for (const known of this.#known.values()) known.ackedSeq = 0;
  }

  /** A follower acknowledged its last commit on disk. */
  onAck(peer: Peer): void {
    const known = this.#of(peer);
    known.ackedSeq = Number(peer.ackedSeq);
    if (known.pin) known.pin.seq = known.ackedSeq + 1;
    known.lastAckAt = this.clock.now();
    known.ackedAt = this.clock.monotonic();
    known.address = peer.address;
    if (this.#waiters.size === 0) return;
    const { safeSeq } = this;
    for (const waiter of this.#waiters) if (waiter.seq <= safeSeq) waiter.settle();
  }

  /** A follower opened a stream, which ends with the signal. */
  onStream(peer: Peer, signal: AbortSignal, pinLog: (seq: number) => LogPin): void {
    const known = this.#of(peer);
    known.pin ??= pinLog(Number(peer.ackedSeq) + 1);
    const fields = { follower: known.followerId, address: known.address };
    known.streams++;
    known.connectedAt = this.clock.now();
    this.log.info({ ...fields, seq: Number(peer.ackedSeq) }, 'follower connected');
    const disconnect = () => {
      known.streams--;
      if (known.streams > 0) return;
      known.connectedAt = undefined;
      known.pin?.release();
      known.pin = undefined;
      this.log.warn({ ...fields, acked_seq: known.ackedSeq }, 'follower disconnected');
    };
    if (signal.aborted) disconnect();
    else signal.addEventListener('abort', disconnect, { once: true });
  }

  /** See `Replication.confirmed`. */
  confirmed(seq: number, context: CallContext): Promise<void> | undefined {
    const { clock } = this;
    if (seq <= this.safeSeq) return undefined;
    const { deadline } = context;
    const leftMs = deadline === undefined ? ackTimeoutMs : deadline - clock.now();
    // Ends before the caller's deadline, so that it receives the refusal.
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
      const timer = clock.after(Math.max(0, waitMs), () => waiter.settle(this.#notEnough(seq)));
      this.#waiters.add(waiter);
    });
  }

  /** Resolves when every connected follower has this commit, or on timeout. */
  async caughtUp(seq: number): Promise<void> {
    const { clock } = this;
    const until = clock.monotonic() + catchUpTimeoutMs;
    const isBehind = ({ streams, ackedSeq }: Known) => streams > 0 && ackedSeq < seq;
    while ([...this.#known.values()].some(isBehind) && clock.monotonic() < until) {
      await clock.sleep(pollIntervalMs);
    }
  }

  /** Rejects all waiting writes: no more acks will arrive. */
  rejectWaiters(): void {
    for (const waiter of this.#waiters) waiter.settle(this.#notEnough(waiter.seq));
  }

  #notEnough(seq: number): Error {
    const acks = this.#acked().filter((ackedSeq) => ackedSeq >= seq).length;
    return notEnoughAcks(seq, this.minAcks, acks);
  }

  /** The last commit that enough followers have on disk; Infinity when none is needed. */
  get safeSeq(): number {
    if (this.minAcks === 0) return Infinity;
    return this.#acked().sort((a, b) => b - a)[this.minAcks - 1] ?? 0;
  }

  /** Whether enough followers have reported within this time, as they do every second. */
  hasRecentAcks(withinMs: number): boolean {
    const since = this.clock.monotonic() - withinMs;
    const recent = [...this.#known.values()].filter(({ followerId, ackedAt }) => {
      return ackedAt >= since && (this.#voters?.has(followerId) ?? true);
    });
    return recent.length >= this.minAcks;
  }

  #acked(): number[] {
    const acked: number[] = [];
    for (const { followerId, ackedSeq } of this.#known.values()) {
      if (this.#voters?.has(followerId) ?? true) acked.push(ackedSeq);
    }
    return acked;
  }

  #of({ nodeId, address }: Peer): Known {
    const known = this.#known.get(nodeId);
    if (known) return known;
    if (this.#known.size >= maxKnown) this.#evictOne();
    const fresh: Known = {
      followerId: nodeId,
      ackedSeq: 0,
      connectedAt: undefined,
      lastAckAt: undefined,
      pin: undefined,
      address,
      ackedAt: -Infinity,
      streams: 0,
    };
    this.#known.set(nodeId, fresh);
    return fresh;
  }

  #evictOne(): void {
    for (const [id, { streams }] of this.#known) {
      if (streams > 0) continue;
      this.#known.delete(id);
      return;
    }
  }
}

/** Handle to the node's current database, which a follower replaces with each full copy. */
export class DatabaseHandle {
  #current: Database;
  #isServed = true;
  /** Called when the database or `isServed` changes. */
  onChange: () => void = () => undefined;

  #lineageId: string;

  constructor(
    first: Database,
    private readonly open: () => Promise<Database>,
  ) {
    this.#current = first;
    this.#lineageId = lineageOf(first.core.tables);
  }

  /** The current database, even if it has nothing to serve yet. */
  get current(): Database {
    return this.#current;
  }

  /** The database to serve. Refuses NOT_READY while there is none. */
  get served(): Database {
    if (!this.#isServed) throw noFirstCopy();
    if (!this.#current.isOpen) throw switchingCopy();
    return this.#current;
  }

  /** Lineage id, also available while the database is being replaced. */
  get lineageId(): string {
    return this.#lineageId;
  }

  get isServed(): boolean {
    return this.#isServed;
  }

  set isServed(isServed: boolean) {
    if (isServed === this.#isServed) return;
    this.#isServed = isServed;
    this.onChange();
  }

  /** Replaces the database with a backup of another node. Serves the old data until then. */
  async replace(parts: AsyncIterable<BackupPart>, source: string): Promise<BackupHeader> {
    const header = await this.#current.giveWayTo(parts, source);
    await this.reopen();
    return header;
  }

  /** Reopens the database after a replacement; does nothing while it is open. */
  async reopen(): Promise<void> {
    if (this.#current.isOpen) return;
    this.#current = await this.open();
    this.#lineageId = lineageOf(this.#current.core.tables);
    this.#isServed = true;
    this.onChange();
  }

  close(): Promise<void> {
    return this.#current.close();
  }
}
