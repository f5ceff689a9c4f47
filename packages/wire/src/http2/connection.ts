import type { Timer } from '@millrace/kit/clock';
import { TokenBucket } from '@millrace/kit/token-bucket';
import { type ByteSource, kernelBytesFor, ReadRateCheck } from '../base/socket.js';
import {
  checkStreamId,
  dependencyAt,
  protocolError,
  ConnectionError,
  defaultWindowBytes,
  goaway,
  pingFrame,
  settingsFrame,
  windowUpdate,
} from './frames.js';
import { connectionWindowBytes, FrameLoop } from './frame-loop.js';
import {
  maxHeaderBytes,
  RequestHeaders,
  maxStreams,
  Streams,
  streamWindowBytes,
  type StreamsParts,
} from './streams.js';
import type { ConnectionSendParts } from './send-queue.js';
import type { Http2Stream } from './stream.js';

const serverPreface = Buffer.concat([
  settingsFrame({
    maxConcurrentStreams: maxStreams,
    initialWindowSize: streamWindowBytes,
    maxHeaderListSize: maxHeaderBytes,
  }),
  windowUpdate(0, connectionWindowBytes - defaultWindowBytes),
]);

// How long a closed connection stays open so that the peer can read the GOAWAY.
const lingerMs = 1_000;
const priorityBytes = 5;

export interface Http2Parts extends ConnectionSendParts, StreamsParts {}

/** The server side of an HTTP/2 connection (RFC 9113). */
export class Http2Connection extends FrameLoop<RequestHeaders> {
  readonly #streams: Streams;
  /** Rate limit of PING, SETTINGS, PRIORITY, unknown and empty DATA frames. */
  readonly #controlFrameLimit: TokenBucket;
  readonly #readerCheck = new ReadRateCheck();
  #linger: Timer | undefined;
  /** Called on a PING acknowledgement. */
  onPong: (() => void) | undefined;

  constructor(
    source: ByteSource,
    private readonly parts: Http2Parts,
  ) {
    super(source, parts, 'client', () => new RequestHeaders());
    this.#controlFrameLimit = new TokenBucket(1_000, parts.clock.monotonic(), 10_000);
    this.#streams = new Streams(parts, this.sendQueue, this.peer);
    source.socket.on('close', () => this.#takeClose());
    this.sendQueue.sendControl(serverPreface);
  }

  /** Sends GOAWAY, and closes when the open streams have ended. */
  close(): void {
    const streams = this.#streams;
    if (streams.isClosing || this.isOver) return;
    streams.isClosing = true;
    this.sendQueue.sendControl(goaway(streams.lastId, 'NO_ERROR', ''));
    streams.onIdle = () => this.#endWhenRead();
    if (streams.isIdle) this.#endWhenRead();
  }

  ping(): void {
    if (!this.isOver) this.sendQueue.sendControl(pingFrame);
  }

  get hasWaitingResponse(): boolean {
    return !this.isOver && this.#streams.hasWaitingResponse;
  }

  /** Times out incomplete requests. */
  checkTimeouts(now: number): void {
    if (!this.isOver) this.#streams.checkTimeouts(now);
  }

  /** Closes the connection of a peer that does not read. `kernelBytes`: not read by it yet. */
  checkReader(now: number, kernelBytes: number): void {
    if (this.isOver) return;
    const takenBytes = this.sendQueue.takenBytes - kernelBytes;
    if (!this.#readerCheck.isTooSlow(now, this.hasWaitingResponse, takenBytes)) return;
    this.fail(new ConnectionError('ENHANCE_YOUR_CALM', 'responses are read too slowly'));
  }

  endStream(stream: Http2Stream): void {
    this.#streams.end(stream);
  }

  /** Sends GOAWAY with the error and closes the connection. */
  fail({ code, message }: ConnectionError): void {
    if (this.isOver) return;
    this.sendQueue.sendControl(goaway(this.#streams.lastId, code, message));
    this.#end();
    this.#streams.closeAll();
  }

  protected override takeData(
    id: number,
    isLast: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    size: number,
  ): void {
    this.#streams.takeData(id, isLast, bytes, start, end, size);
  }

  protected override takeHeaders(
    id: number,
    isLast: boolean,
    headers: RequestHeaders,
    isSelfDependent: boolean,
  ): void {
    if (id % 2 === 0) throw protocolError('client stream ID is even');
    this.#streams.takeHeaders(id, isLast, headers, isSelfDependent);
  }

  protected override takeReset(id: number): void {
    this.#streams.takeReset(id);
  }

  protected override takeStreamWindow(id: number, byteCount: number): void {
    this.#streams.takeWindowUpdate(id, byteCount);
  }

  protected override takeSettings(byteCount: number): void {
    if (byteCount !== 0) this.#streams.addWindowToAll(byteCount);
  }

  protected override takeGoaway(): void {
    this.close();
  }

  protected override takePong(): void {
    this.onPong?.();
  }

  /** Priorities are deprecated and ignored, but must be well formed. */
  protected override takePriority(id: number, bytes: Buffer, start: number, end: number): void {
    checkStreamId(id);
    if (end - start !== priorityBytes) return this.#streams.refuseId(id, 'FRAME_SIZE_ERROR');
    if (dependencyAt(bytes, start) === id) this.#streams.refuseSelfDependency(id);
  }

  protected override countControlFrame(cost: number): void {
    if (this.#controlFrameLimit.tryTake(cost, this.parts.clock)) return;
    throw new ConnectionError('ENHANCE_YOUR_CALM', 'excessive control frames');
  }

  /** Flushes control frames and closes the socket; further input is ignored. */
  #end(): void {
    if (!this.#finish()) return;
    const { socket } = this.source;
    socket.end();
    this.#linger = this.parts.clock.after(lingerMs, () => socket.destroy());
  }

  /** Like `#end`, but waits for a peer that has not read its responses yet. */
  #endWhenRead(): void {
    if (!this.#finish()) return;
    this.source.socket.end(() => this.#destroyWhenRead());
  }

  /** A socket that is closed too early resets the connection when the peer sends a frame. */
  #destroyWhenRead(): void {
    const { clock } = this.parts;
    const { socket } = this.source;
    this.#linger = clock.after(lingerMs, () => {
      void kernelBytesFor(socket, clock).then((bytes) => {
        if (bytes > 0 && !socket.destroyed) this.#destroyWhenRead();
        else socket.destroy();
      });
    });
  }

  /** False when it was over already. */
  #finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.sendQueue.finish();
    return true;
  }

  #takeClose(): void {
    this.isOver = true;
    this.#linger?.cancel();
    this.#streams.closeAll();
    this.parts.memory.close();
  }
}
