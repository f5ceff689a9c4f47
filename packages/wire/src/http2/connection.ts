import type { Timer } from '@millrace/kit/clock';
import { TokenBucket } from '../base/token-bucket.js';
import type { ByteSource } from '../base/byte-source.js';
import * as frames from './control-frames.js';
import {
  checkConnectionFrame,
  checkLength,
  checkStreamId,
  dependencyAt,
  paddingAt,
  protocolError,
} from './frame-checks.js';
import { FrameReader, type FrameSink } from './frame-reader.js';
import { HeaderBlockReader } from './header-block-reader.js';
import { kernelBytesFor, ReadRateCheck } from '../base/read-rate.js';
import { PeerSettings } from './peer-settings.js';
import { ConnectionError, defaultWindowBytes, flags, frameTypes } from './protocol.js';
import { maxHeaderBytes, RequestHeaders } from './request-headers.js';
import { SendQueue, type ConnectionSendParts, type SendQueueHost } from './send-queue.js';
import type { Http2Stream } from './stream.js';
import { maxStreams, Streams, streamWindowBytes, type StreamsParts } from './streams.js';

const windowBytes = 4 * 1024 * 1024;

const serverPreface = Buffer.concat([
  frames.settingsFrame({
    maxConcurrentStreams: maxStreams,
    initialWindowSize: streamWindowBytes,
    maxHeaderListSize: maxHeaderBytes,
  }),
  frames.windowUpdate(0, windowBytes - defaultWindowBytes),
]);

// How long a closed connection stays open so that the peer can read the GOAWAY.
const lingerMs = 1_000;
const settingsCost = 10;
const priorityBytes = 5;

export interface Http2Parts extends ConnectionSendParts, StreamsParts {}

/** The server side of an HTTP/2 connection (RFC 9113). */
export class Http2Connection implements FrameSink, SendQueueHost {
  readonly #reader = new FrameReader(this);
  readonly #headerReader = new HeaderBlockReader(() => new RequestHeaders());
  readonly #peer = new PeerSettings();
  readonly #sendQueue: SendQueue;
  readonly #streams: Streams;
  /** Rate limit of PING, SETTINGS, PRIORITY, unknown and empty DATA frames. */
  readonly #controlFrameLimit: TokenBucket;
  readonly #readerCheck = new ReadRateCheck();
  #isSelfDependent = false;
  #windowBytes = windowBytes;
  #hasSettings = false;
  #linger: Timer | undefined;
  isOver = false;
  /** Called on a PING acknowledgement. */
  onPong: (() => void) | undefined;

  constructor(
    private readonly source: ByteSource,
    private readonly parts: Http2Parts,
  ) {
    const { socket } = source;
    this.#controlFrameLimit = new TokenBucket(parts.clock, 10_000, 1_000);
    this.#sendQueue = new SendQueue(socket, parts, this.#peer, this);
    this.#streams = new Streams(parts, this.#sendQueue, this.#peer);
    source.take = (bytes, end) => this.#take(bytes, end);
    socket.on('close', () => this.#takeClose());
    this.#sendQueue.sendControl(serverPreface);
  }

  /** Sends GOAWAY, and closes when the open streams have ended. */
  close(): void {
    const streams = this.#streams;
    if (streams.isClosing || this.isOver) return;
    streams.isClosing = true;
    this.#sendQueue.sendControl(frames.goaway(streams.lastId, 'NO_ERROR', ''));
    streams.onIdle = () => this.#endWhenRead();
    if (streams.isIdle) this.#endWhenRead();
  }

  ping(): void {
    if (!this.isOver) this.#sendQueue.sendControl(frames.pingFrame);
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
    const takenBytes = this.#sendQueue.takenBytes - kernelBytes;
    if (!this.#readerCheck.isTooSlow(now, this.hasWaitingResponse, takenBytes)) return;
    this.fail(new ConnectionError('ENHANCE_YOUR_CALM', 'responses are read too slowly'));
  }

  endStream(stream: Http2Stream): void {
    this.#streams.end(stream);
  }

  /** Sends GOAWAY with the error and closes the connection. */
  fail({ code, message }: ConnectionError): void {
    if (this.isOver) return;
    this.#sendQueue.sendControl(frames.goaway(this.#streams.lastId, code, message));
    this.#end();
    this.#streams.closeAll();
  }

  takeFrame(
    type: number,
    frameFlags: number,
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    if (!this.#hasSettings && (type !== frameTypes.settings || (frameFlags & flags.ack) !== 0)) {
      throw protocolError('expected SETTINGS');
    }
    if (this.#headerReader.streamId !== 0) {
      if (type === frameTypes.continuation && id === this.#headerReader.streamId) {
        return this.#takeContinuation(frameFlags, bytes, start, end);
      }
      throw protocolError('expected CONTINUATION');
    }
    switch (type) {
      case frameTypes.data:
        return this.#takeData(frameFlags, id, bytes, start, end);
      case frameTypes.headers:
        return this.#takeHeaders(frameFlags, id, bytes, start, end);
      case frameTypes.rstStream:
        checkLength(4, end - start);
        checkStreamId(id);
        return this.#streams.takeReset(id);
      case frameTypes.windowUpdate:
        return this.#takeWindowUpdate(id, bytes, start, end);
      case frameTypes.pushPromise:
      case frameTypes.continuation:
        throw protocolError('unexpected PUSH_PROMISE or CONTINUATION');
      default:
        return this.#takeControlFrame(type, frameFlags, id, bytes, start, end);
    }
  }

  #takeControlFrame(
    type: number,
    frameFlags: number,
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    this.#count(type === frameTypes.settings ? settingsCost : 1);
    switch (type) {
      case frameTypes.settings:
        return this.#takeSettings(frameFlags, id, bytes, start, end);
      case frameTypes.ping:
        return this.#takePing(frameFlags, id, bytes, start, end);
      case frameTypes.priority:
        return this.#takePriority(id, bytes, start, end);
      case frameTypes.goaway:
        checkConnectionFrame(id);
        if (end - start < 8) checkLength(8, end - start);
        return this.close();
    }
  }

  #takeData(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    checkStreamId(id);
    const size = end - start;
    this.#windowBytes -= size;
    if (this.#windowBytes < 0) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'connection flow-control window exceeded');
    }
    if (this.#windowBytes <= windowBytes / 2) {
      this.#sendQueue.sendControl(frames.windowUpdate(0, windowBytes - this.#windowBytes));
      this.#windowBytes = windowBytes;
    }
    const isLast = (frameFlags & flags.endStream) !== 0;
    const isPadded = (frameFlags & flags.padded) !== 0;
    const from = isPadded ? start + 1 : start;
    const to = isPadded ? end - paddingAt(bytes, start, end) : end;
    if (from > to) throw protocolError('padding exceeds the frame payload');
    if (from === to && !isLast) this.#count(1);
    this.#streams.takeData(id, isLast, bytes, from, to, size);
  }

  #takeHeaders(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    checkStreamId(id);
    if (id % 2 === 0) throw protocolError('client stream ID is even');
    const isPadded = (frameFlags & flags.padded) !== 0;
    const hasPriority = (frameFlags & flags.priority) !== 0;
    const to = isPadded ? end - paddingAt(bytes, start, end) : end;
    const from = start + (isPadded ? 1 : 0) + (hasPriority ? priorityBytes : 0);
    if (from > to) throw protocolError('padding exceeds the frame payload');
    const isLast = (frameFlags & flags.endStream) !== 0;
    this.#isSelfDependent = hasPriority && dependencyAt(bytes, from - priorityBytes) === id;
    if ((frameFlags & flags.endHeaders) === 0) {
      return this.#headerReader.begin(id, isLast, bytes, from, to);
    }
    const headers = this.#headerReader.read(bytes, from, to);
    this.#streams.takeHeaders(id, isLast, headers, this.#isSelfDependent);
  }

  #takeContinuation(frameFlags: number, bytes: Buffer, start: number, end: number): void {
    const { streamId, isLast } = this.#headerReader;
    const isEnd = (frameFlags & flags.endHeaders) !== 0;
    const headers = this.#headerReader.append(bytes, start, end, isEnd);
    if (headers) this.#streams.takeHeaders(streamId, isLast, headers, this.#isSelfDependent);
  }

  #takeSettings(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    checkConnectionFrame(id);
    if ((frameFlags & flags.ack) !== 0) return checkLength(0, end - start);
    this.#hasSettings = true;
    const before = this.#peer.initialWindowBytes;
    this.#peer.take(bytes, start, end);
    const more = this.#peer.initialWindowBytes - before;
    if (more !== 0) this.#streams.addWindowToAll(more);
    this.#sendQueue.sendControl(frames.settingsAck);
  }

  #takePing(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    checkConnectionFrame(id);
    checkLength(8, end - start);
    if ((frameFlags & flags.ack) !== 0) this.onPong?.();
    else this.#sendQueue.sendControl(frames.pingAck(bytes, start));
  }

  /** Priorities are deprecated and ignored, but must be well formed. */
  #takePriority(id: number, bytes: Buffer, start: number, end: number): void {
    checkStreamId(id);
    if (end - start !== priorityBytes) return this.#streams.refuseId(id, 'FRAME_SIZE_ERROR');
    if (dependencyAt(bytes, start) === id) this.#streams.refuseSelfDependency(id);
  }

  #takeWindowUpdate(id: number, bytes: Buffer, start: number, end: number): void {
    checkLength(4, end - start);
    const byteCount = bytes.readUInt32BE(start) & 0x7fffffff;
    if (id !== 0) return this.#streams.takeWindowUpdate(id, byteCount);
    if (byteCount === 0) throw protocolError('WINDOW_UPDATE increment is 0');
    if (!this.#sendQueue.addWindow(byteCount)) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'flow-control window exceeds 2^31-1');
    }
  }

  #count(cost: number): void {
    if (this.#controlFrameLimit.tryTake(cost)) return;
    throw new ConnectionError('ENHANCE_YOUR_CALM', 'excessive control frames');
  }

  #take(bytes: Buffer, end: number): void {
    if (this.isOver) return;
    try {
      this.#reader.push(bytes, end);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.fail(error);
    }
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
    this.#sendQueue.finish();
    return true;
  }

  #takeClose(): void {
    this.isOver = true;
    this.#linger?.cancel();
    this.#streams.closeAll();
    this.parts.memory.close();
  }
}
