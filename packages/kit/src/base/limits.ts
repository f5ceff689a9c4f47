import type { Clock, Timer } from './clock-and-random.js';
import type { Log } from './log.js';
import type { Metrics } from './metrics.js';

/** Why a server closed a connection, or refused a request on it. */
export type ConnectionDrop = 'unauthenticated' | 'idle' | 'silent' | 'refused';

interface ConnectionLimitOptions {
  clock: Clock;
  log: Log;
  /** Names the listener in logs and metrics: http, grpc, socket. */
  listener: string;
  maxConnections: number;
  /** Counts what was dropped; of `countDroppedConnections`. */
  onDrop?: ((listener: string, reason: ConnectionDrop) => void) | undefined;
}

/** A connection as its limit sees it. */
interface LimitedConnection {
  readonly bytesRead: number;
  destroy(): unknown;
}

export const defaultMaxConnections = 1_000;
const firstByteMs = 5_000;
const sweepMs = 500;
const logEveryMs = 10_000;
const maxReserved = 64;

/**
 * Limits the open connections of a listener. A connection is a stranger until it has made an
 * authenticated request. When a new one has no room, the oldest stranger is dropped, then the
 * oldest authenticated one without a request in flight. Public requests, such as health checks,
 * are answered at any number of connections: strangers have some slots beyond the maximum. One
 * principal has at most 7/8 of the connections, so that its long polls do not lock out the others.
 */
export class ConnectionLimit {
  /** Oldest first. */
  readonly #strangers = new Set<ConnectionSlot>();
  readonly #busy = new Set<ConnectionSlot>();
  /** Authenticated, without a request in flight; longest idle first. */
  readonly #idle = new Set<ConnectionSlot>();
  /** Connections of each principal. */
  readonly #held = new Map<string, number>();
  #sweep: Timer | undefined;
  #dropped: Partial<Record<ConnectionDrop, number>> = {};
  #loggedAt = -Infinity;

  /** Connections that strangers always have, beyond the maximum if need be. */
  readonly #reserved: number;

  constructor(private readonly options: ConnectionLimitOptions) {
    this.#reserved = Math.min(maxReserved, Math.ceil(options.maxConnections / 8));
  }

  get openCount(): number {
    return this.#strangers.size + this.#authenticatedCount;
  }

  get #authenticatedCount(): number {
    return this.#busy.size + this.#idle.size;
  }

  /** Counts a connection that was just accepted. Call `close` of its slot when it closes. */
  admit(connection: LimitedConnection): ConnectionSlot {
    const { maxConnections } = this.options;
    const limit = Math.max(maxConnections, this.#authenticatedCount + this.#reserved);
    if (this.openCount >= limit) {
      const [oldest] = this.#strangers;
      if (oldest) this.#drop(oldest, 'unauthenticated');
    }
    const slot = new ConnectionSlot(this, connection, this.options.clock.monotonic());
    this.#strangers.add(slot);
    this.#sweepLater();
    return slot;
  }

  /**
   * A stranger has authenticated itself as `principal`. False: there is no room, and its request is
   * refused.
   */
  authenticate(slot: ConnectionSlot, principal?: string): boolean {
    if (!this.#strangers.has(slot)) return true;
    const { maxConnections } = this.options;
    const isFull = this.#authenticatedCount >= maxConnections;
    const share = Math.ceil((maxConnections * 7) / 8);
    const held = principal === undefined ? 0 : (this.#held.get(principal) ?? 0);
    if (isFull || held >= share) {
      // Its own idle connection if it has its share already, else the longest idle one.
      const idle = [...this.#idle].find((each) => isFull || each.principal === principal);
      if (!idle) {
        this.#note('refused');
        return false;
      }
      this.#drop(idle, 'idle');
    }
    this.#strangers.delete(slot);
    slot.principal = principal;
    if (principal !== undefined) this.#held.set(principal, (this.#held.get(principal) ?? 0) + 1);
    (slot.openRequests > 0 ? this.#busy : this.#idle).add(slot);
    return true;
  }

  /** The first request in flight has begun, or the last one has ended. */
  update(slot: ConnectionSlot): void {
    if (slot.openRequests > 0) {
      if (this.#idle.delete(slot)) this.#busy.add(slot);
    } else if (this.#busy.delete(slot)) this.#idle.add(slot);
  }

  remove(slot: ConnectionSlot): void {
    for (const slots of [this.#strangers, this.#busy, this.#idle]) slots.delete(slot);
    const { principal } = slot;
    if (principal !== undefined) {
      const left = this.#held.get(principal)! - 1;
      if (left === 0) this.#held.delete(principal);
      else this.#held.set(principal, left);
      slot.principal = undefined;
    }
    if (this.openCount > 0) return;
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #drop(slot: ConnectionSlot, reason: ConnectionDrop): void {
    this.remove(slot);
    this.#note(reason);
    slot.connection.destroy();
  }

  /** Drops connections that sent nothing for too long. */
  #sweepLater(): void {
    this.#sweep ??= this.options.clock.after(sweepMs, () => {
      this.#sweep = undefined;
      const acceptedBefore = this.options.clock.monotonic() - firstByteMs;
      for (const slot of this.#strangers) {
        if (slot.acceptedAt > acceptedBefore) break;
        if (slot.connection.bytesRead > 0) continue;
        // After a stall of this process bytes may have arrived that the event loop reads next.
        if (slot.isSuspect) this.#drop(slot, 'silent');
        slot.isSuspect = true;
      }
      if (this.#strangers.size > 0) this.#sweepLater();
    });
  }

  /** Counts every drop and logs at most one line in a few seconds. */
  #note(reason: ConnectionDrop): void {
    const { clock, log, listener, maxConnections, onDrop } = this.options;
    onDrop?.(listener, reason);
    this.#dropped[reason] = (this.#dropped[reason] ?? 0) + 1;
    const now = clock.monotonic();
    if (now - this.#loggedAt < logEveryMs) return;
    const counts = { ...this.#dropped, open: this.openCount, max_connections: maxConnections };
    // A client that only opens a connection and leaves it is not worth a warning.
    const isFull = Object.keys(this.#dropped).some((each) => each !== 'silent');
    log[isFull ? 'warn' : 'info']({ listener, ...counts }, 'connections dropped');
    this.#loggedAt = now;
    this.#dropped = {};
  }
}

/** One open connection. */
export class ConnectionSlot {
  /** Who has authenticated itself on it, where the server knows. */
  principal: string | undefined;
  /** It had sent nothing when its time was up. */
  isSuspect = false;
  #openRequests = 0;

  constructor(
    private readonly limit: ConnectionLimit,
    readonly connection: LimitedConnection,
    readonly acceptedAt: number,
  ) {}

  get openRequests(): number {
    return this.#openRequests;
  }

  /** A request has begun. */
  enter(): void {
    if (++this.#openRequests === 1) this.limit.update(this);
  }

  /** A request has ended. */
  leave(): void {
    if (--this.#openRequests === 0) this.limit.update(this);
  }

  /** The caller of a request is known. False: refuse it, the server has no connection for it. */
  authenticate(principal?: string): boolean {
    return this.limit.authenticate(this, principal);
  }

  close(): void {
    this.limit.remove(this);
  }
}

export const connectionsExceeded =
  'The server has its maximum of open connections, and all of them are in use. Retry later, or ' +
  'raise max_connections.';

type CountDrop = (listener: string, reason: ConnectionDrop) => void;
const counters = new WeakMap<Metrics, CountDrop>();

/** The metric of dropped connections, which all listeners of a server share. */
export function countDroppedConnections(metrics: Metrics): CountDrop {
  const known = counters.get(metrics);
  if (known) return known;
  const counter = metrics.counter({
    name: 'connections_dropped_total',
    help:
      'Connections dropped at the maximum (unauthenticated, idle) or because they sent nothing ' +
      '(silent), and requests refused because no connection was free (refused).',
    labelNames: ['listener', 'reason'],
  });
  const count: CountDrop = (listener, reason) => counter.inc({ listener, reason });
  counters.set(metrics, count);
  return count;
}

/**
 * Limits on what a server holds in memory for its peers: unfinished requests, decompressed
 * messages and unsent responses. One budget per process; one account per connection.
 */
interface PeerMemoryLimits {
  /** For all connections together. */
  totalBytes: number;
  /** For one connection. */
  connectionBytes: number;
}

const defaultPeerMemoryBytes = 256 * 1024 * 1024;

/** A connection may hold a quarter of the process budget. */
export function peerMemoryLimits(totalBytes = defaultPeerMemoryBytes): PeerMemoryLimits {
  return { totalBytes, connectionBytes: Math.floor(totalBytes / 4) };
}

export class PeerMemory {
  #heldBytes = 0;

  constructor(readonly limits: PeerMemoryLimits) {}

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** True while all connections together hold more than the process limit. */
  get isOverLimit(): boolean {
    return this.#heldBytes > this.limits.totalBytes;
  }

  /** Opens the account of one connection. Close it when the connection closes. */
  openAccount(): PeerMemoryAccount {
    return new PeerMemoryAccount(this.limits, {
      heldBytes: () => this.#heldBytes,
      add: (bytes) => (this.#heldBytes += bytes),
    });
  }
}

const nearlyFull = 7 / 8;

interface ProcessTotal {
  heldBytes(): number;
  add(bytes: number): void;
}

export class PeerMemoryAccount {
  #heldBytes = 0;
  #isClosed = false;

  constructor(
    private readonly limits: PeerMemoryLimits,
    private readonly total: ProcessTotal,
  ) {}

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Reserves `bytes`, or returns false when a limit would be passed. Release what was reserved. */
  tryReserve(bytes: number): boolean {
    const { totalBytes, connectionBytes } = this.limits;
    if (this.#heldBytes + bytes > connectionBytes) return false;
    if (this.total.heldBytes() + bytes > totalBytes) return false;
    this.reserve(bytes);
    return true;
  }

  /** Counts bytes that exist already, such as a response, even past the limit. */
  reserve(bytes: number): void {
    if (this.#isClosed) return;
    this.#heldBytes += bytes;
    this.total.add(bytes);
  }

  /** True while the connection or the process holds more than its limit. */
  get isOverLimit(): boolean {
    const { totalBytes, connectionBytes } = this.limits;
    return this.#heldBytes > connectionBytes || this.total.heldBytes() > totalBytes;
  }

  /**
   * True when the connection or the process holds more than 7/8 of its limit: new requests are
   * refused then, before work is done for a response that could not be held.
   */
  get isNearlyFull(): boolean {
    const { totalBytes, connectionBytes } = this.limits;
    return (
      this.#heldBytes > connectionBytes * nearlyFull ||
      this.total.heldBytes() > totalBytes * nearlyFull
    );
  }

  release(bytes: number): void {
    if (this.#isClosed) return;
    const released = Math.min(bytes, this.#heldBytes);
    this.#heldBytes -= released;
    this.total.add(-released);
  }

  /** Releases everything this connection still holds. */
  close(): void {
    this.release(this.#heldBytes);
    this.#isClosed = true;
  }
}

/** A peer that reads slower than this while responses wait is disconnected. */
const minReadBytesPerSecond = 1024;
const readRateWindowMs = 30_000;

/**
 * Tracks how fast one peer reads while responses wait for it. Time in which nothing waits does
 * not count. Times come from the monotonic clock.
 */
export class ReadRate {
  #windowStartedAt: number | undefined;
  #bytesInWindow = 0;

  /** Responses are waiting for the peer now. Does nothing while a window is open already. */
  waiting(now: number): void {
    this.#windowStartedAt ??= now;
  }

  /** The peer took `bytes`. */
  taken(bytes: number): void {
    this.#bytesInWindow += bytes;
  }

  /** Nothing waits any more. */
  drained(): void {
    this.#windowStartedAt = undefined;
    this.#bytesInWindow = 0;
  }

  /** Call periodically: judges each whole window once and starts the next. */
  isTooSlow(now: number): boolean {
    if (this.#windowStartedAt === undefined) return false;
    const elapsedMs = now - this.#windowStartedAt;
    if (elapsedMs < readRateWindowMs) return false;
    const bytesPerSecond = (this.#bytesInWindow * 1000) / elapsedMs;
    this.#windowStartedAt = now;
    this.#bytesInWindow = 0;
    return bytesPerSecond < minReadBytesPerSecond;
  }
}

const leastShare = 0.05;
const cut = 0.5;
const growth = 0.1;

/**
 * The share of calls that an overloaded server admits. It shrinks in every interval that ends
 * overloaded and grows again more slowly. Times are monotonic milliseconds.
 */
export class AdmittedShare {
  #share = 1;
  #credit = 0;
  #intervalStart = 0;

  constructor(readonly intervalMs: number) {}

  /** From 0 to 1. */
  get share(): number {
    return this.#share;
  }

  /** Length of the current interval. */
  elapsedMs(now: number): number {
    return now - this.#intervalStart;
  }

  endInterval(isOverloaded: boolean, now: number): void {
    this.#share = isOverloaded
      ? Math.max(leastShare, this.#share * cut)
      : Math.min(1, this.#share + growth);
    this.#intervalStart = now;
  }

  /** After several intervals without a call nothing waits. Returns whether there were. */
  resetIfIdle(now: number): boolean {
    if (this.elapsedMs(now) <= 4 * this.intervalMs) return false;
    this.#share = 1;
    this.#intervalStart = now;
    return true;
  }

  /** Whether one more call is admitted. */
  admits(): boolean {
    if (this.#share === 1) return true;
    this.#credit += this.#share;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }
}

/**
 * Measures the duration of an event loop turn from its first call on, which is how long other calls
 * that arrived at the same time may have waited. One measurement per turn with a call; none while
 * idle.
 */
export class TurnProbe {
  #isArmed = false;

  constructor(
    private readonly clock: Clock,
    private readonly observe: (delayMs: number, now: number) => void,
  ) {}

  /** Starts a measurement unless one is running in this turn. */
  arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    const since = this.clock.monotonic();
    setImmediate(() => {
      this.#isArmed = false;
      const now = this.clock.monotonic();
      this.observe(now - since, now);
    });
  }
}
