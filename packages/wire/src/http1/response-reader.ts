import { ChunkReader } from './chunk-reader.js';
import { mayBecomeHead, parseResponseHead, type ResponseHead } from './response-head.js';
import { malformed } from '../base/failure.js';

/** Receives a response. Body buffers are reused after the call returns. */
export interface ResponseSink {
  headArrived(head: ResponseHead): void;
  /** Returns false to stop reading the body. */
  bodyArrived(bytes: Buffer): boolean;
}

/** `more`: incomplete. `whole`: complete. `unwanted`: the sink stopped reading. */
export type ReadResult = 'more' | 'whole' | 'unwanted';

const endOfHead = Buffer.from('\r\n\r\n');
/** The same as in node:http. */
const maxHeadBytes = 16_384;
/** Interim (1xx) responses before the final one. */
const maxInterimHeads = 16;
/** Larger heads are not cached, because each connection holds one. */
const maxCachedHeadBytes = 2_048;

/**
 * Parses the responses of one connection incrementally. Throws a `Failure` on anything that is not
 * valid HTTP/1.1; the connection must then be closed.
 */
export class ResponseReader {
  /** Whether the last response allows the connection to be reused. */
  keepsAlive = false;
  keepAliveMs: number | undefined;
  #sink: ResponseSink | undefined;
  #isHeadOnly = false;
  #expects: 'head' | 'length' | 'chunks' | 'close' | 'nothing' = 'nothing';
  #held: Buffer | undefined;
  #left = 0;
  #chunks: ChunkReader | undefined;
  #interimHeads = 0;
  // Servers send identical heads within one second (the Date header), so the last is cached.
  #lastText = '';
  #lastHead: ResponseHead | undefined;

  /** Expects the response of a new request. */
  begin(sink: ResponseSink, isHeadOnly: boolean): void {
    this.forget();
    this.#sink = sink;
    this.#isHeadOnly = isHeadOnly;
    this.#expects = 'head';
  }

  /** Resets the parser. */
  forget(): void {
    this.#sink = undefined;
    this.#expects = 'nothing';
    this.#held = undefined;
    this.#chunks = undefined;
    this.#left = 0;
    this.#interimHeads = 0;
  }

  read(bytes: Buffer): ReadResult {
    const sink = this.#sink;
    if (sink === undefined) throw malformed('it arrived before a request was sent');
    if (this.#expects === 'head') return this.#readHead(bytes, sink);
    return this.#readBody(bytes, 0, sink);
  }

  /** The connection has closed. True when that ends the response (close-delimited body). */
  ended(): boolean {
    return this.#expects === 'close';
  }

  #readHead(read: Buffer, sink: ResponseSink): ReadResult {
    const held = this.#held;
    const bytes = held === undefined ? read : Buffer.concat([held, read]);
    this.#held = undefined;
    let from = held === undefined ? 0 : Math.max(0, held.length - endOfHead.length);
    let at = 0;
    for (;;) {
      const end = bytes.indexOf(endOfHead, from);
      const length = (end < 0 ? bytes.length : end) - at;
      if (length > maxHeadBytes) throw malformed('the head is too long');
      const text = bytes.toString('latin1', at, at + length);
      if (end < 0) return this.#hold(bytes.subarray(at), text);
      const head = this.#headOf(text);
      at = end + endOfHead.length;
      from = at;
      if (head.status === 101) throw malformed('it switches protocols without an Upgrade request');
      if (head.status >= 200) return this.#headArrived(head, bytes, at, sink);
      if (!head.keepsAlive) throw malformed('an interim response closes the connection');
      if (++this.#interimHeads > maxInterimHeads)
        throw malformed('it has too many interim responses');
    }
  }

  #hold(bytes: Buffer, text: string): ReadResult {
    if (!mayBecomeHead(text)) throw malformed('it does not start with HTTP/1.');
    // Copied because the read buffer is reused.
    if (bytes.length > 0) this.#held = Buffer.from(bytes);
    return 'more';
  }

  #headOf(text: string): ResponseHead {
    if (text === this.#lastText && this.#lastHead !== undefined) return this.#lastHead;
    const head = parseResponseHead(text);
    if (typeof head === 'string') throw malformed(head);
    if (text.length <= maxCachedHeadBytes) {
      this.#lastText = text;
      this.#lastHead = head;
    }
    return head;
  }

  #headArrived(head: ResponseHead, bytes: Buffer, at: number, sink: ResponseSink): ReadResult {
    const { status, framing } = head;
    this.keepsAlive = head.keepsAlive;
    this.keepAliveMs = head.keepAliveMs;
    sink.headArrived(head);
    if (this.#isHeadOnly || status === 204 || status === 304) return this.#finish(bytes, at);
    this.#expects = framing.kind;
    if (framing.kind === 'length') this.#left = framing.bytes;
    else if (framing.kind === 'chunks') this.#chunks = new ChunkReader();
    else this.keepsAlive = false;
    return this.#readBody(bytes, at, sink);
  }

  #readBody(bytes: Buffer, start: number, sink: ResponseSink): ReadResult {
    let at = start;
    if (this.#expects === 'chunks') {
      const chunks = this.#chunks!;
      at = chunks.read(bytes, at, (part) => sink.bodyArrived(part));
      if (at < 0) return 'unwanted';
      return chunks.isComplete ? this.#finish(bytes, at) : 'more';
    }
    const end = this.#expects === 'close' ? bytes.length : Math.min(bytes.length, at + this.#left);
    if (end > at && !sink.bodyArrived(bytes.subarray(at, end))) return 'unwanted';
    this.#left -= end - at;
    if (this.#expects === 'close' || this.#left > 0) return 'more';
    return this.#finish(bytes, end);
  }

  #finish(bytes: Buffer, at: number): ReadResult {
    this.forget();
    // Bytes after the response are unexpected.
    if (at < bytes.length) this.keepsAlive = false;
    return 'whole';
  }
}
