import { createServer, type Server } from 'node:net';
import type { Address, TlsFiles } from '@millrace/kit/config';
import type { Clock } from '@millrace/kit/clock';
import { ConnectionLimit, countDroppedConnections } from '@millrace/kit/connection-limit';
import { closeGracefully, listenAt, urlOf } from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import type { Metrics } from '@millrace/kit/metrics';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { Authenticator } from '../access/authenticator.js';
import type { Calls } from '../calls/calls.js';
import { GrpcServer } from '../grpc/server.js';
import type { Health } from '../grpc/health.js';
import type { Readiness } from '../base/readiness.js';
import { RestServer } from '../rest/server.js';
import { Pages } from '../rest/pages.js';
import { httpServer } from './http.js';
import { fitsSocket, listenOnSocket } from './socket.js';

export interface ListenerAddress {
  readonly listener: 'grpc' | 'http' | 'socket';
  readonly url: string;
}

export interface ListenerOptions {
  settings: {
    grpc: Address;
    http: Address;
    socket: string;
    max_connections: number;
  };
  /** The configuration names the socket, so failing to open it is an error. */
  isSocketRequired: boolean;
  tls: TlsFiles | undefined;
  parts: {
    calls: Calls;
    clock: Clock;
    log: Log;
    authenticator: Authenticator;
    health: Health;
    readiness: Readiness;
    metrics: Metrics;
    /** Memory accounting shared by all listeners. */
    memory: PeerMemory;
    /** Runs the writes that were submitted in this turn of the event loop. */
    startWrites: () => void;
  };
}

/** The open listeners of the server. */
export interface Listeners {
  readonly addresses: readonly ListenerAddress[];
  /** Rejects when a listener fails. */
  readonly failed: Promise<void>;
  /** Waits for open connections to finish; `signal` closes them. */
  close(signal: AbortSignal): Promise<void>;
}

export async function openListeners(options: ListenerOptions): Promise<Listeners> {
  const { settings, tls, parts } = options;
  const addresses: ListenerAddress[] = [];
  const closers: ((signal: AbortSignal) => Promise<void>)[] = [];
  const failures = new Failures();
  const close = async (signal: AbortSignal) => {
    await Promise.all(closers.map((each) => each(signal)));
  };
  try {
    const maxConnections = settings.max_connections;
    const onDrop = countDroppedConnections(parts.metrics);
    const limitOf = (listener: string) =>
      new ConnectionLimit({ ...parts, listener, maxConnections, onDrop });
    const open = { ...parts, trusted: false, tls, connections: limitOf('grpc') };
    const grpc = grpcListener(new GrpcServer(open), failures);
    closers.push(grpc.close);
    const grpcAt = await listenAt(grpc.server, settings.grpc, '--grpc');
    addresses.push({ listener: 'grpc', url: urlOf(grpcAt, tls ? 'grpcs' : 'grpc') });

    const rest = new RestServer({ ...parts, pages: new Pages(parts) });
    const http = httpServer(rest, tls, {
      ...parts,
      peerMemory: parts.memory,
      maxConnections,
      onDrop,
    });
    failures.watch(http.node);
    closers.push(async (signal) => void (await closeGracefully(http, parts.clock, signal)));
    const httpAt = await listenAt(http.node, settings.http, '--http');
    rest.port = httpAt.port;
    addresses.push({ listener: 'http', url: urlOf(httpAt, tls ? 'https' : 'http') });

    if (options.isSocketRequired || fitsSocket(settings.socket)) {
      const own = { ...open, trusted: true, tls: undefined, connections: limitOf('socket') };
      const socket = grpcListener(new GrpcServer(own), failures);
      closers.push(socket.close);
      await listenOnSocket(socket.server, settings.socket, parts.log);
      addresses.push({ listener: 'socket', url: `unix://${settings.socket}` });
    } else {
      const text = 'Unix socket disabled: path too long';
      parts.log.warn({ socket: settings.socket }, text);
    }
  } catch (error) {
    await close(AbortSignal.abort());
    throw error;
  }
  return { addresses, failed: failures.first, close };
}

/** Accepts connections for a gRPC server. */
function grpcListener(grpc: GrpcServer, failures: Failures) {
  const server = createServer({ noDelay: true, keepAlive: true }, (connection) => {
    // The gRPC server handles the close; this only keeps the error from being thrown.
    connection.on('error', () => connection.destroy());
    grpc.take(connection);
  });
  failures.watch(server);
  const close = async (signal: AbortSignal) => {
    const closed = closeServer(server);
    await grpc.close(signal);
    await closed;
  };
  return { server, close };
}

/** Stops accepting. Resolves when the last connection is closed. */
function closeServer(server: Server): Promise<void> {
  // The error of a server that is not listening is ignored.
  return new Promise((resolve) => server.close(() => resolve()));
}

class Failures {
  #reject: (reason: unknown) => void = () => undefined;
  readonly first = new Promise<void>((_, reject) => (this.#reject = reject));

  constructor() {
    // Keeps an unobserved failure from being an unhandled rejection.
    this.first.catch(() => undefined);
  }

  watch(server: Server): void {
    server.on('listening', () => server.on('error', this.#reject));
  }
}
