import type { Socket } from 'node:net';
import type { ConnectionMemory, DeferredFlush } from '../base/socket.js';
import type { FrameWriter, Http2Stream } from './stream.js';
import {
  type PeerSettings,
  ConnectionError,
  defaultWindowBytes,
  maxWindowBytes,
} from './frames.js';

export interface SendQueueParts {
  readonly writer: FrameWriter;
  readonly turn: DeferredFlush;
}

export interface ConnectionSendParts extends SendQueueParts {
  readonly memory: ConnectionMemory;
}

/** Receives the results of sending. */
export interface SendQueueHost {
  /** END_STREAM was sent. */
  endStream(stream: Http2Stream): void;
  fail(error: ConnectionError): void;
}

// Limit of one write, for fairness between connections and a short socket queue.
const maxWriteBytes = 256 * 1024;
// Limit of one stream per round, for fairness between streams.
const maxTurnBytes = 64 * 1024;
// Max control frames queued for a peer that does not read.
const maxQueuedControlFrames = 1_000;
const flushedControlFrames = 500;
const maxQueuedStreams = 4_000;

/** Send queue of a connection: streams are served round robin, and one tick shares one write. */
export class SendQueue {
  windowBytes = defaultWindowBytes;
  /** DATA bytes written to the socket. */
  #sentBytes = 0;
  #controlFrames: Uint8Array[] = [];
  #ready: Http2Stream[] = [];
  /** Streams that wait for the connection flow-control window. */
  #blocked: Http2Stream[] = [];
  #isScheduled = false;
  #isBlocked = false;
  #isTableUpdateSent = false;
  #isFinished = false;

  constructor(
    private readonly socket: Socket,
    private readonly parts: ConnectionSendParts,
    private readonly peer: PeerSettings,
    private readonly host: SendQueueHost,
  ) {
    socket.on('drain', () => {
      this.#isBlocked = false;
      this.parts.memory.setBacklog(0);
      this.flush();
    });
  }

  /** Response bytes that left this process. */
  get takenBytes(): number {
    return this.#sentBytes - this.socket.writableLength;
  }

  sendControl(frame: Uint8Array): void {
    const waiting = this.#controlFrames.push(frame);
    if (waiting >= flushedControlFrames && !this.#isBlocked) return this.flush();
    if (waiting <= maxQueuedControlFrames) return this.#schedule();
    this.#controlFrames = [];
    this.host.fail(new ConnectionError('ENHANCE_YOUR_CALM', 'control frames are not read'));
  }

  enqueue(stream: Http2Stream): void {
    if (stream.isQueued) return;
    stream.isQueued = true;
    enqueueOpen(this.#ready, stream);
    this.#schedule();
  }

  /** False when the window overflows. */
  addWindow(byteCount: number): boolean {
    this.windowBytes += byteCount;
    if (this.windowBytes > maxWindowBytes) return false;
    if (this.#blocked.length === 0) return true;
    for (const stream of this.#blocked) this.#ready.push(stream);
    this.#blocked = [];
    this.#schedule();
    return true;
  }

  /** Writes the queued control frames and drops waiting streams. */
  finish(): void {
    this.#isFinished = true;
    this.#writeControlFrames();
    this.#write(this.parts.writer.takeParts());
    this.#ready = this.#blocked = [];
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#isBlocked || this.#isFinished || this.socket.destroyed) return;
    if (this.#ready.length === 0 && this.#controlFrames.length === 0) return;
    const { writer } = this.parts;
    this.#writeControlFrames();
    const sent = this.#sendStreams(writer);
    this.#write(writer.takeParts());
    for (const stream of sent) this.#notify(stream);
    if (this.#ready.length > 0 && !this.#isBlocked && !this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(flush, this);
    }
  }

  #writeControlFrames(): void {
    for (const frame of this.#controlFrames) this.parts.writer.bytes(frame, 0, frame.length);
    this.#controlFrames = [];
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isBlocked) return;
    this.#isScheduled = true;
    this.parts.turn.defer(this);
  }

  /** Returns the streams of which something was sent. */
  #sendStreams(writer: FrameWriter): readonly Http2Stream[] {
    const { frameBytes, hasSmallTable } = this.peer;
    const maxBytes = Math.min(frameBytes, maxTurnBytes);
    const sent: Http2Stream[] = [];
    writer.isTableDue = hasSmallTable && !this.#isTableUpdateSent;
    let left = maxWriteBytes;
    while (this.#ready.length > 0 && left > 0) {
      const round = this.#ready;
      this.#ready = [];
      let at = 0;
      for (; at < round.length && left > 0; at++) left -= this.#send(round[at]!, maxBytes, sent);
      if (at < round.length) this.#ready = [...round.slice(at), ...this.#ready];
    }
    this.#isTableUpdateSent = hasSmallTable && !writer.isTableDue;
    return sent;
  }

  /** Sends one frame of a stream; returns its number of bytes. */
  #send(stream: Http2Stream, maxBytes: number, sent: Http2Stream[]): number {
    stream.isQueued = false;
    if (stream.isClosed) return 0;
    const { writer } = this.parts;
    const count = stream.send(writer, this.windowBytes, maxBytes);
    this.windowBytes -= count;
    this.#sentBytes += count;
    if (stream.hasMore) this.#sendAgain(stream);
    if ((count > 0 || stream.isEndSent) && sent.at(-1) !== stream) sent.push(stream);
    return count;
  }

  #sendAgain(stream: Http2Stream): void {
    // Otherwise the next WINDOW_UPDATE of the stream enqueues it.
    if (stream.sendWindowBytes <= 0) return;
    stream.isQueued = true;
    enqueueOpen(this.windowBytes > 0 ? this.#ready : this.#blocked, stream);
  }

  #notify(stream: Http2Stream): void {
    if (stream.isClosed) return;
    if (stream.isEndSent) this.host.endStream(stream);
    else stream.outgoing?.takeSent();
  }

  #write(parts: readonly Uint8Array[]): void {
    const { socket } = this;
    if (parts.length === 0) return;
    if (parts.length === 1) socket.write(parts[0]!);
    else {
      socket.cork();
      for (const part of parts) socket.write(part);
      socket.uncork();
    }
    const isTaken = socket.writableLength === 0;
    this.parts.writer.settle(isTaken);
    this.parts.memory.setBacklog(socket.writableLength);
    this.#isBlocked = socket.writableNeedDrain && !isTaken;
  }
}

/** Removes closed streams when the queue gets long, which happens while the window is exhausted. */
function enqueueOpen(queue: Http2Stream[], stream: Http2Stream): void {
  if (queue.push(stream) <= maxQueuedStreams) return;
  const open = queue.filter(({ isClosed }) => !isClosed);
  queue.splice(0, queue.length, ...open);
}

function flush(queue: SendQueue): void {
  queue.flush();
}
