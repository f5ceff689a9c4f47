import {
  validateHeaderValue,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import {
  connectionsExceeded,
  type ConnectionSlot,
  ReadRate,
  type PeerMemory,
  type PeerMemoryAccount,
} from '../base/limits.js';
import { discardRest, hasBody, readBody, type BodyOutcome } from './body.js';
import type { OperationDescription } from './document.js';
import type { Socket } from 'node:net';

/** The memory limit for peers is reached. */
export class PeerMemoryExceeded extends Error {
  constructor() {
    super('The server holds too much data for its clients. Retry later.');
  }
}

/** All connections that the server may have are in use. */
export class ConnectionsExceeded extends Error {
  constructor() {
    super(connectionsExceeded);
  }
}

/** An invalid request that Node's parser accepts. */
export class MalformedRequest extends Error {
  readonly status = 400;
}

/** Retry-After of requests rejected by the memory limit. */
export const peerMemoryRetryMs = 1_000;

const exchangeOf = Symbol('exchange');
type TrackedResponse = ServerResponse & { [exchangeOf]?: Exchange };
const noQuery: Readonly<Record<string, never>> = Object.freeze({});

/** Adds the allocator overhead, as measured under load. */
const withOverhead = (bytes: number) => bytes + (bytes >> 3);

/** Smaller responses are not counted: there are few per connection, and they are short-lived. */
const countedBytes = 16_384;
/** Larger responses are written in pieces, so that the read rate of the client can be measured. */
const pieceBytes = 32_768;

/** One request and its response. */
export class Exchange {
  readonly method: string;
  /** The path as it was sent, without the query. */
  readonly path: string;
  /** The query as it was sent, without the question mark. */
  readonly queryText: string;
  /** Identifies the request in logs and responses. */
  id = '';
  /** Path parameters, decoded. */
  params: Readonly<Record<string, string>> = noQuery;
  principal: unknown;
  /** State of the server for this request. */
  context: unknown;
  /** Name of the principal in the request log. */
  principalName: string | undefined;
  /** The operation, for the request log and the metrics. */
  operation: OperationDescription | undefined;
  /** On the monotonic clock. */
  startedAt = 0;
  /** Called once when the response is complete or the client has disconnected. */
  onClose: ((isComplete: boolean) => void) | undefined;
  /** The operation reads the body while it responds. */
  isBodyStreamed = false;
  /** The connection closes after the response. */
  closesConnection = false;
  #heldBytes = 0;
  #disconnect: AbortController | undefined;
  #isClosed = false;
  #head: readonly string[] = [];

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly peer: Peer,
    private readonly server: { readonly isDraining: boolean },
  ) {
    this.method = request.method!;
    const target = originForm(request.url!);
    const end = endOfPath(target);
    this.path = end === -1 ? target : target.slice(0, end);
    this.queryText = end === -1 || target[end] === '#' ? '' : withoutFragment(target, end + 1);
    peer.openExchanges++;
    peer.slot.enter();
    peer.latest = this;
    const tracked: TrackedResponse = response;
    tracked[exchangeOf] = this;
    response.on('close', onResponseClose);
  }

  get headers(): IncomingHttpHeaders {
    return this.request.headers;
  }

  get ip(): string {
    return this.peer.socket.remoteAddress ?? '';
  }

  /** Text by name, or a list of texts where a name is repeated. */
  get query(): Readonly<Record<string, unknown>> {
    return this.queryText === '' ? noQuery : parseQuery(this.queryText);
  }

  /** True when no response can be sent any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Aborted when the client disconnects before the response is complete. */
  get signal(): AbortSignal {
    if (!this.#disconnect) {
      this.#disconnect = new AbortController();
      if (this.#isClosed) this.#disconnect.abort(clientDisconnected());
    }
    return this.#disconnect.signal;
  }

  /** Headers of every response of this exchange, as a flat list of names and values. */
  setHead(head: readonly string[]): void {
    this.#head = head;
  }

  /** Calls `done` when the body is complete or rejected; never when the client disconnects. */
  readBody(limitBytes: number, done: (body: BodyOutcome) => void): void {
    const { request } = this;
    if (!hasBody(request)) return done(noBytes);
    readBody(request, limitBytes, { hold: (bytes) => this.tryHold(bytes) }, done);
  }

  /** Counts memory against the connection until the exchange ends; false at the limit. */
  tryHold(bytes: number): boolean {
    const counted = withOverhead(bytes);
    if (!this.peer.account.tryReserve(counted)) return false;
    this.#heldBytes += counted;
    return true;
  }

  /** Releases the memory of one `tryHold`. */
  release(bytes: number): void {
    this.#release(withOverhead(bytes));
  }

  #release(counted: number): void {
    this.#heldBytes -= counted;
    this.peer.account.release(counted);
  }

  /**
   * Sends a complete response. `headers` is a flat list of names and values. Throws
   * PeerMemoryExceeded before anything is sent.
   */
  send(status: number, headers: readonly string[], body?: string | Buffer): void {
    if (this.#isClosed) return;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : (body?.length ?? 0);
    const isSent = this.method !== 'HEAD';
    if (isSent && length > countedBytes && !this.tryHold(length)) throw new PeerMemoryExceeded();
    const head = this.beginHead(headers);
    if (body !== undefined || status !== 204) head.push('content-length', String(length));
    this.response.writeHead(status, head);
    if (!isSent || length <= 2 * pieceBytes) this.response.end(body);
    else this.#sendPieces(typeof body === 'string' ? Buffer.from(body) : body!);
  }

  /** Begins a response of unknown length; `write` and `end` follow. */
  begin(status: number, headers: readonly string[]): void {
    if (this.#isClosed) return;
    this.response.writeHead(status, this.beginHead(headers));
    this.response.flushHeaders();
  }

  /** Returns the headers of a response that starts now. */
  beginHead(headers: readonly string[]): string[] {
    const head = [...this.#head, ...headers];
    const { request, response } = this;
    const isUnread = !request.complete && hasBody(request) && !this.isBodyStreamed;
    if (this.closesConnection) response.shouldKeepAlive = false;
    if (isUnread) discardRest(request, response);
    else if (this.server.isDraining || this.closesConnection) head.push('connection', 'close');
    return head;
  }

  /** Writes a part of the response. Resolves when more can be written. */
  write(part: string | Uint8Array): Promise<void> | undefined {
    const length = typeof part === 'string' ? Buffer.byteLength(part) : part.byteLength;
    if (length <= pieceBytes) return this.response.write(part) ? undefined : this.#drained();
    return this.#writePieces(typeof part === 'string' ? Buffer.from(part) : part, length);
  }

  async #writePieces(bytes: Uint8Array, length: number): Promise<void> {
    if (!this.tryHold(length)) throw new PeerMemoryExceeded();
    for (let at = 0; at < length; at += pieceBytes) {
      if (!this.response.write(bytes.subarray(at, at + pieceBytes))) await this.#drained();
    }
    this.release(length);
  }

  #drained(): Promise<void> {
    const { response } = this;
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(clientDisconnected());
      const settle = () => {
        response.removeListener('drain', settle);
        response.removeListener('close', settle);
        if (this.#isClosed) reject(clientDisconnected());
        else resolve();
      };
      response.on('drain', settle);
      response.on('close', settle);
    });
  }

  #sendPieces(bytes: Buffer): void {
    const { response } = this;
    let at = 0;
    const writeOn = () => {
      while (at + pieceBytes < bytes.length) {
        const piece = bytes.subarray(at, (at += pieceBytes));
        if (!response.write(piece)) return void response.once('drain', writeOn);
      }
      response.end(bytes.subarray(at));
    };
    writeOn();
  }

  /**
   * Calls `run` if the client does not get what the handler returned: it disconnects before the
   * response is complete, or gets an error instead.
   */
  onUnsent(run: () => void): void {
    const { response } = this;
    const check = () => {
      if (!response.writableFinished || response.statusCode >= 400) run();
    };
    if (this.#isClosed) check();
    else response.once('close', check);
  }

  /** Call once, when the response is closed. */
  close(): void {
    const { writableFinished } = this.response;
    this.#isClosed = true;
    this.peer.openExchanges--;
    this.peer.slot.leave();
    if (this.peer.latest === this) this.peer.latest = undefined;
    if (this.#heldBytes > 0) this.#release(this.#heldBytes);
    if (!writableFinished) this.#disconnect?.abort(clientDisconnected());
    this.onClose?.(writableFinished);
  }
}

/** Header fields as the flat list of `Exchange.send`; throws on invalid values. */
export function headerList(
  headers: Readonly<Record<string, string | number | boolean | undefined>>,
): string[] {
  const list: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) continue;
    const text = String(value);
    validateHeaderValue(name, text);
    list.push(name.toLowerCase(), text);
  }
  return list;
}

// One function for all responses, not one per request.
function onResponseClose(this: TrackedResponse): void {
  this[exchangeOf]?.close();
}

function clientDisconnected(): Error {
  return new Error('The client disconnected');
}

/** Converts a request target in absolute form to origin form (RFC 9112, 3.2.2). */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const rest = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  return rest === '' || rest.startsWith('?') || rest.startsWith('#') ? `/${rest}` : rest;
}

function endOfPath(target: string): number {
  const mark = target.indexOf('?');
  const fragment = target.indexOf('#');
  if (mark === -1 || fragment === -1) return Math.max(mark, fragment);
  return Math.min(mark, fragment);
}

function withoutFragment(target: string, start: number): string {
  const fragment = target.indexOf('#', start);
  return fragment === -1 ? target.slice(start) : target.slice(start, fragment);
}

const noBytes = Buffer.alloc(0);

const peerOf = Symbol('peer');
type PeerSocket = Socket & { [peerOf]?: Peer };

/** One connection of an HTTP server: what it holds in memory and how fast it reads. */
export class Peer {
  readonly account: PeerMemoryAccount;
  /** Exchanges whose response is not complete; more than one when requests are pipelined. */
  openExchanges = 0;
  latest: { readonly response: ServerResponse } | undefined;
  readonly #rate = new ReadRate();
  #takenBytes = 0;
  #wasWaiting = false;

  constructor(
    readonly socket: Socket,
    memory: PeerMemory,
    readonly slot: ConnectionSlot,
  ) {
    this.account = memory.openAccount();
    (socket as PeerSocket)[peerOf] = this;
  }

  static of(socket: Socket): Peer | undefined {
    return (socket as PeerSocket)[peerOf];
  }

  /** True while a response is being written, into which nothing else must be written. */
  get isResponding(): boolean {
    if (this.openExchanges === 0) return false;
    return this.openExchanges > 1 || this.latest?.response.headersSent === true;
  }

  get isWaiting(): boolean {
    return this.socket.writableLength > 0;
  }

  /**
   * Call periodically. True when the peer reads too slowly while responses wait for it.
   * `kernelBytes`: what the kernel holds for it, which the peer has not read yet.
   */
  isTooSlow(now: number, kernelBytes: number): boolean {
    const { bytesWritten, writableLength } = this.socket;
    const takenBytes = bytesWritten - writableLength - kernelBytes;
    if (writableLength === 0) {
      this.#rate.drained();
    } else {
      // What was taken before responses began to wait says nothing about the rate.
      if (this.#wasWaiting) this.#rate.taken(takenBytes - this.#takenBytes);
      this.#rate.waiting(now);
    }
    this.#wasWaiting = writableLength > 0;
    this.#takenBytes = takenBytes;
    return this.#rate.isTooSlow(now);
  }
}
