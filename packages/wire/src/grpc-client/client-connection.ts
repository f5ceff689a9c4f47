import { type ByteSource, type ConnectionMemory, Failure, failureOf } from '../base/socket.js';
import {
  protocolError,
  ConnectionError,
  defaultWindowBytes,
  maxWindowBytes,
  preface,
  type ErrorName,
  goaway,
  pingFrame,
  rstStream,
  settingsFrame,
  windowUpdate,
} from '../http2/frames.js';
import { connectionWindowBytes, FrameLoop } from '../http2/frame-loop.js';
import { OpenStreams, Http2Stream } from '../http2/stream.js';
import type { ConnectionSendParts } from '../http2/send-queue.js';
import { streamWindowBytes } from '../http2/streams.js';
import {
  callError,
  connectionError,
  resetError,
  type CallError,
  type CallHost,
  type ClientCall,
  maxResponseHeaderBytes,
  ResponseHeaders,
} from './client-call.js';

const maxStreamId = 2 ** 31 - 1;

const clientPreface = Buffer.concat([
  preface,
  settingsFrame({
    enablePush: 0,
    initialWindowSize: streamWindowBytes,
    maxHeaderListSize: maxResponseHeaderBytes,
  }),
  windowUpdate(0, connectionWindowBytes - defaultWindowBytes),
]);

export interface ClientConnectionParts extends ConnectionSendParts {
  /** The peer's SETTINGS have arrived. */
  onSettings(): void;
  /** A stream has ended. */
  onRoom(): void;
  /** No further call can be started. `isUsed`: the peer had sent its SETTINGS. */
  onClosed(error: CallError, isUsed: boolean): void;
  /** The socket is closed. */
  onOver(): void;
}

/** The client side of an HTTP/2 connection (RFC 9113). */
export class ClientConnection extends FrameLoop<ResponseHeaders> implements CallHost {
  readonly #open = new OpenStreams();
  #nextId = 1;
  /** No new streams: the peer sent GOAWAY, the IDs are used up, or `close` was called. */
  #isClosing = false;

  constructor(
    source: ByteSource,
    private readonly parts: ClientConnectionParts,
  ) {
    super(source, parts, 'server', () => new ResponseHeaders());
    const { socket } = source;
    let reason: Failure | undefined;
    socket.on('error', (error) => (reason = failureOf(error)));
    socket.on('close', () => this.#end(connectionError(reason ?? this.#closedByPeer())));
    this.sendQueue.sendControl(clientPreface);
  }

  #closedByPeer(): Failure {
    const message = this.hasSettings
      ? 'The connection was closed.'
      : 'The connection was closed without an answer. Perhaps the server expects TLS, or this port is not one for gRPC.';
    return new Failure('CONNECTION_RESET', message);
  }

  get memory(): ConnectionMemory {
    return this.parts.memory;
  }

  get streamCount(): number {
    return this.#open.size;
  }

  /** Whether a call can be started now. */
  get hasRoom(): boolean {
    if (this.#isClosing || !this.hasSettings) return false;
    return this.#open.size < this.peer.maxConcurrentStreams;
  }

  start(call: ClientCall): void {
    const id = this.#nextId;
    this.#nextId += 2;
    if (this.#nextId > maxStreamId)
      this.#stopOpening(callError('UNAVAILABLE', 'stream IDs are used up'));
    const stream = new Http2Stream(this, id, this.peer.initialWindowBytes, streamWindowBytes);
    // An open call keeps the process alive; an idle connection does not.
    if (this.#open.size === 0) this.source.socket.ref();
    this.#open.add(stream);
    call.start(stream, this);
  }

  ping(): void {
    this.sendQueue.sendControl(pingFrame);
  }

  /** Closes when the open streams have ended. */
  close(): void {
    this.#stopOpening(callError('UNAVAILABLE', 'This client closed the connection.'));
    if (this.#open.size === 0) this.#hangUp();
  }

  /** Closes at once; open calls fail. */
  destroy(error: CallError): void {
    this.#end(error);
    this.source.socket.destroy();
  }

  enqueue(stream: Http2Stream): void {
    this.sendQueue.enqueue(stream);
  }

  reset(stream: Http2Stream, code: ErrorName): void {
    this.sendQueue.sendControl(rstStream(stream.id, code));
    this.#drop(stream);
  }

  grant(stream: Http2Stream, byteCount: number): void {
    this.sendQueue.sendControl(windowUpdate(stream.id, byteCount));
  }

  /** The request is sent; the stream ends with the response. */
  endStream(): void {
    // Nothing to do: the response decides.
  }

  /** The response is complete; a request that is not fully sent is of no use any more. */
  complete(stream: Http2Stream): void {
    if (!stream.isEndSent) this.sendQueue.sendControl(rstStream(stream.id, 'CANCEL'));
    this.#drop(stream);
  }

  fail({ code, message }: ConnectionError): void {
    if (this.isOver) return;
    this.sendQueue.sendControl(goaway(0, code, message));
    this.sendQueue.finish();
    this.destroy(callError('UNAVAILABLE', `The server broke HTTP/2: ${message}.`));
  }

  protected override takeData(
    id: number,
    isLast: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    size: number,
  ): void {
    const stream = this.#find(id);
    if (!stream) return;
    if (!stream.fits(size)) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'stream flow-control window exceeded');
    }
    if (isLast) stream.isRequestOpen = false;
    if (!stream.receive(bytes, start, end, size)) {
      return (stream.user as ClientCall).fail(callError('RESOURCE_EXHAUSTED', 'Out of memory.'));
    }
    if (isLast && !stream.isClosed) stream.receiveEnd();
  }

  protected override takeHeaders(id: number, isLast: boolean, headers: ResponseHeaders): void {
    const stream = this.#find(id);
    if (!stream) return;
    const call = stream.user as ClientCall;
    if (!call.takeHeaders(headers, isLast)) {
      return call.fail(callError('INTERNAL', 'The header list of the response is not valid.'));
    }
    if (isLast && !stream.isClosed) stream.receiveEnd();
  }

  protected override takeReset(id: number, code: number): void {
    const stream = this.#find(id);
    if (stream) this.#drop(stream, resetError(code));
  }

  protected override takeSettings(byteCount: number): void {
    for (const stream of byteCount === 0 ? [] : this.#open.all())
      this.#addWindow(stream, byteCount);
    this.parts.onSettings();
    if (this.#open.size === 0) this.source.socket.unref();
  }

  protected override takeGoaway(bytes: Buffer, start: number, end: number): void {
    const lastId = bytes.readUInt32BE(start) & 0x7fffffff;
    const text = bytes.toString('latin1', start + 8, end);
    const reason = `GOAWAY with error code ${bytes.readUInt32BE(start + 4)}${text && `: ${text}`}`;
    this.#stopOpening(callError('UNAVAILABLE', reason));
    // The peer did not process these, so that they can be retried.
    for (const stream of this.#open.all()) {
      if (stream.id > lastId) this.#drop(stream, callError('UNAVAILABLE', reason));
    }
    if (this.#open.size === 0) this.#hangUp();
  }

  protected override takeStreamWindow(id: number, byteCount: number): void {
    if (byteCount === 0) throw protocolError('WINDOW_UPDATE increment is 0');
    const stream = this.#find(id);
    if (stream) this.#addWindow(stream, byteCount);
  }

  #addWindow(stream: Http2Stream, byteCount: number): void {
    stream.sendWindowBytes += byteCount;
    if (stream.sendWindowBytes > maxWindowBytes) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'flow-control window exceeds 2^31-1');
    }
    if (byteCount > 0 && stream.hasMore) this.sendQueue.enqueue(stream);
  }

  /** Undefined for a stream that is closed; one that was never opened is a protocol error. */
  #find(id: number): Http2Stream | undefined {
    const stream = this.#open.get(id);
    if (!stream && (id >= this.#nextId || id % 2 === 0)) {
      throw protocolError(`stream ${id} is not open`);
    }
    return stream;
  }

  #drop(stream: Http2Stream, error?: CallError): void {
    if (stream.isClosed) return;
    this.#open.delete(stream);
    const call = stream.user as ClientCall;
    // Closed first: a failed call resets an open stream.
    stream.user = undefined;
    stream.close();
    if (error) call.fail(error);
    if (this.#open.size === 0) {
      if (this.#isClosing) this.#hangUp();
      else this.source.socket.unref();
    }
    this.parts.onRoom();
  }

  #stopOpening(reason: CallError): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.parts.onClosed(reason, this.hasSettings);
  }

  #hangUp(): void {
    if (this.isOver) return;
    this.sendQueue.sendControl(goaway(0, 'NO_ERROR', ''));
    this.sendQueue.finish();
    this.isOver = true;
    this.source.socket.destroySoon();
    this.#release();
  }

  #end(error: CallError): void {
    this.#stopOpening(error);
    if (this.isOver) return;
    this.isOver = true;
    for (const stream of this.#open.all()) this.#drop(stream, error);
    this.#release();
  }

  #release(): void {
    this.parts.memory.close();
    this.parts.onOver();
  }
}
