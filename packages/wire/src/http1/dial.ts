import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';
import type { Clock, Timer } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import { Failure, failureOf } from '../base/socket.js';
import type { AddressPolicy } from '@millrace/kit/outbound';
import type { Resolver } from '@millrace/kit/outbound';
import type { Target } from '@millrace/kit/outbound';

/** Opens a TCP connection to an IP address, never to a name. */
export type Connect = (address: string, port: number) => Socket;

export const systemConnect: Connect = (address, port) =>
  connectTcp({
    host: address,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
  });

export interface DialTools {
  clock: Clock;
  resolver: Resolver;
  connect: Connect;
  /** Certificates to trust; the system's own when absent. */
  secureContext: SecureContext | undefined;
}

export interface DialParams {
  target: Target;
  policy: AddressPolicy;
  connectTimeoutMs: number;
}

export type DialPhase = 'resolving the host name' | 'connecting' | 'in the TLS handshake';

export interface Dialled {
  socket: Socket;
  remoteIp: string;
}

// RFC 8305 recommends 250 ms before the next address is tried beside the first.
const nextAddressAfterMs = 250;

const unreachable = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/**
 * Opens a connection to a target: resolves the name once, checks every address against the policy,
 * connects only to checked addresses, and checks the peer address again before sending.
 */
export class Dial {
  phase: DialPhase = 'resolving the host name';
  readonly #sockets = new Set<Socket>();
  readonly #errors: Failure[] = [];
  readonly #timers: Timer[] = [];
  #addresses: readonly string[] = [];
  #next = 0;
  #isOver = false;

  constructor(
    readonly params: DialParams,
    readonly tools: DialTools,
    readonly done: (result: Dialled | Failure) => void,
  ) {
    const { host, isAddress } = params.target;
    const answers = isAddress ? Promise.resolve([host]) : tools.resolver(host);
    answers.then(
      (addresses) => this.#start([...new Set(addresses)]),
      (error: unknown) => this.#fail(new Failure('DNS_FAILURE', messageOf(error))),
    );
  }

  /** The address tried last. */
  get address(): string | undefined {
    return this.#addresses[this.#next - 1];
  }

  cancel(reason: Failure): void {
    this.#fail(reason);
  }

  #start(addresses: readonly string[]): void {
    if (this.#isOver) return;
    const { target, policy, connectTimeoutMs } = this.params;
    for (const address of addresses) {
      const denyReason = policy.denyReason(address);
      if (denyReason === undefined) continue;
      const reason = target.isAddress ? denyReason : `${target.host}: ${denyReason}`;
      return this.#fail(new Failure('TARGET_BLOCKED', reason, address));
    }
    if (addresses.length === 0) {
      return this.#fail(new Failure('DNS_FAILURE', `${target.host} has no address`));
    }
    this.#addresses = addresses;
    this.phase = 'connecting';
    this.#after(connectTimeoutMs, () => {
      const message = `No connection within ${connectTimeoutMs} ms (${this.phase})`;
      this.#fail(new Failure('TIMEOUT', message, this.address));
    });
    this.#tryNext();
  }

  #tryNext(): void {
    const address = this.#addresses[this.#next];
    if (this.#isOver || address === undefined) return;
    const mine = ++this.#next;
    const socket = this.tools.connect(address, this.params.target.port);
    this.#sockets.add(socket);
    socket.once('connect', () => this.#connected(socket));
    socket.on('error', (error) => {
      if (!this.#sockets.delete(socket)) return;
      this.#errors.push(failureOf(error, address));
      if (mine === this.#next) this.#tryNext();
      if (this.#sockets.size === 0) this.#fail(this.#bestError());
    });
    if (mine < this.#addresses.length) {
      this.#after(nextAddressAfterMs, () => mine === this.#next && this.#tryNext());
    }
  }

  #connected(socket: Socket): void {
    if (this.#isOver || this.phase !== 'connecting') return void socket.destroy();
    this.#sockets.delete(socket);
    this.#dropSockets();
    this.#sockets.add(socket);
    const remoteIp = socket.remoteAddress;
    if (remoteIp === undefined) {
      return this.#fail(new Failure('CONNECTION_RESET', 'The peer closed while connecting'));
    }
    const denyReason = this.params.policy.denyReason(remoteIp);
    if (denyReason !== undefined) {
      const reason = `The connection reached another address: ${denyReason}`;
      return this.#fail(new Failure('TARGET_BLOCKED', reason, remoteIp));
    }
    if (!isSecure(this.params.target)) return this.#finish(socket, remoteIp);
    this.#secure(socket, remoteIp);
  }

  #secure(socket: Socket, remoteIp: string): void {
    this.phase = 'in the TLS handshake';
    const { host, isAddress, scheme } = this.params.target;
    const protocol = scheme === 'grpcs' ? 'h2' : 'http/1.1';
    const { secureContext } = this.tools;
    const secured = connectTls({
      socket,
      host,
      // Server names are names (RFC 6066); an address is still checked against the certificate.
      servername: isAddress ? '' : host,
      ALPNProtocols: [protocol],
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot disable it.
      rejectUnauthorized: true,
      ...(secureContext === undefined ? {} : { secureContext }),
    });
    // From now on the TLS socket owns the TCP socket.
    this.#sockets.delete(socket);
    this.#sockets.add(secured);
    socket.on('error', (error) => secured.destroy(error));
    secured.once('secureConnect', () => {
      // HTTP/1.1 servers need not know ALPN; HTTP/2 has no other way to be agreed on.
      if (protocol === 'http/1.1' || secured.alpnProtocol === protocol) {
        return this.#finish(secured, remoteIp);
      }
      this.#fail(new Failure('TLS_FAILURE', 'The server does not offer HTTP/2', remoteIp));
    });
    secured.on('error', (error) => this.#fail(handshakeFailure(error, remoteIp)));
    secured.once('close', () => {
      const message = 'The peer closed during the TLS handshake';
      this.#fail(new Failure('CONNECTION_RESET', message, remoteIp));
    });
  }

  #finish(socket: Socket, remoteIp: string): void {
    if (this.#isOver) return void socket.destroy();
    this.#isOver = true;
    this.#sockets.clear();
    this.#stopTimers();
    this.done({ socket, remoteIp });
  }

  #fail(failure: Failure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#dropSockets();
    this.#stopTimers();
    this.done(failure);
  }

  /** Prefers the error of a reachable address to one of a missing address family. */
  #bestError(): Failure {
    const reachable = this.#errors.find((error) => !unreachable.has(error.osCode));
    return reachable ?? this.#errors[0]!;
  }

  #after(delayMs: number, run: () => void): void {
    this.#timers.push(this.tools.clock.after(delayMs, run));
  }

  #stopTimers(): void {
    for (const timer of this.#timers) timer.cancel();
  }

  #dropSockets(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }
}

function isSecure({ scheme }: Target): boolean {
  return scheme === 'https' || scheme === 'grpcs';
}

/** Opens a connection as `Dial` does; rejects with a Failure. */
export function dialTarget(
  params: DialParams,
  tools: DialTools,
  signal: AbortSignal,
): Promise<Dialled> {
  return new Promise((resolve, reject) => {
    const abort = () => dial.cancel(failureOf(signal.reason));
    const dial = new Dial(params, tools, (result) => {
      signal.removeEventListener('abort', abort);
      if (result instanceof Failure) reject(result);
      else resolve(result);
    });
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
  });
}

function handshakeFailure(error: Error, remoteIp: string): Failure {
  const failure = failureOf(error, remoteIp);
  if (failure.errorType !== 'NETWORK_ERROR') return failure;
  return new Failure('TLS_FAILURE', failure.message, remoteIp);
}
