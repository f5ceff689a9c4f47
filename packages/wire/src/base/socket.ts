import { Socket } from 'node:net';
import type { Clock } from '@millrace/kit/clock';
import { ReadRate, type PeerMemory, type PeerMemoryAccount } from '@millrace/kit/peer-memory';
import { SocketQueues } from '@millrace/kit/socket-queues';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { FailureType } from '@millrace/kit/outbound';

/** Bytes received on a socket. The reader sets `take` in the same tick. */
export interface ByteSource {
  readonly socket: Socket;
  /** `bytes` up to `end`; the buffer is reused after this returns. */
  take: (bytes: Buffer, end: number) => void;
}

interface Handle {
  useUserBuffer?: unknown;
}

const readBytes = 64 * 1024;

/**
 * Reads all sockets of a listener into one buffer. Node would allocate 64 KiB for every read, and
 * the garbage collection costs more than the read.
 */
export class SharedBuffer {
  readonly #bytes = Buffer.allocUnsafeSlow(readBytes);

  /** Takes over a socket that was just accepted and not read from. */
  read(accepted: Socket): ByteSource {
    const handle = handleOf(accepted);
    return handle ? this.#adopt(accepted, handle) : chunksOf(accepted);
  }

  /** Node accepts a read buffer only in the constructor, so a new socket adopts the handle. */
  #adopt(accepted: Socket & { _handle?: unknown }, handle: Handle): ByteSource {
    const take = (_bytes: Buffer, _end: number): void => undefined;
    const callback = (end: number): boolean => {
      source.take(this.#bytes, end);
      return true;
    };
    const options = { handle, onread: { buffer: this.#bytes, callback } };
    accepted._handle = null;
    const socket = new Socket(options as object);
    // The accepting server counts open connections.
    socket.on('close', () => accepted.destroy());
    const source: ByteSource = { socket, take };
    return source;
  }
}

/** Reads a socket by its data events. */
export function chunksOf(socket: Socket): ByteSource {
  const source: ByteSource = { socket, take: () => undefined };
  socket.on('data', (chunk: Buffer) => source.take(chunk, chunk.length));
  return source;
}

/** Undefined on Windows, where reads of several sockets are in progress at once. */
function handleOf(socket: Socket & { _handle?: Handle | null }): Handle | undefined {
  if (process.platform === 'win32') return undefined;
  const { _handle: handle } = socket;
  return typeof handle?.useUserBuffer === 'function' ? handle : undefined;
}

/** Writes what is queued. */
interface Flushable {
  flush(): void;
}

/**
 * Flushes each target once, after the callbacks and promises of the current tick have run, so that
 * their responses share a write.
 */
export class DeferredFlush {
  #waiting: Flushable[] = [];

  defer(target: Flushable): void {
    // nextTick from a microtask runs after all pending microtasks.
    if (this.#waiting.push(target) === 1) queueMicrotask(this.#arm);
  }

  readonly #arm = () => process.nextTick(this.#run);

  readonly #run = () => {
    const targets = this.#waiting;
    this.#waiting = [];
    for (const target of targets) target.flush();
  };
}

/** Checks the read rate of a peer from a running total, sampled every few seconds. */
export class ReadRateCheck {
  readonly #rate = new ReadRate();
  #takenBefore: number | undefined;

  /** `takenBytes`: running total of bytes read by the peer. True when it is too slow. */
  isTooSlow(now: number, isWaiting: boolean, takenBytes: number): boolean {
    if (!isWaiting) {
      this.#takenBefore = undefined;
      this.#rate.drained();
      return false;
    }
    this.#rate.taken(takenBytes - (this.#takenBefore ?? takenBytes));
    this.#takenBefore = takenBytes;
    this.#rate.waiting(now);
    return this.#rate.isTooSlow(now);
  }
}

const maxAgeMs = 1_000;
let latest: { readonly at: number; readonly queues: Promise<SocketQueues> } | undefined;

/** What the kernel holds for a peer. Connections that ask at about the same time share a read. */
export async function kernelBytesFor(socket: Socket, clock: Clock): Promise<number> {
  const now = clock.monotonic();
  if (!latest || Math.abs(now - latest.at) > maxAgeMs) {
    latest = { at: now, queues: SocketQueues.read() };
  }
  return (await latest.queues).heldFor(socket);
}

/** Memory held for the peer of one connection, counted against the process limits. */
export class ConnectionMemory {
  readonly #account: PeerMemoryAccount;
  /** Response bytes that are not sent yet. */
  #unsentBytes = 0;
  /** Written, but still queued in the socket. */
  #backlogBytes = 0;
  #waiting: (() => void)[] = [];

  constructor(private readonly process: PeerMemory) {
    this.#account = process.openAccount();
  }

  /** For request bytes; false when a limit would be exceeded. */
  tryReserve(bytes: number): boolean {
    return this.#account.tryReserve(bytes);
  }

  release(bytes: number): void {
    this.#account.release(bytes);
  }

  addUnsent(bytes: number): void {
    this.#unsentBytes += bytes;
    this.#account.reserve(bytes);
  }

  removeUnsent(bytes: number): void {
    this.#unsentBytes -= bytes;
    this.#account.release(bytes);
    if (this.#waiting.length > 0 && !this.isCongested) this.#wake();
  }

  setBacklog(bytes: number): void {
    const more = bytes - this.#backlogBytes;
    this.#backlogBytes = bytes;
    if (more > 0) this.#account.reserve(more);
    else this.#account.release(-more);
  }

  /** True while the peer reads too slowly for further responses to be built. */
  get isCongested(): boolean {
    const { connectionBytes } = this.process.limits;
    if (this.#unsentBytes > connectionBytes / 2) return true;
    return this.isProcessPressed && this.#unsentBytes > connectionBytes / 16;
  }

  get isProcessPressed(): boolean {
    return this.process.heldBytes > this.process.limits.totalBytes / 2;
  }

  /** Calls `run` when the peer has read enough, or has disconnected. */
  whenDrained(run: () => void): void {
    this.#waiting.push(run);
  }

  close(): void {
    this.#account.close();
    this.#unsentBytes = this.#backlogBytes = 0;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }
}

/** A failed request, with its public error type. */
export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    readonly errorType: FailureType,
    message: string,
    readonly remoteIp?: string,
    /** The system's own code, such as ENETUNREACH. */
    readonly osCode = '',
  ) {
    super(message);
  }
}

const typeByCode: Readonly<Record<string, FailureType>> = {
  ECONNREFUSED: 'CONNECTION_REFUSED',
  ECONNRESET: 'CONNECTION_RESET',
  ECONNABORTED: 'CONNECTION_RESET',
  EPIPE: 'CONNECTION_RESET',
  ETIMEDOUT: 'TIMEOUT',
};

/** The peer closed the connection before the response was complete. */
export function prematureClose(): Failure {
  const text = 'The peer closed the connection before the response was complete';
  return new Failure('CONNECTION_RESET', text);
}

/** The response is not valid HTTP/1.1. */
export function malformed(reason: string): Failure {
  return new Failure('NETWORK_ERROR', `The response is not valid HTTP: ${reason}`);
}

/** Maps a socket error to a failure type. */
export function failureOf(error: unknown, remoteIp?: string): Failure {
  if (error instanceof Failure) return error;
  const code = systemCode(error);
  const message = messageOf(error);
  const text = code === '' || message.includes(code) ? message : `${message} (${code})`;
  return new Failure(typeOf(code), text, remoteIp, code);
}

function typeOf(code: string): FailureType {
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return 'TLS_FAILURE';
  return typeByCode[code] ?? 'NETWORK_ERROR';
}
