import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { acceptedEncodings } from './compression.js';
import { ok, trailersOf, type GrpcStatus } from './status.js';

const headers: OutgoingHttpHeaders = {
  ':status': 200,
  'content-type': 'application/grpc+proto',
};
const refusalHeaders = { ...headers, 'grpc-accept-encoding': acceptedEncodings };
const withTrailers = { endStream: false, waitForTrailers: true, sendDate: false };
const withoutBody = { endStream: true, sendDate: false };

const headBytes = 5;
// A write costs much more than joining some messages does.
const mostJoinedBytes = 256 * 1024;

/** What goes to the caller. Messages that come faster than they are written share a write. */
export class Outbox {
  readonly #stream: ServerHttp2Stream;
  #queue: Uint8Array[] = [];
  /** A write is under way or about to begin. */
  #isWriting = false;
  #status: GrpcStatus | undefined;
  #isEnded = false;
  /** The caller has not said all. */
  isRequestOpen = true;
  /** Waiting for the caller to take it. */
  unsentBytes = 0;
  /** How much the caller has taken. */
  sentBytes = 0;
  /** Hears of every write that is done. */
  onSent: (() => void) | undefined;

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream;
  }

  sendHeaders(): void {
    if (!this.#isGone && !this.#stream.headersSent) this.#stream.respond(headers, withTrailers);
  }

  /** The one message of a unary call, and its good end. */
  answer(message: Uint8Array): void {
    if (this.#isGone) return;
    this.#status = ok;
    this.#isEnded = true;
    this.#stream.respond(headers, withTrailers);
    this.#stream.end(framed([message], headBytes + message.length));
  }

  push(message: Uint8Array): void {
    if (this.#isGone || this.#status) return;
    this.#queue.push(message);
    this.unsentBytes += headBytes + message.length;
    if (this.#isWriting) return;
    this.#isWriting = true;
    // By then whatever else there is to say at this moment has been pushed, too.
    process.nextTick(writeQueued, this);
  }

  /** Ends the call when all is sent. */
  end(status: GrpcStatus): void {
    if (this.#isGone || this.#status) return;
    this.#status = status;
    if (!this.#isWriting) this.#finish(status);
  }

  /** Forgets what is not yet on its way. */
  drop(): void {
    for (const message of this.#queue) this.unsentBytes -= headBytes + message.length;
    this.#queue = [];
  }

  /** Lets go of a caller that does not take what it asked for. */
  reset(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  sendTrailers(): void {
    this.#stream.sendTrailers(trailersOf(this.#status ?? ok));
  }

  writeQueued(): void {
    if (this.#isGone) return this.drop();
    if (this.#queue.length > 0) this.#write(this.#joined());
    else this.#isWriting = false;
    if (this.#status && this.#queue.length === 0) this.#finish(this.#status);
  }

  /** A stream that is destroyed is closed, too. */
  get #isGone(): boolean {
    return this.#stream.closed;
  }

  #finish(status: GrpcStatus): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#stream.headersSent) return void this.#stream.end();
    this.#stream.respond({ ...refusalHeaders, ...trailersOf(status) }, withoutBody);
    // The rest of a request that is answered need not be sent.
    if (this.isRequestOpen) this.#stream.close(constants.NGHTTP2_NO_ERROR);
  }

  #write(bytes: Buffer): void {
    this.sendHeaders();
    this.#stream.write(bytes, (error) => {
      // The stream is gone, which it tells itself.
      if (error) return;
      this.unsentBytes -= bytes.length;
      this.sentBytes += bytes.length;
      this.writeQueued();
      this.onSent?.();
    });
  }

  /** Takes as many messages as go into one write. */
  #joined(): Buffer {
    const queue = this.#queue;
    let size = 0;
    let count = 0;
    for (; count < queue.length; count++) {
      const more = headBytes + queue[count]!.length;
      if (count > 0 && size + more > mostJoinedBytes) break;
      size += more;
    }
    return framed(queue.splice(0, count), size);
  }
}

function writeQueued(outbox: Outbox): void {
  outbox.writeQueued();
}

function framed(messages: readonly Uint8Array[], size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  for (const message of messages) {
    bytes[at] = 0;
    bytes.writeUInt32BE(message.length, at + 1);
    bytes.set(message, at + headBytes);
    at += headBytes + message.length;
  }
  return bytes;
}
