import { validateHeaderValue } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import { discardRest, hasBody, readBody } from './body.js';
import type { BodyOutcome } from './body.js';
import type { OperationDescription } from './document.js';
import type { Peer } from './peer.js';

/** Refused because the memory held for peers has reached its limit. */
export class PeerMemoryExceeded extends Error {
  constructor() {
    super('The server holds too much data for its clients; try again in a moment.');
  }
}

/** A request that breaks HTTP in a way that Node's parser lets pass. */
export class MalformedRequest extends Error {
  readonly status = 400;
}

/** After which time a client that was refused for want of memory may try again. */
export const peerMemoryRetryMs = 1_000;

const exchangeOf = Symbol('exchange');
type TrackedResponse = ServerResponse & { [exchangeOf]?: Exchange };
const noQuery: Readonly<Record<string, never>> = Object.freeze({});

/** What the allocator takes beside the bytes themselves, as measured under load. */
const withOverhead = (bytes: number) => bytes + (bytes >> 3);

/** Smaller responses are not counted: a connection has few of them, and they are soon gone. */
const countedBytes = 16_384;
/** Larger responses are written piece by piece, so that slow readers can be told from stuck ones. */
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
  /** What the server keeps about the request between its steps. */
  context: unknown;
  /** The caller's name in the request log. */
  principalName: string | undefined;
  /** What the request asks for, as the request log and the metrics name it. */
  operation: OperationDescription | undefined;
  /** On the monotonic clock. */
  startedAt = 0;
  /** Called once when the response is complete or the client has left. */
  onClose: ((isComplete: boolean) => void) | undefined;
  #heldBytes = 0;
  #leaving: AbortController | undefined;
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

  /** True when nobody can be answered any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Aborted when the client leaves before the response is complete. */
  get signal(): AbortSignal {
    if (!this.#leaving) {
      this.#leaving = new AbortController();
      if (this.#isClosed) this.#leaving.abort(clientLeft());
    }
    return this.#leaving.signal;
  }

  /** Headers of the response whatever it is, as a flat list of names and values. */
  setHead(head: readonly string[]): void {
    this.#head = head;
  }

  /** Calls back once the body is complete, refused, or too large; never when the client leaves. */
  readBody(limitBytes: number, done: (body: BodyOutcome) => void): void {
    const { request } = this;
    if (!hasBody(request)) return done(noBytes);
    readBody(request, limitBytes, { hold: (bytes) => this.tryHold(bytes) }, done);
  }

  /** Counts memory against the connection until the exchange is over; false: there is no room. */
  tryHold(bytes: number): boolean {
    const counted = withOverhead(bytes);
    if (!this.peer.account.tryReserve(counted)) return false;
    this.#heldBytes += counted;
    return true;
  }

  /** What was counted by one `tryHold` is held no longer. */
  release(bytes: number): void {
    this.#release(withOverhead(bytes));
  }

  #release(counted: number): void {
    this.#heldBytes -= counted;
    this.peer.account.release(counted);
  }

  /**
   * Sends the whole response. `headers` is a flat list of names and values, which Node writes as
   * it is. Throws PeerMemoryExceeded before anything is sent.
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

  /** The headers of a response that begins now. */
  beginHead(headers: readonly string[]): string[] {
    const head = [...this.#head, ...headers];
    const { request, response } = this;
    if (!request.complete && hasBody(request)) discardRest(request, response);
    else if (this.server.isDraining) head.push('connection', 'close');
    return head;
  }

  /** Writes a part of the response. Resolves when there is room for more. */
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
      if (this.#isClosed) return reject(clientLeft());
      const settle = () => {
        response.removeListener('drain', settle);
        response.removeListener('close', settle);
        if (this.#isClosed) reject(clientLeft());
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

  /** To be called once, when the response is closed. */
  close(): void {
    const { writableFinished } = this.response;
    this.#isClosed = true;
    this.peer.openExchanges--;
    if (this.peer.latest === this) this.peer.latest = undefined;
    if (this.#heldBytes > 0) this.#release(this.#heldBytes);
    if (!writableFinished) this.#leaving?.abort(clientLeft());
    this.onClose?.(writableFinished);
  }
}

/** Header fields as the flat list that `Exchange.send` takes; refuses what HTTP cannot carry. */
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

function clientLeft(): Error {
  return new Error('The client went away');
}

/** A request may carry its path as a whole URL (RFC 9112, 3.2.2). */
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
