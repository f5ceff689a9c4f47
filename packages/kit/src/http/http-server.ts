import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { Clock, Timer } from '../clock.js';
import { PeerMemory, peerMemoryLimits } from '../peer-memory.js';
import { respondToClientError, type MalformedResponse } from './client-error.js';
import { Exchange } from './exchange.js';
import { Peer } from './peer.js';

export interface HttpServerLimits {
  /** Memory held for peers; pass the same object to every server of a process. */
  peerMemory?: PeerMemory | undefined;
  maxConnections?: number | undefined;
  /** Timeout for receiving a complete request. */
  requestTimeoutMs?: number | undefined;
  keepAliveTimeoutMs?: number | undefined;
  /** Absent: without TLS. */
  tls?: TlsOptions | undefined;
}

export interface HttpServerOptions extends HttpServerLimits {
  clock: Clock;
  handle: (exchange: Exchange) => void;
  /** The response to bytes that are not an HTTP request. */
  malformed: (status: number, detail: string) => MalformedResponse;
  /** Called after the response to a malformed request. */
  onMalformed: (status: number, reason: string | undefined) => void;
}

export const defaultMaxConnections = 1_000;
const defaultKeepAliveMs = 72_000;
const defaultRequestTimeoutMs = 120_000;
const headersTimeoutMs = 30_000;
const rateCheckMs = 5_000;

/**
 * An HTTP/1.1 server on `node:http`: connection limit, timeouts, memory accounting for each
 * connection, and a minimum read rate.
 */
export class HttpServer {
  readonly node: Server;
  /** True once draining has begun: every response closes its connection. */
  isDraining = false;
  readonly #options: HttpServerOptions;
  readonly #memory: PeerMemory;
  readonly #peers = new Set<Peer>();
  #rateCheck: Timer | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#memory = options.peerMemory ?? new PeerMemory(peerMemoryLimits());
    const { tls } = options;
    const limits = nodeLimits(options);
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      options.handle(new Exchange(request, response, Peer.of(request.socket)!, this));
    };
    this.node = tls
      ? createSecureServer({ ...limits, ...tls }, listener)
      : createServer(limits, listener);
    this.node.maxConnections = options.maxConnections ?? defaultMaxConnections;
    this.node.on(tls ? 'secureConnection' : 'connection', (socket) => this.#accept(socket));
    this.node.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
      const isBusy = Peer.of(socket)?.isResponding ?? false;
      const status = respondToClientError(error, socket, isBusy, options.malformed);
      if (status !== undefined) options.onMalformed(status, error.code);
    });
  }

  /** Stops accepting connections. Resolves when the last one is closed. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      // Also called when the server is not listening.
      this.node.close(() => resolve());
      this.closeIdle();
    });
  }

  closeIdle(): void {
    this.node.closeIdleConnections();
    // Node counts a connection that never sent a byte as busy.
    for (const { socket, openExchanges } of this.#peers) {
      if (openExchanges === 0 && socket.bytesRead === 0) socket.destroy();
    }
  }

  closeAll(): void {
    this.node.closeAllConnections();
    for (const { socket } of this.#peers) socket.destroy();
  }

  #accept(socket: Socket): void {
    const peer = new Peer(socket, this.#memory);
    this.#peers.add(peer);
    this.#checkRatesLater();
    socket.on('close', () => {
      this.#peers.delete(peer);
      peer.account.close();
      if (this.#peers.size > 0) return;
      this.#rateCheck?.cancel();
      this.#rateCheck = undefined;
    });
  }

  #checkRatesLater(): void {
    this.#rateCheck ??= this.#options.clock.after(rateCheckMs, () => {
      this.#rateCheck = undefined;
      const now = this.#options.clock.monotonic();
      for (const peer of this.#peers) if (peer.isTooSlow(now)) peer.socket.destroy();
      if (this.#peers.size > 0) this.#checkRatesLater();
    });
  }
}

function nodeLimits(limits: HttpServerLimits): ServerOptions {
  const requestTimeout = limits.requestTimeoutMs ?? defaultRequestTimeoutMs;
  return {
    noDelay: true,
    keepAlive: true,
    keepAliveTimeout: limits.keepAliveTimeoutMs ?? defaultKeepAliveMs,
    requestTimeout,
    headersTimeout: Math.min(headersTimeoutMs, requestTimeout),
  };
}
