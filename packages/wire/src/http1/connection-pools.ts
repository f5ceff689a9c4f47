import type { DialTools } from './dial.js';
import type { PooledConnection, Exchange } from './exchange.js';
import { Http1Connection } from './connection.js';
import type { AddressPolicy } from '@millrace/kit/outbound';
import type { Target } from '@millrace/kit/outbound';

export interface PoolLimits {
  /** Max connections per origin and policy. More requests wait in a queue. */
  connectionsPerPool: number;
  /** Max pools; beyond it, idle pools are closed, least recently used first. */
  pools: number;
  /** An older connection closes after its next request, so that names are resolved again. */
  connectionAgeMs: number;
}

/** The connections to one origin under one address policy. */
export class ConnectionPool {
  readonly #connections = new Set<PooledConnection>();
  // Last in, first out, so that surplus connections become idle and close.
  readonly #idle: PooledConnection[] = [];
  readonly #waiting = new Set<Exchange>();
  lastUse = 0;

  constructor(
    readonly key: string,
    readonly origin: string,
    readonly tools: DialTools,
    readonly limits: PoolLimits,
  ) {}

  get isIdle(): boolean {
    return this.#idle.length === this.#connections.size && this.#waiting.size === 0;
  }

  acquire(exchange: Exchange): void {
    const connection = this.#idle.pop() ?? this.#newConnection();
    if (connection === undefined) this.#waiting.add(exchange);
    else connection.send(exchange);
  }

  /** Call once for each exchange, when it has settled. */
  release(exchange: Exchange): void {
    const { connection } = exchange;
    if (connection === undefined) return void this.#waiting.delete(exchange);
    connection.release();
    this.#idle.push(connection);
    // Deferred, so that aborting all requests does not start the waiting ones.
    if (this.#waiting.size > 0) queueMicrotask(() => this.#serveWaiting());
  }

  inFlight(): Exchange[] {
    const carried = [...this.#connections].flatMap((connection) => connection.exchange ?? []);
    return [...carried, ...this.#waiting];
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  #serveWaiting(): void {
    for (const exchange of this.#waiting) {
      const connection = this.#idle.pop();
      if (connection === undefined) return;
      this.#waiting.delete(exchange);
      connection.send(exchange);
    }
  }

  #newConnection(): PooledConnection | undefined {
    if (this.#connections.size >= this.limits.connectionsPerPool) return undefined;
    const connection = new Http1Connection(this.tools, this.limits.connectionAgeMs, this.origin);
    this.#connections.add(connection);
    return connection;
  }
}

/**
 * Pools by origin and policy, so that a connection opened under a permissive allowlist entry never
 * carries a request that a stricter entry allowed.
 */
export class ConnectionPools {
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #keys = new WeakMap<Target, { policy: AddressPolicy; key: string }>();
  #uses = 0;

  constructor(
    readonly tools: DialTools,
    readonly limits: PoolLimits,
  ) {}

  find(target: Target, policy: AddressPolicy): ConnectionPool {
    const key = this.#keyOf(target, policy);
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = new ConnectionPool(key, target.origin, this.tools, this.limits);
      this.#pools.set(key, pool);
    }
    pool.lastUse = ++this.#uses;
    return pool;
  }

  /** Cached by target, because building a long key is slow. */
  #keyOf(target: Target, policy: AddressPolicy): string {
    const known = this.#keys.get(target);
    if (known?.policy === policy) return known.key;
    const key = `${target.origin} ${policy.key}`;
    this.#keys.set(target, { policy, key });
    return key;
  }

  acquire(pool: ConnectionPool, exchange: Exchange): void {
    pool.acquire(exchange);
    this.#trim();
  }

  release(pool: ConnectionPool, exchange: Exchange): void {
    pool.release(exchange);
    this.#trim();
  }

  /** Every exchange that has not settled. */
  inFlight(): Exchange[] {
    return [...this.#pools.values()].flatMap((pool) => pool.inFlight());
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.close();
    this.#pools.clear();
  }

  #trim(): void {
    if (this.#pools.size <= this.limits.pools) return;
    const idle = [...this.#pools.values()].filter((pool) => pool.isIdle);
    idle.sort((one, other) => one.lastUse - other.lastUse);
    for (const pool of idle.slice(0, this.#pools.size - this.limits.pools)) {
      this.#pools.delete(pool.key);
      pool.close();
    }
  }
}
