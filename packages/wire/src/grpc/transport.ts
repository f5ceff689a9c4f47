import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import {
  chunksOf,
  SharedBuffer,
  type ByteSource,
  DeferredFlush,
  ConnectionMemory,
  kernelBytesFor,
} from '../base/socket.js';
import { FrameWriter, type Http2Stream } from '../http2/stream.js';
import type { SendQueueParts } from '../http2/send-queue.js';
import type { Timer, Clock } from '@millrace/kit/clock';
import type { ConnectionSlot, ConnectionLimit } from '@millrace/kit/connection-limit';
import { Http2Connection } from '../http2/connection.js';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import { GrpcCall, type CallRequest, Outbox } from './call.js';
import {
  defaultAbortReasons,
  type CallAbortReasons,
  type CallHeaders,
  type Methods,
  explained,
  isEncoding,
} from './methods.js';
import { HeaderList } from '../http2/hpack.js';
import { invalid, faultStatus, type GrpcStatus } from '../base/messages.js';

const handshakeTimeoutMs = 10_000;

/** Server certificate. With a client CA, clients must present a certificate (mTLS). */
export interface TlsKeys {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly clientCa: Buffer | undefined;
}

/** Serves gRPC on sockets that are accepted elsewhere and passed to `take`. */
export class GrpcTransport {
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<Connection>();
  readonly #slots = new ConnectionSlots();
  readonly #secure: Server | undefined;
  readonly #sending: SendQueueParts = { writer: new FrameWriter(), turn: new DeferredFlush() };
  readonly #buffer = new SharedBuffer();
  #isClosing = false;
  #onEmpty: (() => void) | undefined;

  constructor(
    private readonly parts: GrpcServerOptions,
    tls?: TlsKeys,
  ) {
    this.#secure = tls && secureServer(tls, (socket) => this.#open(chunksOf(socket)));
  }

  take(accepted: Socket): void {
    this.#take(accepted, this.#secure ? undefined : this.#buffer.read(accepted));
  }

  /** Takes a socket on which HTTP/1.1 was spoken before, and TLS if that is used. */
  takeUpgraded(socket: Socket): void {
    // Servers of HTTP/1.1 leave half-open sockets to the user.
    socket.on('end', () => socket.end());
    this.#take(socket, chunksOf(socket));
  }

  #take(accepted: Socket, source: ByteSource | undefined): void {
    const socket = source?.socket ?? accepted;
    socket.on('error', ignore);
    this.#sockets.add(socket);
    this.#slots.admit(this.parts.connections, socket);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#onEmpty?.();
    });
    if (source) this.#open(source);
    else this.#secure?.emit('connection', socket);
  }

  /** Lets calls in flight finish; `signal` aborts them. Resolves when all connections are closed. */
  async close(signal: AbortSignal): Promise<void> {
    this.#isClosing = true;
    for (const connection of this.#connections) connection.close();
    const cut = () => {
      for (const socket of this.#sockets) socket.destroy();
    };
    if (signal.aborted) cut();
    signal.addEventListener('abort', cut, { once: true });
    if (this.#sockets.size > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    signal.removeEventListener('abort', cut);
  }

  #open(source: ByteSource): void {
    const { socket } = source;
    if (this.#isClosing || socket.destroyed) return void socket.destroy();
    const slot = this.#slots.of(socket);
    const connection = new Connection(source, this.parts, this.#sending, slot);
    this.#connections.add(connection);
    socket.on('close', () => this.#connections.delete(connection));
  }
}

/** It never listens: sockets are passed to it for the TLS handshake. */
function secureServer(tls: TlsKeys, open: (socket: TLSSocket) => void): Server {
  const { cert, key, clientCa } = tls;
  const callers = clientCa && { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  const handshakeTimeout = handshakeTimeoutMs;
  return createServer(
    { cert, key, ALPNProtocols: ['h2'], handshakeTimeout, ...callers },
    (socket) => {
      socket.on('error', ignore);
      if (socket.alpnProtocol === 'h2') open(socket);
      else socket.destroy();
    },
  );
}

function ignore(): void {
  // The close event follows and is handled.
}

const checkMs = 5_000;
// A dead connection is detected within a minute.
const pingMs = 30_000;
const pongMs = 20_000;

/** One client connection, after TLS. */
class Connection {
  readonly #http2: Http2Connection;
  #check: Timer | undefined;
  #pingedAt: number;
  #pong: Timer | undefined;

  constructor(
    private readonly source: ByteSource,
    private readonly parts: GrpcServerOptions,
    sending: SendQueueParts,
    slot: ConnectionSlot | undefined,
  ) {
    const { socket } = source;
    const { remoteAddress = 'unknown', remotePort } = socket;
    const peer = remotePort === undefined ? remoteAddress : `${remoteAddress}:${remotePort}`;
    this.#http2 = new Http2Connection(source, {
      clock: parts.clock,
      memory: new ConnectionMemory(parts.memory),
      writer: sending.writer,
      turn: sending.turn,
      open: (stream, headers) => openCall(stream, headers, peer, parts, slot),
    });
    this.#http2.onPong = () => this.#pong?.cancel();
    this.#pingedAt = parts.clock.monotonic();
    socket.on('close', () => this.#stopChecks());
    this.#startCheck();
  }

  /** Accepts no more calls, and closes when the calls in flight have ended. */
  close(): void {
    this.#http2.close();
  }

  #startCheck(): void {
    const { clock } = this.parts;
    this.#check = clock.after(checkMs, () => {
      const now = clock.monotonic();
      this.#http2.checkTimeouts(now);
      void this.#checkReader(now);
      if (now - this.#pingedAt >= pingMs) this.#ping(now);
      this.#startCheck();
    });
  }

  async #checkReader(now: number): Promise<void> {
    const { socket } = this.source;
    const isWaiting = this.#http2.hasWaitingResponse;
    this.#http2.checkReader(now, isWaiting ? await kernelBytesFor(socket, this.parts.clock) : 0);
  }

  #ping(now: number): void {
    if (this.#http2.isOver) return;
    this.#pingedAt = now;
    this.#pong = this.parts.clock.after(pongMs, () => this.source.socket.destroy());
    this.#http2.ping();
  }

  #stopChecks(): void {
    this.#check?.cancel();
    this.#pong?.cancel();
  }
}

/** The slots of accepted sockets. A secure socket has the slot of the one it was made of. */
class ConnectionSlots {
  readonly #bySocket = new WeakMap<Socket, ConnectionSlot>();
  readonly #byAddress = new Map<string, ConnectionSlot>();

  /** Counts an accepted socket until it closes. */
  admit(limit: ConnectionLimit | undefined, socket: Socket): void {
    if (!limit) return;
    const slot = limit.admit(socket);
    const address = addressOf(socket);
    this.#bySocket.set(socket, slot);
    // A Unix socket has no address, and is never secure.
    if (address !== undefined) this.#byAddress.set(address, slot);
    socket.on('close', () => {
      slot.close();
      if (address !== undefined) this.#byAddress.delete(address);
    });
  }

  of(socket: Socket): ConnectionSlot | undefined {
    const known = this.#bySocket.get(socket);
    if (known) return known;
    const address = addressOf(socket);
    return address === undefined ? undefined : this.#byAddress.get(address);
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remoteAddress === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}

interface GrpcServerOptions {
  readonly clock: Clock;
  readonly methods: Methods;
  /** Memory held for all peers of the process. */
  readonly memory: PeerMemory;
  readonly abortReasons?: CallAbortReasons;
  /** Limits the open connections; without it there is no limit. */
  readonly connections?: ConnectionLimit;
}

/** Starts the call of a stream; undefined when it was rejected. */
function openCall(
  stream: Http2Stream,
  headers: CallHeaders,
  peer: string,
  options: GrpcServerOptions,
  slot?: ConnectionSlot,
): GrpcCall | undefined {
  const { clock, methods, abortReasons = defaultAbortReasons } = options;
  const known = headers.parsed as CallRequest | undefined;
  const request = known ?? parseRequest(stream, headers, methods, abortReasons);
  if (!request) return undefined;
  headers.parsed = request;
  const call = new GrpcCall(stream, request, peer, clock, abortReasons, slot);
  call.begin();
  return call;
}

/** Parses the request headers; returns undefined after sending an error. */
function parseRequest(
  stream: Http2Stream,
  headers: CallHeaders,
  methods: Methods,
  reasons: CallAbortReasons,
): CallRequest | undefined {
  if (headers[':method'] !== 'POST') return sendPlainError(stream, 405);
  if (!isGrpc(headers['content-type'])) return sendPlainError(stream, 415);
  const path = headers[':path'] ?? '';
  const method = methods.get(path);
  if (!method) {
    const text = `Method ${shown(path)} does not exist.`;
    return refuse(stream, faultStatus('UNIMPLEMENTED', text, 'unknown_method'), reasons);
  }
  const timeout = headers['grpc-timeout'];
  const timeoutMs = timeout === undefined ? undefined : timeoutMsOf(timeout);
  if (timeout !== undefined && timeoutMs === undefined) {
    const text = `grpc-timeout must be up to 8 digits and one of H, M, S, m, u, n, not ${shown(timeout)}.`;
    return refuse(stream, invalid(text), reasons);
  }
  const encoding = headers['grpc-encoding'] ?? 'identity';
  if (!isEncoding(encoding)) {
    const text = `grpc-encoding ${shown(encoding)} is not supported; see grpc-accept-encoding.`;
    return refuse(stream, faultStatus('UNIMPLEMENTED', text, 'invalid_request'), reasons);
  }
  return { headers, method, encoding, timeoutMs };
}

function isGrpc(type: string | undefined): boolean {
  return (
    type === 'application/grpc' ||
    (type !== undefined && /^application\/grpc(?:\+proto)?\s*(?:;|$)/i.test(type))
  );
}

function refuse(stream: Http2Stream, status: GrpcStatus, reasons: CallAbortReasons): undefined {
  new Outbox(stream).end(explained(status, reasons));
}

function shown(value: string): string {
  return value.slice(0, 100);
}

const text = Buffer.from('This is a gRPC server. Use POST with content-type application/grpc.\n');

const headers = {
  405: plainHeaders(405),
  415: plainHeaders(415),
};

function plainHeaders(status: number): HeaderList {
  return new HeaderList({ ':status': String(status), 'content-type': 'text/plain', allow: 'POST' });
}

/** For clients that are not gRPC: they would take a gRPC error, status 200, for a success. */
function sendPlainError(stream: Http2Stream, status: 405 | 415): undefined {
  stream.respond(headers[status]);
  new Outbox(stream).pushFramed(text);
  stream.end();
}

const unitsMs: Record<string, number> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Milliseconds of a `grpc-timeout`; undefined when it is not valid. */
export function timeoutMsOf(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(digits) * unitsMs[unit]!;
}
