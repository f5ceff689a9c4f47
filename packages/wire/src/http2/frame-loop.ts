import type { ByteSource } from '../base/socket.js';
import {
  pingAck,
  settingsAck,
  windowUpdate,
  checkConnectionFrame,
  checkLength,
  checkStreamId,
  dependencyAt,
  paddingAt,
  protocolError,
  FrameReader,
  type FrameSink,
  PeerSettings,
  ConnectionError,
  flags,
  frameTypes,
} from './frames.js';
import { type FieldSink, HpackDecoder } from './hpack.js';
import { SendQueue, type ConnectionSendParts, type SendQueueHost } from './send-queue.js';
import type { Http2Stream } from './stream.js';

/** Receive window of a connection. */
export const connectionWindowBytes = 4 * 1024 * 1024;

const settingsCost = 10;
const priorityBytes = 5;

/**
 * The part of an HTTP/2 connection that server and client share (RFC 9113): checks frames, decodes
 * header blocks, answers SETTINGS and PING, and counts the connection flow-control window.
 */
export abstract class FrameLoop<Headers extends FieldSink> implements FrameSink, SendQueueHost {
  protected readonly peer = new PeerSettings();
  protected readonly sendQueue: SendQueue;
  protected hasSettings = false;
  /** Frames received, to detect silence. */
  frameCount = 0;
  isOver = false;
  readonly #reader: FrameReader;
  readonly #headerReader: HeaderBlockReader<Headers>;
  #windowBytes = connectionWindowBytes;
  #isSelfDependent = false;

  constructor(
    protected readonly source: ByteSource,
    sending: ConnectionSendParts,
    from: 'client' | 'server',
    createHeaders: () => Headers,
  ) {
    this.#reader = new FrameReader(this, from);
    this.#headerReader = new HeaderBlockReader(createHeaders);
    this.sendQueue = new SendQueue(source.socket, sending, this.peer, this);
    source.take = (bytes, end) => this.#take(bytes, end);
  }

  /** `size` counts for flow control, including padding. */
  protected abstract takeData(
    id: number,
    isLast: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    size: number,
  ): void;
  protected abstract takeHeaders(
    id: number,
    isLast: boolean,
    headers: Headers,
    isSelfDependent: boolean,
  ): void;
  protected abstract takeReset(id: number, code: number): void;
  protected abstract takeStreamWindow(id: number, byteCount: number): void;
  /** SETTINGS changed the send window of every open stream by `byteCount`, which may be 0. */
  protected abstract takeSettings(byteCount: number): void;
  /** `bytes` from `start` to `end` is a payload of at least 8 bytes. */
  protected abstract takeGoaway(bytes: Buffer, start: number, end: number): void;
  abstract endStream(stream: Http2Stream): void;
  abstract fail(error: ConnectionError): void;

  /** Limits frames that cost the peer little. */
  protected countControlFrame(_cost: number): void {
    // A client trusts its server.
  }

  /** Priorities are deprecated and ignored. */
  protected takePriority(_id: number, _bytes: Buffer, _start: number, _end: number): void {
    // A client does not check them.
  }

  protected takePong(): void {
    // Received frames are counted.
  }

  takeFrame(
    type: number,
    frameFlags: number,
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    this.frameCount++;
    if (!this.hasSettings && (type !== frameTypes.settings || (frameFlags & flags.ack) !== 0)) {
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
        return this.takeReset(id, bytes.readUInt32BE(start));
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
    this.countControlFrame(type === frameTypes.settings ? settingsCost : 1);
    switch (type) {
      case frameTypes.settings:
        return this.#takeSettings(frameFlags, id, bytes, start, end);
      case frameTypes.ping:
        checkConnectionFrame(id);
        checkLength(8, end - start);
        if ((frameFlags & flags.ack) !== 0) return this.takePong();
        return this.sendQueue.sendControl(pingAck(bytes, start));
      case frameTypes.priority:
        return this.takePriority(id, bytes, start, end);
      case frameTypes.goaway:
        checkConnectionFrame(id);
        if (end - start < 8) checkLength(8, end - start);
        return this.takeGoaway(bytes, start, end);
    }
  }

  #takeData(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    checkStreamId(id);
    const size = end - start;
    this.#windowBytes -= size;
    if (this.#windowBytes < 0) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'connection flow-control window exceeded');
    }
    if (this.#windowBytes <= connectionWindowBytes / 2) {
      this.sendQueue.sendControl(windowUpdate(0, connectionWindowBytes - this.#windowBytes));
      this.#windowBytes = connectionWindowBytes;
    }
    const isLast = (frameFlags & flags.endStream) !== 0;
    const isPadded = (frameFlags & flags.padded) !== 0;
    const from = isPadded ? start + 1 : start;
    const to = isPadded ? end - paddingAt(bytes, start, end) : end;
    if (from > to) throw protocolError('padding exceeds the frame payload');
    if (from === to && !isLast) this.countControlFrame(1);
    this.takeData(id, isLast, bytes, from, to, size);
  }

  #takeHeaders(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    checkStreamId(id);
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
    this.takeHeaders(id, isLast, headers, this.#isSelfDependent);
  }

  #takeContinuation(frameFlags: number, bytes: Buffer, start: number, end: number): void {
    const { streamId, isLast } = this.#headerReader;
    const isEnd = (frameFlags & flags.endHeaders) !== 0;
    const headers = this.#headerReader.append(bytes, start, end, isEnd);
    if (headers) this.takeHeaders(streamId, isLast, headers, this.#isSelfDependent);
  }

  #takeSettings(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    checkConnectionFrame(id);
    if ((frameFlags & flags.ack) !== 0) return checkLength(0, end - start);
    this.hasSettings = true;
    const before = this.peer.initialWindowBytes;
    this.peer.take(bytes, start, end);
    this.sendQueue.sendControl(settingsAck);
    this.takeSettings(this.peer.initialWindowBytes - before);
  }

  #takeWindowUpdate(id: number, bytes: Buffer, start: number, end: number): void {
    checkLength(4, end - start);
    const byteCount = bytes.readUInt32BE(start) & 0x7fffffff;
    if (id !== 0) return this.takeStreamWindow(id, byteCount);
    if (byteCount === 0) throw protocolError('WINDOW_UPDATE increment is 0');
    if (!this.sendQueue.addWindow(byteCount)) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'flow-control window exceeds 2^31-1');
    }
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
}

// Four times the max header list: up to here an oversized list is a stream error.
const maxBlockBytes = 64 * 1024;
const maxFragments = 32;
const maxCachedBlockBytes = 512;
// Requests repeat one block; responses repeat one of headers and one of trailers.
const maxCachedBlocks = 2;

interface CachedBlock<Headers> {
  readonly block: Buffer;
  readonly changes: number;
  readonly headers: Headers;
}

/** Joins HEADERS and CONTINUATION fragments and decodes the header block. */
class HeaderBlockReader<Headers extends FieldSink> {
  readonly #decoder = new HpackDecoder();
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The last blocks that did not change the table, cached because peers repeat them. */
  #known: readonly CachedBlock<Headers>[] = [];
  /** The stream that expects CONTINUATION; 0: none. */
  streamId = 0;
  isLast = false;

  constructor(private readonly create: () => Headers) {}

  /** Starts a block without END_HEADERS. */
  begin(streamId: number, isLast: boolean, bytes: Buffer, start: number, end: number): void {
    this.streamId = streamId;
    this.isLast = isLast;
    this.#add(bytes, start, end);
  }

  /** Adds a CONTINUATION fragment; returns the headers when the block is complete. */
  append(bytes: Buffer, start: number, end: number, isEnd: boolean): Headers | undefined {
    this.#add(bytes, start, end);
    if (!isEnd) return undefined;
    const block = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    this.streamId = 0;
    return this.read(block, 0, block.length);
  }

  /** Decodes a complete block. The result may be shared by several streams: do not modify it. */
  read(bytes: Buffer, start: number, end: number): Headers {
    const { changes } = this.#decoder;
    for (const known of this.#known) {
      if (
        known.changes === changes &&
        known.block.length === end - start &&
        isAt(known.block, bytes, start)
      ) {
        return known.headers;
      }
    }
    const headers = this.create();
    this.#decoder.decode(bytes, start, end, headers);
    if (this.#decoder.changes === changes && end - start <= maxCachedBlockBytes) {
      const block = Buffer.from(bytes.subarray(start, end));
      const rest = this.#known.slice(0, maxCachedBlocks - 1);
      this.#known = [{ block, changes, headers }, ...rest];
    }
    return headers;
  }

  #add(bytes: Buffer, start: number, end: number): void {
    // Copied, so that the rest of the chunk can be freed.
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
    this.#bytes += end - start;
    if (this.#bytes > maxBlockBytes || this.#pieces.length > maxFragments) {
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'header block too large');
    }
  }
}

/** Whether `bytes` contains `block` at `start`. Faster than Buffer.compare for short blocks. */
function isAt(block: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < block.length; i++) if (block[i] !== bytes[start + i]) return false;
  return true;
}
