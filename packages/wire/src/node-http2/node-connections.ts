import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
} from 'node:http2';
import type { Socket } from 'node:net';
import { ConnectionSlots } from '../grpc/connection-slots.js';
import type { CallHeaders } from '../grpc/headers.js';
import type { GrpcServerOptions } from '../grpc/open-call.js';
import type { GrpcTransport, TlsKeys } from '../grpc/transport.js';
import { maxHeaderBytes } from '../http2/request-headers.js';
import { maxStreams, streamWindowBytes } from '../http2/streams.js';
import { NodeConnection } from './node-connection.js';

const connectionWindowBytes = 4 * 1024 * 1024;

const limits: SecureServerOptions = {
  settings: {
    maxConcurrentStreams: maxStreams,
    initialWindowSize: streamWindowBytes,
    maxHeaderListSize: maxHeaderBytes,
  },
  maxHeaderListPairs: 64,
  // In megabytes. Bodies are limited by peer memory; this covers the rest of a session.
  maxSessionMemory: 64,
};

/** gRPC on node:http2: slower than our own HTTP/2 server, but maintained with Node. */
export class NodeConnections implements GrpcTransport {
  readonly #server: Http2Server | Http2SecureServer;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #slots = new ConnectionSlots();
  #isClosing = false;
  #onEmpty: (() => void) | undefined;

  constructor(
    private readonly options: GrpcServerOptions,
    tls: TlsKeys | undefined,
  ) {
    this.#server = serverOf(tls);
    this.#server.on('sessionError', () => undefined);
    this.#server.on('session', (session) => this.#open(session));
  }

  take(accepted: Socket): void {
    accepted.on('error', () => undefined);
    this.#sockets.add(accepted);
    this.#slots.admit(this.options.connections, accepted);
    accepted.on('close', () => {
      this.#sockets.delete(accepted);
      if (this.#sockets.size === 0) this.#onEmpty?.();
    });
    if (this.#isClosing) accepted.destroy();
    else this.#server.emit('connection', accepted);
  }

  async close(signal: AbortSignal): Promise<void> {
    this.#isClosing = true;
    for (const session of this.#sessions) session.close();
    const cut = () => {
      for (const session of this.#sessions) session.destroy();
      for (const socket of this.#sockets) socket.destroy();
    };
    if (signal.aborted) cut();
    signal.addEventListener('abort', cut, { once: true });
    if (this.#sockets.size > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    signal.removeEventListener('abort', cut);
  }

  #open(session: ServerHttp2Session): void {
    if (this.#isClosing) return session.destroy();
    this.#sessions.add(session);
    session.on('error', () => undefined);
    session.on('close', () => this.#sessions.delete(session));
    session.setLocalWindowSize(connectionWindowBytes);
    const connection = new NodeConnection(session, this.options, this.#slots.of(session.socket));
    session.on('stream', (stream, headers) => connection.open(stream, callHeaders(headers)));
  }
}

function serverOf(tls: TlsKeys | undefined): Http2Server | Http2SecureServer {
  if (!tls) return createServer(limits);
  const { cert, key, clientCa } = tls;
  const callers = clientCa && { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return createSecureServer({ ...limits, cert, key, ...callers });
}

function callHeaders(headers: IncomingHttpHeaders): CallHeaders {
  const text = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
  let byteCount = 0;
  for (const [name, value] of Object.entries(headers)) {
    byteCount += name.length + (value?.length ?? 0) + 32;
  }
  return {
    ':method': text(':method'),
    ':path': text(':path'),
    'content-type': text('content-type'),
    'grpc-timeout': text('grpc-timeout'),
    'grpc-encoding': text('grpc-encoding'),
    'x-api-key': text('x-api-key'),
    authorization: text('authorization'),
    byteCount,
    parsed: undefined,
  };
}
