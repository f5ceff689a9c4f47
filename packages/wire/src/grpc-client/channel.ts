import type { Socket } from 'node:net';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { RequestSignal } from '@millrace/kit/outbound';
import { PeerMemory } from '@millrace/kit/peer-memory';
import { HeaderList } from '../http2/hpack.js';
import {
  Failure,
  failureOf,
  chunksOf,
  type ByteSource,
  ConnectionMemory,
  DeferredFlush,
} from '../base/socket.js';
import { FrameWriter } from '../http2/stream.js';
import {
  callError,
  connectionError,
  type CallError,
  ClientCall,
  type CallObserver,
} from './client-call.js';
import { ClientConnection } from './client-connection.js';
import { dial, type ClientTls, type Place } from './dial.js';

/** Connects by the rules of its caller; rejects when that fails or `signal` is aborted. */
type OpenSocket = (signal: AbortSignal) => Promise<Socket>;

export interface ChannelOptions {
  readonly place: Place | OpenSocket;
  /** Undefined: without TLS. */
  readonly tls?: ClientTls | undefined;
  /** The `:authority` of requests, if it is not that of the place. */
  readonly authority?: string | undefined;
  readonly clock: Clock;
  /** Until the server has sent its SETTINGS. */
  readonly connectTimeoutMs?: number | undefined;
  /** Sent with every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly maxMessageBytes: number;
}

export interface CallOptions {
  /** Milliseconds since the epoch. */
  readonly deadline?: number | undefined;
  readonly signal?: (RequestSignal & { readonly reason?: unknown }) | undefined;
  /** Sent with this call. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A call while both sides send. */
export type DuplexCall = Pick<
  ClientCall,
  'send' | 'endRequest' | 'unsentBytes' | 'isOver' | 'fail'
>;

const defaultConnectTimeoutMs = 10_000;
const maxConnections = 8;

/**
 * Calls to one server. It connects with the first call and again after a loss, and opens a further
 * connection when the peer's limit of concurrent streams is reached. Does not retry.
 */
export class Channel {
  readonly #connections = new Set<ClientConnection>();
  readonly #writer = new FrameWriter();
  readonly #turn = new DeferredFlush();
  readonly #memory = new PeerMemory({ totalBytes: Infinity, connectionBytes: Infinity });
  readonly #deadlines: Deadlines<ClientCall>;
  readonly #headerLists = new Map<string, { timeout: string; list: HeaderList }>();
  /** Calls that wait for a connection with room. */
  #waiting: ClientCall[] = [];
  #dialing: AbortController | undefined;
  #isClosed = false;

  constructor(private readonly options: ChannelOptions) {
    this.#deadlines = new Deadlines(options.clock, (call) =>
      call.fail(callError('DEADLINE_EXCEEDED', 'The deadline has passed.')),
    );
  }

  /** A unary call. `message` has its gRPC prefix. Rejects with a CallError. */
  unary(path: string, message: Uint8Array, options: CallOptions = {}): Promise<Buffer> {
    return new Promise((resolve, reject: (reason: unknown) => void) => {
      let response: Buffer | undefined;
      let count = 0;
      this.#start(path, message, options, {
        takeMessage: (received) => {
          response = received;
          count++;
        },
        takeEnd: (error) => {
          if (error) reject(options.signal?.reason ?? error);
          else if (response && count === 1) resolve(response);
          else reject(callError('INTERNAL', `A unary response has ${count} messages.`));
        },
      });
    });
  }

  /** The messages of a server stream, with backpressure. Leaving the loop cancels the call. */
  async *stream(
    path: string,
    message: Uint8Array,
    options: CallOptions = {},
  ): AsyncGenerator<Buffer, void, void> {
    const queue = new MessageQueue();
    const call = this.#start(path, message, options, queue);
    queue.call = call;
    try {
      for (let next = await queue.next(); next; next = await queue.next()) yield next;
    } catch (error) {
      throw options.signal?.reason ?? error;
    } finally {
      if (!call.isOver) call.fail(callError('CANCELLED', 'The reader has left.'));
    }
  }

  /** A call with messages in both directions: `send` takes them with their gRPC prefix. */
  duplex(path: string, observer: CallObserver, options: CallOptions = {}): DuplexCall {
    return this.#start(path, undefined, options, observer);
  }

  /** Refuses new calls and closes the connections when the open calls have ended. */
  close(): void {
    this.#isClosed = true;
    this.#dialing?.abort(new Error('This client closed the connection.'));
    for (const connection of this.#connections) connection.close();
  }

  #start(
    path: string,
    message: Uint8Array | undefined,
    { deadline = Infinity, signal, headers: own }: CallOptions,
    observer: CallObserver,
  ): ClientCall {
    const { maxMessageBytes } = this.options;
    const headers = this.#headersOf(path, deadline, own);
    const call = new ClientCall({ headers, message, deadline, maxMessageBytes }, observer);
    const onAbort = signal && (() => call.fail(callError('CANCELLED', 'The call was aborted.')));
    call.onOver = () => {
      this.#deadlines.delete(call);
      if (onAbort) signal.removeEventListener('abort', onAbort);
    };
    if (signal?.aborted) onAbort!();
    else if (onAbort) signal.addEventListener('abort', onAbort);
    this.#deadlines.add(call);
    this.#place(call);
    return call;
  }

  /** Starts the call on a connection with room, or lets it wait for one. */
  #place(call: ClientCall): void {
    if (call.isOver) return;
    if (this.#isClosed) return call.fail(callError('UNAVAILABLE', 'The channel is closed.'));
    for (const connection of this.#connections) {
      if (connection.hasRoom) return connection.start(call);
    }
    this.#waiting.push(call);
    this.#dialIfNeeded();
  }

  #placeWaiting(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) this.#place(call);
  }

  #dialIfNeeded(): void {
    if (this.#dialing || this.#connections.size >= maxConnections) return;
    void this.#dial();
  }

  async #dial(): Promise<void> {
    const { place, tls, clock, connectTimeoutMs = defaultConnectTimeoutMs } = this.options;
    const stop = new AbortController();
    this.#dialing = stop;
    const late = new Failure('TIMEOUT', `no connection within ${connectTimeoutMs} ms`);
    const timer = clock.after(connectTimeoutMs, () => stop.abort(late));
    const settle = () => {
      timer.cancel();
      if (this.#dialing === stop) this.#dialing = undefined;
    };
    try {
      const source =
        typeof place === 'function'
          ? chunksOf(await place(stop.signal))
          : await dial(place, tls, stop.signal);
      const connection = this.#connect(source, settle);
      stop.signal.addEventListener('abort', () => {
        connection.destroy(connectionError(failureOf(stop.signal.reason)));
      });
    } catch (error) {
      settle();
      this.#fail(connectionError(failureOf(error)));
    }
  }

  /** `settle` is called when the connection is ready, or lost before. */
  #connect(source: ByteSource, settle: () => void): ClientConnection {
    const memory = new ConnectionMemory(this.#memory);
    const keepalive = new Keepalive(this.options.clock);
    const connection: ClientConnection = new ClientConnection(source, {
      writer: this.#writer,
      turn: this.#turn,
      memory,
      onSettings: () => {
        settle();
        this.#placeWaiting();
      },
      onRoom: () => this.#placeWaiting(),
      onClosed: (error, isUsed) => {
        this.#connections.delete(connection);
        if (isUsed) return this.#placeWaiting();
        settle();
        this.#fail(error);
      },
      onOver: () => keepalive.stop(),
    });
    keepalive.watch(connection);
    this.#connections.add(connection);
    if (this.#isClosed) connection.close();
    return connection;
  }

  /** Fails the calls that wait, unless a connection will have room for them. */
  #fail(error: CallError): void {
    if (this.#connections.size > 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) call.fail(error);
  }

  /** Identical header blocks are cheap for both sides, so the last one of a method is cached. */
  #headersOf(path: string, deadline: number, own?: Readonly<Record<string, string>>): HeaderList {
    const timeout = deadline === Infinity ? '' : timeoutText(deadline - this.options.clock.now());
    const known = own ? undefined : this.#headerLists.get(path);
    if (known?.timeout === timeout) return known.list;
    const { place, tls, headers, authority } = this.options;
    const list = new HeaderList({
      ':method': 'POST',
      ':scheme': tls ? 'https' : 'http',
      ':path': path,
      ':authority': authority ?? ('host' in place ? authorityOf(place) : 'localhost'),
      te: 'trailers',
      'content-type': 'application/grpc+proto',
      'user-agent': 'millrace-grpc',
      ...(timeout === '' ? {} : { 'grpc-timeout': timeout }),
      ...headers,
      ...own,
    });
    if (!own) this.#headerLists.set(path, { timeout, list });
    return list;
  }
}

const maxTimeoutSeconds = 99_999_999;

/** A `grpc-timeout`, rounded up to seconds if it is long: this side keeps the exact time. */
export function timeoutText(timeoutMs: number): string {
  if (timeoutMs < 10_000) return `${Math.max(1, Math.ceil(timeoutMs))}m`;
  return `${Math.min(maxTimeoutSeconds, Math.ceil(timeoutMs / 1_000))}S`;
}

function authorityOf({ host, port }: { host: string; port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

interface Expiring {
  readonly deadline: number;
}

/** Fails calls at their deadlines with one timer for all: a timer per call is far slower. */
class Deadlines<Call extends Expiring> {
  readonly #calls = new Set<Call>();
  #timer: Timer | undefined;
  #timerAt = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly expire: (call: Call) => void,
  ) {}

  add(call: Call): void {
    if (call.deadline === Infinity) return;
    this.#calls.add(call);
    if (call.deadline < this.#timerAt) this.#arm(call.deadline);
  }

  delete(call: Call): void {
    this.#calls.delete(call);
  }

  close(): void {
    this.#timer?.cancel();
    this.#calls.clear();
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.clock.after(at - this.clock.now(), () => this.#run());
  }

  #run(): void {
    const now = this.clock.now();
    this.#timerAt = Infinity;
    let next = Infinity;
    for (const call of this.#calls) {
      if (call.deadline > now) next = Math.min(next, call.deadline);
      else {
        this.#calls.delete(call);
        this.expire(call);
      }
    }
    if (next < this.#timerAt) this.#arm(next);
  }
}

const intervalMs = 20_000;
const timeoutMs = 10_000;

/** Sends PING on a silent connection with open calls, and closes it without an acknowledgement. */
class Keepalive {
  #timer: Timer | undefined;
  #frameCount = 0;

  constructor(private readonly clock: Clock) {}

  watch(connection: ClientConnection): void {
    this.#frameCount = connection.frameCount;
    this.#timer = this.clock.after(intervalMs, () => {
      const isSilent = connection.frameCount === this.#frameCount;
      if (isSilent && connection.streamCount > 0) this.#check(connection);
      else this.watch(connection);
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #check(connection: ClientConnection): void {
    connection.ping();
    this.#timer = this.clock.after(timeoutMs, () => {
      if (connection.frameCount !== this.#frameCount) return this.watch(connection);
      connection.destroy(callError('UNAVAILABLE', 'keepalive timeout: no response to PING'));
    });
  }
}

const maxQueuedMessages = 16;

/** Received messages of a stream that wait to be read. */
class MessageQueue implements CallObserver {
  #messages: Buffer[] = [];
  #end: { readonly error: CallError | undefined } | undefined;
  #wake: (() => void) | undefined;
  call: ClientCall | undefined;

  takeMessage(message: Buffer): void {
    if (this.#messages.push(message) >= maxQueuedMessages) this.call?.pause();
    this.#wake?.();
  }

  takeEnd(error: CallError | undefined): void {
    this.#end = { error };
    this.#wake?.();
  }

  /** Undefined at the end of the stream. Messages received before an error come first. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const message = this.#messages.shift();
      if (message) {
        if (this.#messages.length === 0) this.call?.resume();
        return message;
      }
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }
}
