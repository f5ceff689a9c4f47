import { HeaderList } from '../header-list.js';
import type { ByteWriter, OutgoingBytes, ServerStream } from '../server-stream.js';
import { acceptedEncodings } from './compression.js';
import { ok, trailersOf, type GrpcStatus } from './status.js';

const headers = { ':status': '200', 'content-type': 'application/grpc+proto' };
const responseHeaders = new HeaderList(headers);
const refusalHeaders = { ...headers, 'grpc-accept-encoding': acceptedEncodings };
const okTrailers = new HeaderList(trailersOf(ok));

const headBytes = 5;
// Pieces that are sent are let go of so many at a time.
const mostSentPieces = 64;

/** What goes to the caller. Messages wait here until there is room for them on the way. */
export class Outbox implements OutgoingBytes {
  readonly #stream: ServerStream;
  #pieces: Uint8Array[] = [];
  /** How many bytes we put before each piece. */
  #heads: number[] = [];
  /** The pieces before this one are sent. */
  #first = 0;
  /** How much is sent of the first piece, what stands before it included. */
  #at = 0;
  #hasStatus = false;
  #takenBytes = 0;
  /** Waiting for the caller to take it. */
  unsentBytes = 0;
  /** How much the caller has taken. */
  sentBytes = 0;
  /** Hears of every write that is done. */
  onSent: (() => void) | undefined;

  constructor(stream: ServerStream) {
    this.#stream = stream;
    stream.outgoing = this;
  }

  sendHeaders(): void {
    this.#stream.respond(responseHeaders);
  }

  /** The one message of a unary call, and its good end. */
  answer(message: Uint8Array): void {
    this.push(message);
    this.end(ok);
  }

  push(message: Uint8Array): void {
    this.#add(message, headBytes);
  }

  /** Messages that have their heads already. */
  pushFramed(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#add(bytes, 0);
  }

  /** Ends the call when all is sent. */
  end(status: GrpcStatus): void {
    if (this.#hasStatus) return;
    this.#hasStatus = true;
    const trailers = status.code === 0 ? okTrailers : new HeaderList(trailersOf(status));
    if (this.#stream.hasHeaders) return this.#stream.end(trailers);
    this.#stream.respond(new HeaderList({ ...refusalHeaders, ...trailers.fields }));
    this.#stream.end();
  }

  /** Forgets what is not yet on its way. The rest of what is must follow, or nothing could. */
  drop(): void {
    const kept = this.#at > 0 ? this.#first + 1 : this.#first;
    this.unsentBytes -= this.#removeFrom(kept);
    this.#pieces.length = this.#heads.length = kept;
  }

  /** Nothing goes out any more. */
  forget(): void {
    this.#removeFrom(this.#first);
    this.#pieces = [];
    this.#heads = [];
    this.#first = this.#at = this.unsentBytes = 0;
    this.#hasStatus = true;
  }

  take(writer: ByteWriter, count: number): void {
    this.unsentBytes -= count;
    this.#takenBytes += count;
    for (let left = count; left > 0;) {
      const piece = this.#pieces[this.#first]!;
      const head = this.#heads[this.#first]!;
      if (this.#at < head) left -= this.#takeHead(writer, piece.length, left);
      const start = this.#at - head;
      const some = Math.min(left, piece.length - start);
      if (some > 0) {
        writer.bytes(piece, start, start + some);
        this.#at += some;
        left -= some;
      }
      if (this.#at === head + piece.length) this.#next();
    }
  }

  takeSent(): void {
    this.sentBytes += this.#takenBytes;
    this.#takenBytes = 0;
    this.onSent?.();
  }

  #add(bytes: Uint8Array, head: number): void {
    if (this.#hasStatus || this.#stream.isClosed) return;
    this.#pieces.push(bytes);
    this.#heads.push(head);
    this.unsentBytes += head + bytes.length;
    this.#stream.memory.addUnsent(head + bytes.length);
    this.#stream.respond(responseHeaders);
    this.#stream.wake();
  }

  /** A piece is in memory until its last byte is sent. Returns how much is no longer counted. */
  #removeFrom(first: number): number {
    let bytes = 0;
    for (let i = first; i < this.#pieces.length; i++) {
      bytes += this.#heads[i]! + this.#pieces[i]!.length;
    }
    if (bytes > 0) this.#stream.memory.removeUnsent(bytes);
    return bytes;
  }

  /** Answers how many bytes of it fit. */
  #takeHead(writer: ByteWriter, length: number, mostBytes: number): number {
    const some = Math.min(headBytes - this.#at, mostBytes);
    if (some === headBytes) writer.messageHead(length);
    else {
      const head = Buffer.alloc(headBytes);
      head.writeUInt32BE(length, 1);
      writer.bytes(head, this.#at, this.#at + some);
    }
    this.#at += some;
    return some;
  }

  #next(): void {
    this.#stream.memory.removeUnsent(this.#at);
    this.#at = 0;
    this.#first++;
    if (this.#first < this.#pieces.length && this.#first < mostSentPieces) return;
    if (this.#first === this.#pieces.length) {
      this.#pieces = [];
      this.#heads = [];
    } else {
      this.#pieces.splice(0, this.#first);
      this.#heads.splice(0, this.#first);
    }
    this.#first = 0;
  }
}
