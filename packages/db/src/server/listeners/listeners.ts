import { chmodSync, lstatSync, mkdirSync, statSync, unlinkSync } from 'node:fs';
import { createConnection, type Server, createServer } from 'node:net';
import { dirname } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Clock } from '@millrace/kit/clock';
import { tlsOptions, type TlsFiles, type Address } from '@millrace/kit/config';
import {
  HttpServer,
  type HttpServerLimits,
  closeGracefully,
  listenAt,
  urlOf,
} from '@millrace/kit/http';
import { refuse } from '@millrace/engine/value/documents';
import type { Calls } from '../calls/calls.js';
import { statusJson } from '../rest/operation.js';
import { RestServer } from '../rest/server.js';
import { statusOf, type Readiness } from '../base/status.js';
import { ConnectionLimit, countDroppedConnections } from '@millrace/kit/connection-limit';
import type { Metrics } from '@millrace/kit/metrics';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { Authenticator } from '../access/access.js';
import { GrpcServer } from '../grpc/server.js';
import type { Health } from '../grpc/health.js';
import { Pages } from '../rest/pages.js';

/** Maximum length of a Unix socket path that every supported system accepts. */
const maxSocketPathBytes = 103;

function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= maxSocketPathBytes;
}

/**
 * Listens on a Unix socket with mode 0600 in a directory with mode 0700. Connections there need no
 * key, so the socket must never be accessible to other users, not even briefly.
 */
async function listenOnSocket(server: Server, path: string, log: Log): Promise<void> {
  if (!fitsSocket(path)) {
    throw new UsageError(
      `socket ${path} is too long: use a path of at most ${maxSocketPathBytes} bytes`,
    );
  }
  makePrivateDirectory(dirname(path), log);
  await removeStale(path);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // Node binds a path synchronously, so the umask applies to this file only.
      withMask(0o177, () =>
        server.listen(path, () => {
          server.removeListener('error', reject);
          resolve();
        }),
      );
    });
    chmodSync(path, 0o600);
  } catch (error) {
    throw new UsageError(`cannot listen at socket ${path}: ${messageOf(error)}`);
  }
}

/** Worker threads cannot set the umask; the directory mode and the later chmod protect them. */
function withMask(mask: number, run: () => void): void {
  const before = isMainThread ? process.umask(mask) : undefined;
  try {
    run();
  } finally {
    if (before !== undefined) process.umask(before);
  }
}

function makePrivateDirectory(directory: string, log: Log): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageError(`cannot create the socket directory ${directory}: ${messageOf(error)}`);
  }
  const mode = statSync(directory).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  log.warn(
    { directory, mode: mode.toString(8) },
    'socket directory is accessible to other users, run chmod 700',
  );
}

/** Removes the socket of a killed server. A socket that accepts connections is in use. */
async function removeStale(path: string): Promise<void> {
  let isSocket: boolean;
  try {
    isSocket = lstatSync(path).isSocket();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw new UsageError(`socket ${path}: ${messageOf(error)}`);
  }
  if (!isSocket)
    throw new UsageError(`socket ${path} is an existing file of another type; use another path`);
  if (await answers(path)) {
    throw new UsageError(`socket ${path} is in use by another server; use another path`);
  }
  unlinkSync(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(path);
    const end = (isAlive: boolean) => {
      connection.destroy();
      resolve(isAlive);
    };
    connection.on('connect', () => end(true));
    connection.on('error', () => end(false));
  });
}

// An NDJSON bulk is one request for as long as it sends lines.
const requestTimeoutMs = 3_600_000;

type Limits = Pick<HttpServerLimits, 'peerMemory' | 'maxConnections' | 'onDrop'>;

interface HttpListenerParts extends Limits {
  calls: Calls;
  clock: Clock;
  log: Log;
}

function httpServer(
  rest: RestServer,
  tls: TlsFiles | undefined,
  { calls, clock, log, peerMemory, maxConnections, onDrop }: HttpListenerParts,
): HttpServer {
  const server: HttpServer = new HttpServer({
    clock,
    log,
    peerMemory,
    maxConnections,
    onDrop,
    requestTimeoutMs,
    handle: (exchange) => {
      if (calls.isDraining) server.isDraining = true;
      rest.handle(exchange);
    },
    malformed: (_status, detail) => ({
      contentType: 'application/json',
      body: JSON.stringify(statusJson(statusOf(refuse('BAD_REQUEST', `${detail}.`)))),
    }),
    onMalformed: (status, reason) => log.info({ status, reason }, 'malformed HTTP request'),
    tls: tlsOptions(tls),
  });
  return server;
}

export interface ListenerAddress {
  readonly listener: 'grpc' | 'http' | 'socket';
  readonly url: string;
}

interface ListenerOptions {
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
