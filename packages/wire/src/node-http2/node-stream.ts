import type { ServerHttp2Stream } from 'node:http2';
import type { HeaderList } from '../header-list.js';
import type { ConnectionMemory } from '../http2/connection-memory.js';
import { errorCodes, type ErrorName } from '../http2/protocol.js';
import type { ByteWriter, OutgoingBytes, ServerStream, StreamUser } from '../server-stream.js';

const maxWriteBytes = 64 * 1024;

/** Adapts a stream of node:http2 to `ServerStream`. */
export class NodeStream implements ServerStream {
  outgoing: OutgoingBytes | undefined;
  isClosed = false;
  #user: StreamUser | undefined;
  #headers: HeaderList | undefined;
  #trailers: HeaderList | undefined;
  #areHeadersSent = false;
  #hasEnd = false;
  #isEndSent = false;
  #isQueued = false;
  /** Written, but not yet sent by the session. */
  #pendingBytes = 0;

  constructor(
    private readonly stream: ServerHttp2Stream,
    readonly memory: ConnectionMemory,
    private readonly onTaken: (bytes: number) => void,
  ) {
    stream.on('error', () => undefined);
    stream.on('close', () => this.#close());
    stream.on('drain', () => this.wake());
    stream.on('wantTrailers', () => stream.sendTrailers({ ...this.#trailers?.fields }));
    stream.on('finish', () => {
      // After a complete response the rest of the request is not needed (RFC 9113, 8.1).
      if (!stream.readableEnded) stream.close(errorCodes.NO_ERROR);
    });
  }

  get user(): StreamUser | undefined {
    return this.#user;
  }

  set user(user: StreamUser | undefined) {
    this.#user = user;
    if (!user) {
      this.stream.resume();
      return;
    }
    this.stream.on('data', (chunk: Buffer) => user.takeBytes(chunk, 0, chunk.length));
    this.stream.on('end', () => user.takeEnd());
  }

  get hasHeaders(): boolean {
    return this.#headers !== undefined || this.#areHeadersSent;
  }

  get hasMore(): boolean {
    return this.#pendingBytes > 0 || (this.outgoing?.unsentBytes ?? 0) > 0;
  }

  /** Node does not expose the peer's window; unsent bytes show that it is exhausted. */
  get isWindowExhausted(): boolean {
    return this.#pendingBytes > 0;
  }

  respond(headers: HeaderList): void {
    if (this.hasHeaders || this.isClosed) return;
    this.#headers = headers;
    this.wake();
  }

  wake(): void {
    if (this.#isQueued || this.isClosed) return;
    this.#isQueued = true;
    process.nextTick(flush, this);
  }

  end(trailers?: HeaderList): void {
    if (this.#hasEnd || this.isClosed) return;
    this.#hasEnd = true;
    this.#trailers = trailers;
    this.wake();
  }

  reset(code: ErrorName): void {
    if (!this.isClosed) this.stream.close(errorCodes[code]);
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  flush(): void {
    this.#isQueued = false;
    const { stream } = this;
    if (this.isClosed || stream.destroyed) return;
    if (this.#headers) this.#sendHeaders(this.#headers);
    while (this.outgoing && this.outgoing.unsentBytes > 0 && !stream.writableNeedDrain) {
      this.#sendData(this.outgoing);
    }
    if (!this.#hasEnd || this.#isEndSent || (this.outgoing?.unsentBytes ?? 0) > 0) return;
    this.#isEndSent = true;
    stream.end();
  }

  #sendHeaders({ fields }: HeaderList): void {
    this.#headers = undefined;
    this.#areHeadersSent = true;
    const isAll = this.#hasEnd && !this.#trailers && (this.outgoing?.unsentBytes ?? 0) === 0;
    const waitForTrailers = !isAll && !(this.#hasEnd && !this.#trailers);
    this.stream.respond({ ...fields }, { endStream: isAll, waitForTrailers });
    if (isAll) this.#isEndSent = true;
    if (isAll && !this.stream.readableEnded) this.stream.close(errorCodes.NO_ERROR);
  }

  #sendData(outgoing: OutgoingBytes): void {
    const parts = new Parts();
    outgoing.take(parts, Math.min(outgoing.unsentBytes, maxWriteBytes));
    const bytes = Buffer.concat(parts.all);
    this.#pendingBytes += bytes.length;
    this.memory.addUnsent(bytes.length);
    this.stream.write(bytes, (error) => {
      if (this.isClosed) return;
      this.#pendingBytes -= bytes.length;
      this.memory.removeUnsent(bytes.length);
      if (error) return;
      this.onTaken(bytes.length);
      outgoing.takeSent();
    });
  }

  #close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.memory.removeUnsent(this.#pendingBytes);
    this.#headers = this.#trailers = undefined;
    this.outgoing?.forget();
    this.user?.takeClose();
  }
}

function flush(stream: NodeStream): void {
  stream.flush();
}

class Parts implements ByteWriter {
  readonly all: Uint8Array[] = [];

  messagePrefix(length: number): void {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(length, 1);
    this.all.push(head);
  }

  bytes(source: Uint8Array, start: number, end: number): void {
    this.all.push(source.subarray(start, end));
  }
}
