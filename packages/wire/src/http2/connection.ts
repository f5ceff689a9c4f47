import type { Timer } from '@millrace/kit/clock';
import { Allowance } from './allowance.js';
import type { ByteSource } from './byte-source.js';
import * as frames from './control-frames.js';
import { FrameReader, type FrameSink } from './frame-reader.js';
import { HeaderIntake } from './header-intake.js';
import { PeerSettings } from './peer-settings.js';
import { ConnectionError, firstWindowBytes, flags, frameTypes } from './protocol.js';
import { ReaderCheck } from './reader-check.js';
import { mostHeaderBytes } from './request-headers.js';
import { SendLine, type ConnectionSendParts, type SendLineHost } from './send-line.js';
import type { Http2Stream } from './stream.js';
import { mostStreams, Streams, streamWindowBytes, type StreamsParts } from './streams.js';

const windowBytes = 4 * 1024 * 1024;

const greeting = Buffer.concat([
  frames.settingsFrame({
    maxConcurrentStreams: mostStreams,
    initialWindowSize: streamWindowBytes,
    maxHeaderListSize: mostHeaderBytes,
  }),
  frames.windowUpdate(0, windowBytes - firstWindowBytes),
]);

// How long a peer that was told the end may take to hear it.
const lingerMs = 1_000;
const settingsCost = 10;
const priorityBytes = 5;

export interface Http2Parts extends ConnectionSendParts, StreamsParts {}

/** The server's side of HTTP/2 (RFC 9113) on one socket. */
export class Http2Connection implements FrameSink, SendLineHost {
  readonly #reader = new FrameReader(this);
  readonly #intake = new HeaderIntake();
  readonly #peer = new PeerSettings();
  readonly #line: SendLine;
  readonly #streams: Streams;
  /** For frames that ask for nothing, or for an answer that says nothing. */
  readonly #trifles: Allowance;
  readonly #readerCheck = new ReaderCheck();
  #isSelfDependent = false;
  #windowBytes = windowBytes;
  #hasSettings = false;
  #linger: Timer | undefined;
  isOver = false;
  /** Hears that the peer answered a ping. */
  onPong: (() => void) | undefined;

  constructor(
    private readonly source: ByteSource,
    private readonly parts: Http2Parts,
  ) {
    const { socket } = source;
    this.#trifles = new Allowance(parts.clock, 10_000, 1_000);
    this.#line = new SendLine(socket, parts, this.#peer, this);
    this.#streams = new Streams(parts, this.#line, this.#peer);
    source.take = (bytes, end) => this.#take(bytes, end);
    socket.on('close', () => this.#takeClose());
    this.#line.control(greeting);
  }

  /** Takes no more requests, and ends when those under way have. */
  close(): void {
    const streams = this.#streams;
    if (streams.isClosing || this.isOver) return;
    streams.isClosing = true;
    this.#line.control(frames.goaway(streams.lastId, 'NO_ERROR', ''));
    streams.onIdle = () => this.#end();
    if (streams.isIdle) this.#end();
  }

  ping(): void {
    if (!this.isOver) this.#line.control(frames.pingFrame);
  }

  /** Gives up requests that do not arrive, and peers that do not read. */
  checkPace(now: number): void {
    if (this.isOver) return;
    this.#streams.checkPace(now);
    const isWaiting = this.#streams.hasWaitingResponse;
    if (!this.#readerCheck.isTooSlow(now, isWaiting, this.#line.takenBytes)) return;
    this.fail(new ConnectionError('ENHANCE_YOUR_CALM', 'responses are read too slowly'));
  }

  endStream(stream: Http2Stream): void {
    this.#streams.end(stream);
  }

  /** Tells the peer what it did, and lets go of it. */
  fail({ code, message }: ConnectionError): void {
    if (this.isOver) return;
    this.#line.control(frames.goaway(this.#streams.lastId, code, message));
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
      throw broken('the first frame is not SETTINGS');
    }
    if (this.#intake.streamId !== 0) {
      if (type === frameTypes.continuation && id === this.#intake.streamId) {
        return this.#takeContinuation(frameFlags, bytes, start, end);
      }
      throw broken('headers do not go on');
    }
    switch (type) {
      case frameTypes.data:
        return this.#takeData(frameFlags, id, bytes, start, end);
      case frameTypes.headers:
        return this.#takeHeaders(frameFlags, id, bytes, start, end);
      case frameTypes.rstStream:
        mustHave(4, end - start);
        mustBeStream(id);
        return this.#streams.takeReset(id);
      case frameTypes.windowUpdate:
        return this.#takeWindow(id, bytes, start, end);
      case frameTypes.pushPromise:
      case frameTypes.continuation:
        throw broken('a frame that no client may send here');
      default:
        return this.#takeTrifle(type, frameFlags, id, bytes, start, end);
    }
  }

  #takeTrifle(
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
        mustBeConnection(id);
        if (end - start < 8) mustHave(8, end - start);
        return this.close();
    }
  }

  #takeData(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    mustBeStream(id);
    const size = end - start;
    this.#windowBytes -= size;
    if (this.#windowBytes < 0) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'more was sent than the window allows');
    }
    if (this.#windowBytes <= windowBytes / 2) {
      this.#line.control(frames.windowUpdate(0, windowBytes - this.#windowBytes));
      this.#windowBytes = windowBytes;
    }
    const isLast = (frameFlags & flags.endStream) !== 0;
    const isPadded = (frameFlags & flags.padded) !== 0;
    const from = isPadded ? start + 1 : start;
    const to = isPadded ? end - paddingAt(bytes, start, end) : end;
    if (from > to) throw broken('a frame has more padding than bytes');
    if (from === to && !isLast) this.#count(1);
    this.#streams.takeData(id, isLast, bytes, from, to, size);
  }

  #takeHeaders(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    mustBeStream(id);
    if (id % 2 === 0) throw broken('a client opens odd streams');
    const isPadded = (frameFlags & flags.padded) !== 0;
    const hasPriority = (frameFlags & flags.priority) !== 0;
    const to = isPadded ? end - paddingAt(bytes, start, end) : end;
    const from = start + (isPadded ? 1 : 0) + (hasPriority ? priorityBytes : 0);
    if (from > to) throw broken('a frame has more padding than bytes');
    const isLast = (frameFlags & flags.endStream) !== 0;
    this.#isSelfDependent = hasPriority && dependencyAt(bytes, from - priorityBytes) === id;
    if ((frameFlags & flags.endHeaders) === 0) {
      return this.#intake.begin(id, isLast, bytes, from, to);
    }
    const headers = this.#intake.read(bytes, from, to);
    this.#streams.takeHeaders(id, isLast, headers, this.#isSelfDependent);
  }

  #takeContinuation(frameFlags: number, bytes: Buffer, start: number, end: number): void {
    const { streamId, isLast } = this.#intake;
    const isEnd = (frameFlags & flags.endHeaders) !== 0;
    const headers = this.#intake.goOn(bytes, start, end, isEnd);
    if (headers) this.#streams.takeHeaders(streamId, isLast, headers, this.#isSelfDependent);
  }

  #takeSettings(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    mustBeConnection(id);
    if ((frameFlags & flags.ack) !== 0) return mustHave(0, end - start);
    this.#hasSettings = true;
    const before = this.#peer.initialWindowBytes;
    this.#peer.take(bytes, start, end);
    const more = this.#peer.initialWindowBytes - before;
    if (more !== 0) this.#streams.widenAll(more);
    this.#line.control(frames.settingsAck);
  }

  #takePing(frameFlags: number, id: number, bytes: Buffer, start: number, end: number): void {
    mustBeConnection(id);
    mustHave(8, end - start);
    if ((frameFlags & flags.ack) !== 0) this.onPong?.();
    else this.#line.control(frames.pingAck(bytes, start));
  }

  /** Priorities are deprecated and have no effect, but must be well formed. */
  #takePriority(id: number, bytes: Buffer, start: number, end: number): void {
    mustBeStream(id);
    if (end - start !== priorityBytes) return this.#streams.refuseId(id, 'FRAME_SIZE_ERROR');
    if (dependencyAt(bytes, start) === id) this.#streams.refuseSelfDependency(id);
  }

  #takeWindow(id: number, bytes: Buffer, start: number, end: number): void {
    mustHave(4, end - start);
    const byteCount = bytes.readUInt32BE(start) & 0x7fffffff;
    if (id !== 0) return this.#streams.takeWindow(id, byteCount);
    if (byteCount === 0) throw broken('a window grows by nothing');
    if (!this.#line.widen(byteCount)) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'a window is too large');
    }
  }

  #count(cost: number): void {
    if (this.#trifles.spend(cost)) return;
    throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many frames that say nothing');
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

  /** Says the last word. Whatever the peer still sends is not read. */
  #end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#line.finish();
    const { socket } = this.source;
    socket.end();
    this.#linger = this.parts.clock.after(lingerMs, () => socket.destroy());
  }

  #takeClose(): void {
    this.isOver = true;
    this.#linger?.cancel();
    this.#streams.closeAll();
    this.parts.memory.close();
  }
}

function broken(text: string): ConnectionError {
  return new ConnectionError('PROTOCOL_ERROR', text);
}

function mustHave(byteCount: number, actual: number): void {
  if (actual === byteCount) return;
  throw new ConnectionError('FRAME_SIZE_ERROR', `a frame has ${actual} bytes`);
}

function mustBeStream(id: number): void {
  if (id === 0) throw broken('a frame is for no stream');
}

function mustBeConnection(id: number): void {
  if (id !== 0) throw broken('a frame is for one stream');
}

function dependencyAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) & 0x7fffffff;
}

function paddingAt(bytes: Buffer, start: number, end: number): number {
  if (start === end) throw new ConnectionError('FRAME_SIZE_ERROR', 'a frame lacks its padding');
  return bytes[start]!;
}
