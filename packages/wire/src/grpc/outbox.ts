import { HeaderList } from '../http2/header-block.js';
import type { Http2Stream } from '../http2/stream.js';
import type { ByteWriter, OutgoingBytes } from '../http2/stream-user.js';
import { acceptedEncodings } from './compression.js';
import { ok, trailersOf, type GrpcStatus } from '../base/status.js';

const headers = { ':status': '200', 'content-type': 'application/grpc+proto' };
const responseHeaders = new HeaderList(headers);
const refusalHeaders = { ...headers, 'grpc-accept-encoding': acceptedEncodings };
const okTrailers = new HeaderList(trailersOf(ok));

const prefixBytes = 5;
// Sent pieces are removed in batches of this size.
const maxSentPieces = 64;

const refusals = new WeakMap<GrpcStatus, HeaderList>();

/** The only headers of a response without messages. Encoded once for a status that is shared. */
function refusalOf(status: GrpcStatus): HeaderList {
  let list = refusals.get(status);
  if (!list) {
    list = new HeaderList({ ...refusalHeaders, ...trailersOf(status) });
    refusals.set(status, list);
  }
  return list;
}

/** Queue of response messages of one call, waiting for flow control. */
export class Outbox implements OutgoingBytes {
  readonly #stream: Http2Stream;
  #pieces: Uint8Array[] = [];
  /** Length of the message prefix written before each piece. */
  #heads: number[] = [];
  /** Index of the first piece that is not fully sent. */
  #first = 0;
  /** Bytes sent of the first piece, including its prefix. */
  #at = 0;
  #hasStatus = false;
  #takenBytes = 0;
  /** Bytes queued and not yet sent. */
  unsentBytes = 0;
  /** Bytes that were written to the socket. */
  sentBytes = 0;
  /** Called after every write. */
  onSent: (() => void) | undefined;

  constructor(stream: Http2Stream) {
    this.#stream = stream;
    stream.outgoing = this;
  }

  sendHeaders(): void {
    this.#stream.respond(responseHeaders);
  }

  /** Sends the response of a unary call and status OK. */
  respond(message: Uint8Array): void {
    this.push(message);
    this.end(ok);
  }

  push(message: Uint8Array): void {
    this.#add(message, prefixBytes);
  }

  /** Messages that have their prefixes already. */
  pushFramed(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#add(bytes, 0);
  }

  /** Ends the call after the queued messages. */
  end(status: GrpcStatus): void {
    if (this.#hasStatus) return;
    this.#hasStatus = true;
    if (this.#stream.hasHeaders) {
      return this.#stream.end(status.code === 0 ? okTrailers : new HeaderList(trailersOf(status)));
    }
    this.#stream.respond(refusalOf(status));
    this.#stream.end();
  }

  /** Drops queued messages. A message that is partly sent must be completed. */
  drop(): void {
    const stored = this.#at > 0 ? this.#first + 1 : this.#first;
    this.unsentBytes -= this.#removeFrom(stored);
    this.#pieces.length = this.#heads.length = stored;
  }

  /** Drops everything: the stream is closed. */
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

  /** Releases the memory of pieces from `first` on. Returns the number of bytes. */
  #removeFrom(first: number): number {
    let bytes = 0;
    for (let i = first; i < this.#pieces.length; i++) {
      bytes += this.#heads[i]! + this.#pieces[i]!.length;
    }
    if (bytes > 0) this.#stream.memory.removeUnsent(bytes);
    return bytes;
  }

  /** Returns the number of prefix bytes written. */
  #takeHead(writer: ByteWriter, length: number, maxBytes: number): number {
    const some = Math.min(prefixBytes - this.#at, maxBytes);
    if (some === prefixBytes) writer.messagePrefix(length);
    else {
      const head = Buffer.alloc(prefixBytes);
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
    if (this.#first < this.#pieces.length && this.#first < maxSentPieces) return;
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
