import {
  STATUS_CODES,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:https';
import type { TlsOptions } from 'node:tls';
import type { Clock, Timer } from '../base/clock-and-random.js';
import {
  ConnectionLimit,
  defaultMaxConnections,
  type ConnectionDrop,
  type ConnectionSlot,
  PeerMemory,
  peerMemoryLimits,
} from '../base/limits.js';
import { SocketQueues } from '../base/socket-queues.js';
import type { Log } from '../base/log.js';
import { Exchange, Peer } from './exchange.js';

/** The response to bytes that are not an HTTP request. */
interface MalformedResponse {
  contentType: string;
  body: string;
  headers?: Readonly<Record<string, string>>;
}

/**
 * Responds to bytes that are not an HTTP request, directly on the socket. Returns the status, or
 * undefined when no response is possible.
 */
function respondToClientError(
  error: Error & { code?: string },
  socket: Socket,
  isResponding: boolean,
  malformed: (status: number, detail: string) => MalformedResponse,
): number | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable || isResponding) {
    socket.destroy();
    return undefined;
  }
  const [status, detail] = meaningOf(error.code);
  const { contentType, body, headers = {} } = malformed(status, detail);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      'Connection: close\r\n' +
      `Content-Type: ${contentType}\r\n${lines.join('')}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return status;
}

function meaningOf(code: string | undefined): [status: number, detail: string] {
  switch (code ?? '') {
    case 'HPE_HEADER_OVERFLOW':
      return [431, 'The request headers are larger than 16 KiB.'];
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return [413, 'The chunk extensions of the request are too long.'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'The request did not arrive in time.'];
    default:
      return [400, 'The bytes received are not an HTTP request.'];
  }
}

export interface HttpServerLimits {
  /** Memory held for peers; pass the same object to every server of a process. */
  peerMemory?: PeerMemory | undefined;
  /** Beyond it connections are dropped, those that have not authenticated themselves first. */
  maxConnections?: number | undefined;
  /** Counts dropped connections; of `countDroppedConnections`. */
  onDrop?: ((listener: string, reason: ConnectionDrop) => void) | undefined;
  /** Timeout for receiving a complete request. */
  requestTimeoutMs?: number | undefined;
  keepAliveTimeoutMs?: number | undefined;
  /** Absent: without TLS. */
  tls?: TlsOptions | undefined;
}

interface HttpServerOptions extends HttpServerLimits {
  clock: Clock;
  log: Log;
  handle: (exchange: Exchange) => void;
  /** The response to bytes that are not an HTTP request. */
  malformed: (status: number, detail: string) => MalformedResponse;
  /** Called after the response to a malformed request. */
  onMalformed: (status: number, reason: string | undefined) => void;
}

const defaultKeepAliveMs = 72_000;
const defaultRequestTimeoutMs = 120_000;
const headersTimeoutMs = 30_000;
const handshakeTimeoutMs = 10_000;
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
  readonly #limit: ConnectionLimit;
  /** Of connections whose TLS handshake is not complete, by address. */
  readonly #handshakes = new Map<string, ConnectionSlot>();
  #rateCheck: Timer | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#memory = options.peerMemory ?? new PeerMemory(peerMemoryLimits());
    const { tls, clock, log, onDrop } = options;
    const { maxConnections = defaultMaxConnections } = options;
    this.#limit = new ConnectionLimit({ clock, log, listener: 'http', maxConnections, onDrop });
    const limits = nodeLimits(options);
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      options.handle(new Exchange(request, response, Peer.of(request.socket)!, this));
    };
    this.node = tls
      ? createSecureServer({ ...limits, ...tls, handshakeTimeout: handshakeTimeoutMs }, listener)
      : createServer(limits, listener);
    this.node.on('connection', (socket: Socket) => this.#admit(socket, tls !== undefined));
    this.node.on('secureConnection', (socket: Socket) => {
      const slot = this.#handshakes.get(addressOf(socket));
      if (slot) this.#accept(socket, slot);
    });
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

  /**
   * An authenticated peer speaks another protocol on its connection from now on; it still counts
   * against the limit. False: there is no room for it.
   */
  handOver(socket: Socket, principal: string): boolean {
    const peer = Peer.of(socket);
    if (!peer?.slot.authenticate(principal)) return false;
    // In use until it closes.
    peer.slot.enter();
    this.#peers.delete(peer);
    return true;
  }

  #admit(socket: Socket, isSecure: boolean): void {
    const slot = this.#limit.admit(socket);
    socket.on('close', () => slot.close());
    if (!isSecure) return this.#accept(socket, slot);
    // A secure socket does not name the connection that it was made of.
    const address = addressOf(socket);
    this.#handshakes.set(address, slot);
    socket.on('close', () => this.#handshakes.delete(address));
  }

  #accept(socket: Socket, slot: ConnectionSlot): void {
    const peer = new Peer(socket, this.#memory, slot);
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
      void this.#checkRates(this.#options.clock.monotonic());
      if (this.#peers.size > 0) this.#checkRatesLater();
    });
  }

  async #checkRates(now: number): Promise<void> {
    const isAnyWaiting = [...this.#peers].some(({ isWaiting }) => isWaiting);
    const queues = isAnyWaiting ? await SocketQueues.read() : undefined;
    for (const peer of this.#peers) {
      const kernelBytes = peer.isWaiting ? (queues?.heldFor(peer.socket) ?? 0) : 0;
      if (peer.isTooSlow(now, kernelBytes)) peer.socket.destroy();
    }
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
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
