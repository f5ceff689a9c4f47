import { createServer, type Server } from 'node:net';
import type { Address } from '@millrace/kit/config';
import type { Clock } from '@millrace/kit/clock';
import { closeGently, listenAt, urlOf } from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import type { Metrics } from '@millrace/kit/metrics';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { TransportKind } from '@millrace/wire/grpc';
import type { Gate } from '../access/gate.js';
import type { Calls } from '../calls/calls.js';
import { GrpcFace } from '../grpc/face.js';
import type { Health } from '../grpc/health.js';
import type { Readiness } from '../readiness.js';
import { RestFace } from '../rest/face.js';
import { Pages } from '../rest/pages.js';
import { httpServer } from './http.js';
import { fitsSocket, listenOnSocket } from './socket.js';
import type { TlsFiles } from '../tls.js';

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
    grpc_transport: TransportKind;
  };
  /** Someone named the socket: then it must be there. */
  isSocketAsked: boolean;
  tls: TlsFiles | undefined;
  parts: {
    calls: Calls;
    clock: Clock;
    log: Log;
    gate: Gate;
    health: Health;
    readiness: Readiness;
    metrics: Metrics;
    /** What the process holds for the peers of all listeners. */
    memory: PeerMemory;
  };
}

/** The open doors of the server. */
export interface Listeners {
  readonly addresses: readonly ListenerAddress[];
  /** Rejects when a door falls shut. */
  readonly failed: Promise<void>;
  /** Lets open connections finish; `signal` cuts them. */
  close(signal: AbortSignal): Promise<void>;
}

export async function openListeners(options: ListenerOptions): Promise<Listeners> {
  const { settings, tls, parts } = options;
  const transport = settings.grpc_transport;
  const addresses: ListenerAddress[] = [];
  const closers: ((signal: AbortSignal) => Promise<void>)[] = [];
  const failures = new Failures();
  const close = async (signal: AbortSignal) => {
    await Promise.all(closers.map((each) => each(signal)));
  };
  try {
    const grpc = grpcListener(new GrpcFace({ ...parts, transport, trusted: false, tls }), failures);
    grpc.server.maxConnections = settings.max_connections;
    closers.push(grpc.close);
    const grpcAt = await listenAt(grpc.server, settings.grpc, '--grpc');
    addresses.push({ listener: 'grpc', url: urlOf(grpcAt, tls ? 'grpcs' : 'grpc') });

    const face = new RestFace({ ...parts, pages: new Pages(parts) });
    const http = httpServer(face, tls, {
      ...parts,
      peerMemory: parts.memory,
      maxConnections: settings.max_connections,
    });
    failures.watch(http.node);
    closers.push(async (signal) => void (await closeGently(http, parts.clock, signal)));
    const httpAt = await listenAt(http.node, settings.http, '--http');
    face.port = httpAt.port;
    addresses.push({ listener: 'http', url: urlOf(httpAt, tls ? 'https' : 'http') });

    if (options.isSocketAsked || fitsSocket(settings.socket)) {
      const trusted = new GrpcFace({ ...parts, transport, trusted: true, tls: undefined });
      const socket = grpcListener(trusted, failures);
      socket.server.maxConnections = settings.max_connections;
      closers.push(socket.close);
      await listenOnSocket(socket.server, settings.socket, parts.log);
      addresses.push({ listener: 'socket', url: `unix://${settings.socket}` });
    } else {
      const text = 'no Unix socket: the path in the data directory is too long for one';
      parts.log.warn({ socket: settings.socket }, text);
    }
  } catch (error) {
    await close(AbortSignal.abort());
    throw error;
  }
  return { addresses, failed: failures.first, close };
}

/** Accepts connections for a face. */
function grpcListener(face: GrpcFace, failures: Failures) {
  const server = createServer({ noDelay: true, keepAlive: true }, (connection) => {
    // Whatever ends a connection is the face's to notice; here it must only not be thrown.
    connection.on('error', () => connection.destroy());
    face.take(connection);
  });
  failures.watch(server);
  const close = async (signal: AbortSignal) => {
    const closed = closeServer(server);
    await face.close(signal);
    await closed;
  };
  return { server, close };
}

/** Stops accepting. Resolves when the last connection is closed. */
function closeServer(server: Server): Promise<void> {
  // It may not be listening any more, which is as good.
  return new Promise((resolve) => server.close(() => resolve()));
}

class Failures {
  #reject: (reason: unknown) => void = () => undefined;
  readonly first = new Promise<void>((_, reject) => (this.#reject = reject));

  constructor() {
    // Someone may never look at it.
    this.first.catch(() => undefined);
  }

  watch(server: Server): void {
    server.on('listening', () => server.on('error', this.#reject));
  }
}
