import { type DialTools, Dial } from './dial.js';
import type { PooledConnection, Exchange, OutgoingRequest } from './exchange.js';
import type { AddressPolicy, Target } from '@millrace/kit/outbound';
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import errors from 'undici/lib/core/errors.js';
import Client from 'undici/lib/dispatcher/client.js';
import { Failure, failureOf, malformed, prematureClose } from '../base/socket.js';

export interface PoolLimits {
  /** Max connections per origin and policy. More requests wait in a queue. */
  connectionsPerPool: number;
  /** Max pools; beyond it, idle pools are closed, least recently used first. */
  pools: number;
  /** An older connection closes after its next request, so that names are resolved again. */
  connectionAgeMs: number;
}

/** The connections to one origin under one address policy. */
class ConnectionPool {
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

const maxHeaderBytes = 16_384;
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH']);

/**
 * A connection to one origin, opened for a request and reused for later ones, one request at a
 * time. It is opened under the policy and the timeouts of that request. Requests are never retried.
 */
class Http1Connection implements PooledConnection {
  /** The request in flight. */
  exchange: Exchange | undefined;
  readonly #client: InstanceType<typeof Client>;
  socket: Socket | undefined;
  #remoteIp = '';
  #openedAt = 0;

  constructor(
    readonly tools: DialTools,
    readonly maxAgeMs: number,
    origin: string,
  ) {
    // The deadline of a request covers all of it, so undici has no timeouts but that of idleness.
    this.#client = new Client(origin, {
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: maxHeaderBytes,
      connect: (_, done) => this.#dial(done),
    });
  }

  send(exchange: Exchange): void {
    this.exchange = exchange;
    exchange.connection = this;
    const isOpen = this.#isOpen();
    exchange.remoteIp = isOpen ? this.#remoteIp : undefined;
    // An old connection closes after this request, so that the name is resolved again.
    const isOld = isOpen && this.tools.clock.monotonic() - this.#openedAt >= this.maxAgeMs;
    const { method, path, headers, body = null } = exchange.params.request;
    const reset = isOld || endsConnection(exchange.params.request);
    // On a used connection undici waits a turn of the event loop, and sees a pending close first.
    this.#client.dispatch(
      { method, path, headers, body, reset, blocking: false },
      new ResponseHandler(this, exchange),
    );
  }

  /** Detaches a settled request, so that an idle connection does not hold its response. */
  release(): void {
    this.exchange = undefined;
  }

  /** Closes the connection, if there is one. */
  close(): void {
    this.socket?.destroy();
  }

  #isOpen(): boolean {
    return this.socket !== undefined && !this.socket.destroyed;
  }

  #dial(done: (...result: [null, Socket] | [Error, null]) => void): void {
    const { exchange } = this;
    if (exchange === undefined)
      return done(new Failure('ABORTED', 'The request was aborted'), null);
    exchange.dial = new Dial(exchange.params, this.tools, (result) => {
      exchange.dial = undefined;
      if (result instanceof Failure) return done(result, null);
      this.socket = result.socket;
      this.#remoteIp = exchange.remoteIp = result.remoteIp;
      this.#openedAt = this.tools.clock.monotonic();
      done(null, result.socket);
    });
  }
}

/** Passes the response to its request, which may have settled before. */
class ResponseHandler implements Dispatcher.DispatchHandler {
  constructor(
    readonly connection: Http1Connection,
    readonly exchange: Exchange,
  ) {}

  onConnect(abort: () => void): void {
    if (this.exchange.isSettled) abort();
    else this.exchange.isSent = true;
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    if (status >= 200) this.exchange.headArrived(status, headers);
    return true;
  }

  onData(bytes: Buffer): boolean {
    if (this.exchange.bodyArrived(bytes)) return true;
    this.connection.close();
    this.exchange.completed(true);
    return false;
  }

  onComplete(): void {
    // A connection whose request is not fully written cannot be reused.
    if (this.connection.socket?.writableLength !== 0) this.connection.close();
    this.exchange.completed(false);
  }

  onError(error: Error): void {
    const isMismatch = error instanceof errors.ResponseContentLengthMismatchError;
    // undici expects the body that the Content-Length of a 304 is about.
    if (isMismatch && this.exchange.status === 304) return this.exchange.completed(false);
    const isCut = isMismatch && this.connection.socket?.readableEnded === true;
    this.exchange.failed(isCut ? prematureClose() : requestFailure(error));
  }
}

/**
 * Some servers send a body in response to HEAD, or ignore the body of methods that usually have
 * none. The leftover bytes would be parsed as the next message, so the connection is closed.
 */
function endsConnection({ method, body }: OutgoingRequest): boolean {
  if (method === 'HEAD') return true;
  return body !== undefined && body.length > 0 && !methodsWithBody.has(method);
}

/** Maps the errors of undici. */
function requestFailure(error: Error): Failure {
  if (error instanceof errors.HTTPParserError) {
    return error.message.includes('EOF') ? prematureClose() : malformed(error.message);
  }
  // The other texts of undici are "bad response" and "bad upgrade".
  if (error instanceof errors.SocketError && error.message === 'other side closed') {
    return prematureClose();
  }
  return error instanceof errors.UndiciError ? malformed(error.message) : failureOf(error);
}
