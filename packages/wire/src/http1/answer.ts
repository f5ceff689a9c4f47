import { ChunkReader } from './answer-chunks.js';
import { mayBecomeHead, readAnswerHead, type AnswerHead } from './answer-head.js';
import { malformed } from './failure.js';

/** Who hears of a response. What it is given of the body lies there until the call ends. */
export interface AnswerSink {
  headArrived(head: AnswerHead): void;
  /** False: no more of it is wanted. */
  bodyArrived(bytes: Buffer): boolean;
}

/** `more`: it has not ended yet. `unwanted`: its sink has enough of it. */
export type Reading = 'more' | 'whole' | 'unwanted';

const endOfHead = Buffer.from('\r\n\r\n');
/** As many as Node's own HTTP takes. */
const mostHeadBytes = 16_384;
/** Of hints and the like before the response proper. */
const mostInterimHeads = 16;
/** There may be very many connections. */
const mostKeptHeadBytes = 2_048;

/**
 * Reads responses from one connection, one after the other, in whatever pieces they arrive. Throws
 * a `Failure` at what is not HTTP/1.1 as it should be; the connection is of no use then.
 */
export class AnswerReader {
  /** Whether the connection may be used again, as far as the response that ended tells. */
  keepsAlive = false;
  keepAliveMs: number | undefined;
  #sink: AnswerSink | undefined;
  #isHeadOnly = false;
  #expects: 'head' | 'length' | 'chunks' | 'close' | 'nothing' = 'nothing';
  #held: Buffer | undefined;
  #left = 0;
  #chunks: ChunkReader | undefined;
  #interimHeads = 0;
  // Within one second, servers say the same again and again.
  #lastText = '';
  #lastHead: AnswerHead | undefined;

  /** From now on, what is read answers this. */
  begin(sink: AnswerSink, isHeadOnly: boolean): void {
    this.forget();
    this.#sink = sink;
    this.#isHeadOnly = isHeadOnly;
    this.#expects = 'head';
  }

  /** Lets go of what was under way; it may have been broken off anywhere. */
  forget(): void {
    this.#sink = undefined;
    this.#expects = 'nothing';
    this.#held = undefined;
    this.#chunks = undefined;
    this.#left = 0;
    this.#interimHeads = 0;
  }

  read(bytes: Buffer): Reading {
    const sink = this.#sink;
    if (sink === undefined) throw malformed('it came before it was asked for');
    if (this.#expects === 'head') return this.#readHead(bytes, sink);
    return this.#readBody(bytes, 0, sink);
  }

  /** The connection has ended. True: that is how the response ends, too. */
  ended(): boolean {
    return this.#expects === 'close';
  }

  #readHead(read: Buffer, sink: AnswerSink): Reading {
    const held = this.#held;
    const bytes = held === undefined ? read : Buffer.concat([held, read]);
    this.#held = undefined;
    let from = held === undefined ? 0 : Math.max(0, held.length - endOfHead.length);
    let at = 0;
    for (;;) {
      const end = bytes.indexOf(endOfHead, from);
      const length = (end < 0 ? bytes.length : end) - at;
      if (length > mostHeadBytes) throw malformed('its head is too long');
      const text = bytes.toString('latin1', at, at + length);
      if (end < 0) return this.#hold(bytes.subarray(at), text);
      const head = this.#headOf(text);
      at = end + endOfHead.length;
      from = at;
      if (head.status === 101) throw malformed('it changes to a protocol that nobody asked for');
      if (head.status >= 200) return this.#headArrived(head, bytes, at, sink);
      if (!head.keepsAlive) throw malformed('it ends before it has begun');
      if (++this.#interimHeads > mostInterimHeads) throw malformed('it does not come to the point');
    }
  }

  #hold(bytes: Buffer, text: string): Reading {
    if (!mayBecomeHead(text)) throw malformed('it does not begin like one');
    // Copied: the next read may be to the same place.
    if (bytes.length > 0) this.#held = Buffer.from(bytes);
    return 'more';
  }

  #headOf(text: string): AnswerHead {
    if (text === this.#lastText && this.#lastHead !== undefined) return this.#lastHead;
    const head = readAnswerHead(text);
    if (typeof head === 'string') throw malformed(head);
    if (text.length <= mostKeptHeadBytes) {
      this.#lastText = text;
      this.#lastHead = head;
    }
    return head;
  }

  #headArrived(head: AnswerHead, bytes: Buffer, at: number, sink: AnswerSink): Reading {
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

  #readBody(bytes: Buffer, start: number, sink: AnswerSink): Reading {
    let at = start;
    if (this.#expects === 'chunks') {
      const chunks = this.#chunks!;
      at = chunks.read(bytes, at, (part) => sink.bodyArrived(part));
      if (at < 0) return 'unwanted';
      return chunks.isWhole ? this.#finish(bytes, at) : 'more';
    }
    const end = this.#expects === 'close' ? bytes.length : Math.min(bytes.length, at + this.#left);
    if (end > at && !sink.bodyArrived(bytes.subarray(at, end))) return 'unwanted';
    this.#left -= end - at;
    if (this.#expects === 'close' || this.#left > 0) return 'more';
    return this.#finish(bytes, end);
  }

  #finish(bytes: Buffer, at: number): Reading {
    this.forget();
    // Nobody asked for what is behind it.
    if (at < bytes.length) this.keepsAlive = false;
    return 'whole';
  }
}
