import type { Clock, Timer } from './clock.js';
import type { Log } from './log.js';
import type { Metrics } from './metrics.js';

/** Why a server closed a connection, or refused a request on it. */
export type ConnectionDrop = 'unauthenticated' | 'idle' | 'silent' | 'refused';

export interface ConnectionLimitOptions {
  clock: Clock;
  log: Log;
  /** Names the listener in logs and metrics: http, grpc, socket. */
  listener: string;
  maxConnections: number;
  /** Counts what was dropped; of `countDroppedConnections`. */
  onDrop?: ((listener: string, reason: ConnectionDrop) => void) | undefined;
}

/** A connection as its limit sees it. */
export interface LimitedConnection {
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
