import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { chunksOf, SharedBuffer, type ByteSource } from '../base/byte-source.js';
import { FrameWriter } from '../http2/frame-writer.js';
import type { SendQueueParts } from '../http2/send-queue.js';
import { DeferredFlush } from '../base/deferred-flush.js';
import { ConnectionSlots } from './connection-slots.js';
import { Connection } from './connection.js';
import type { GrpcServerOptions } from './open-call.js';

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
    const source = this.#secure ? undefined : this.#buffer.read(accepted);
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
