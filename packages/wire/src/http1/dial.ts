import { connect as connectTcp, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';
import type { Clock, Timer } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import { Failure, failureOf } from './failure.js';
import type { AddressPolicy } from '@millrace/kit/outbound';
import type { Resolver } from '@millrace/kit/outbound';
import type { Target } from '@millrace/kit/outbound';

/**
 * Starts a TCP connection to an address. Never given a name. Where it can, it reads into the
 * buffer that it is given and tells by the callback; otherwise the socket says what it reads.
 */
export type Connect = (address: string, port: number, onread?: OnReadOpts) => Socket;

export const systemConnect: Connect = (address, port, onread) =>
  connectTcp({
    host: address,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    ...(onread === undefined ? {} : { onread }),
  });

/**
 * What is read, in one place for all connections: it is done with before the next read. Node would
 * make 64 KiB for each. Not on Windows, where several reads are under way at once.
 */
const readBuffer = process.platform === 'win32' ? undefined : Buffer.allocUnsafeSlow(65_536);

export interface DialTools {
  clock: Clock;
  resolver: Resolver;
  connect: Connect;
  /** Certificates to trust; the system's own when absent. */
  secureContext: SecureContext | undefined;
}

export interface DialAsk {
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
 * Opens one connection for one target: the name is resolved once, every answer is held against
 * the policy, only those answers are dialled, and the peer is looked at again before the first
 * byte goes out.
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
    readonly ask: DialAsk,
    readonly tools: DialTools,
    /** Hears what the connection reads, where its socket does not say so itself. */
    readonly arrived: (bytes: Buffer) => void,
    readonly done: (result: Dialled | Failure) => void,
  ) {
    const { host, isAddress } = ask.target;
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
    const { target, policy, connectTimeoutMs } = this.ask;
    for (const address of addresses) {
      const objection = policy.objection(address);
      if (objection === undefined) continue;
      const reason = target.isAddress ? objection : `${target.host}: ${objection}`;
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
    const socket = this.tools.connect(address, this.ask.target.port, this.#onread());
    this.#sockets.add(socket);
    socket.once('connect', () => this.#connected(socket));
    socket.on('error', (error) => {
      if (!this.#sockets.delete(socket)) return;
      this.#errors.push(failureOf(error, address));
      if (mine === this.#next) this.#tryNext();
      if (this.#sockets.size === 0) this.#fail(this.#tellingError());
    });
    if (mine < this.#addresses.length) {
      this.#after(nextAddressAfterMs, () => mine === this.#next && this.#tryNext());
    }
  }

  /** For plain connections: what TLS reads is not what it says. */
  #onread(): OnReadOpts | undefined {
    const buffer = readBuffer;
    if (buffer === undefined || this.ask.target.scheme !== 'http') return undefined;
    const callback = (count: number) => {
      this.arrived(buffer.subarray(0, count));
      return true;
    };
    return { buffer, callback };
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
    const objection = this.ask.policy.objection(remoteIp);
    if (objection !== undefined) {
      const reason = `The connection ended at another address: ${objection}`;
      return this.#fail(new Failure('TARGET_BLOCKED', reason, remoteIp));
    }
    if (this.ask.target.scheme === 'http') return this.#finish(socket, remoteIp);
    this.#secure(socket, remoteIp);
  }

  #secure(socket: Socket, remoteIp: string): void {
    this.phase = 'in the TLS handshake';
    const { host, isAddress } = this.ask.target;
    const { secureContext } = this.tools;
    const secured = connectTls({
      socket,
      host,
      // Server names are names (RFC 6066); an address is still checked against the certificate.
      servername: isAddress ? '' : host,
      ALPNProtocols: ['http/1.1'],
      // Said outright, so that no environment variable turns it off.
      rejectUnauthorized: true,
      ...(secureContext === undefined ? {} : { secureContext }),
    });
    // From here on it is about this address alone, and the secured socket stands for both.
    this.#sockets.delete(socket);
    this.#sockets.add(secured);
    socket.on('error', (error) => secured.destroy(error));
    secured.once('secureConnect', () => this.#finish(secured, remoteIp));
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

  /** An address family that the machine does not have says less than an address that answered. */
  #tellingError(): Failure {
    const told = this.#errors.find((error) => !unreachable.has(error.osCode));
    return told ?? this.#errors[0]!;
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

function handshakeFailure(error: Error, remoteIp: string): Failure {
  const failure = failureOf(error, remoteIp);
  if (failure.errorType !== 'NETWORK_ERROR') return failure;
  return new Failure('TLS_FAILURE', failure.message, remoteIp);
}
