import type { Socket } from 'node:net';
import type { ConnectionMemory } from './connection-memory.js';
import type { FrameWriter } from './frame-writer.js';
import type { PeerSettings } from './peer-settings.js';
import { ConnectionError, firstWindowBytes, largestWindowBytes } from './protocol.js';
import type { Http2Stream } from './stream.js';
import type { TurnEnd } from './turn-end.js';

export interface SendLineParts {
  readonly writer: FrameWriter;
  readonly turn: TurnEnd;
}

export interface ConnectionSendParts extends SendLineParts {
  readonly memory: ConnectionMemory;
}

/** Who hears what becomes of it. */
export interface SendLineHost {
  /** The stream's answer is sent, its end included. */
  endStream(stream: Http2Stream): void;
  fail(error: ConnectionError): void;
}

// One write takes no more, so that others have their turn and little waits in the socket.
const mostWriteBytes = 256 * 1024;
// A stream that may send more waits until the others had their turn.
const mostFrameBytes = 64 * 1024;
// A peer that takes nothing makes us answer no more than so often.
const mostWaitingControls = 1_000;
const manyControls = 500;
const mostWaitingStreams = 4_000;

/** What goes to the peer: streams take turns, and what is ready at one moment shares a write. */
export class SendLine {
  windowBytes = firstWindowBytes;
  /** DATA that was handed to the socket. */
  #sentBytes = 0;
  #controls: Uint8Array[] = [];
  #ready: Http2Stream[] = [];
  /** They wait for the window of the connection. */
  #starved: Http2Stream[] = [];
  #isScheduled = false;
  #isBlocked = false;
  #isTableTold = false;
  #isFinished = false;

  constructor(
    private readonly socket: Socket,
    private readonly parts: ConnectionSendParts,
    private readonly peer: PeerSettings,
    private readonly host: SendLineHost,
  ) {
    socket.on('drain', () => {
      this.#isBlocked = false;
      this.parts.memory.setBacklog(0);
      this.flush();
    });
  }

  /** How many bytes of responses left this process. */
  get takenBytes(): number {
    return this.#sentBytes - this.socket.writableLength;
  }

  control(frame: Uint8Array): void {
    const waiting = this.#controls.push(frame);
    if (waiting >= manyControls && !this.#isBlocked) return this.flush();
    if (waiting <= mostWaitingControls) return this.#schedule();
    this.#controls = [];
    this.host.fail(new ConnectionError('ENHANCE_YOUR_CALM', 'answers are not read'));
  }

  enqueue(stream: Http2Stream): void {
    if (stream.isQueued) return;
    stream.isQueued = true;
    join(this.#ready, stream);
    this.#schedule();
  }

  /** False when the window becomes too large. */
  widen(byteCount: number): boolean {
    this.windowBytes += byteCount;
    if (this.windowBytes > largestWindowBytes) return false;
    if (this.#starved.length === 0) return true;
    for (const stream of this.#starved) this.#ready.push(stream);
    this.#starved = [];
    this.#schedule();
    return true;
  }

  /** Writes the last words, whatever streams wait. */
  finish(): void {
    this.#isFinished = true;
    this.#writeControls();
    this.#write(this.parts.writer.takeParts());
    this.#ready = this.#starved = [];
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#isBlocked || this.#isFinished || this.socket.destroyed) return;
    if (this.#ready.length === 0 && this.#controls.length === 0) return;
    const { writer } = this.parts;
    this.#writeControls();
    const sent = this.#sendStreams(writer);
    this.#write(writer.takeParts());
    for (const stream of sent) this.#notify(stream);
    if (this.#ready.length > 0 && !this.#isBlocked && !this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(flush, this);
    }
  }

  #writeControls(): void {
    for (const frame of this.#controls) this.parts.writer.bytes(frame, 0, frame.length);
    this.#controls = [];
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isBlocked) return;
    this.#isScheduled = true;
    this.parts.turn.defer(this);
  }

  /** Answers those of which something was sent. */
  #sendStreams(writer: FrameWriter): readonly Http2Stream[] {
    const { frameBytes, hasSmallTable } = this.peer;
    const mostBytes = Math.min(frameBytes, mostFrameBytes);
    const sent: Http2Stream[] = [];
    writer.isTableDue = hasSmallTable && !this.#isTableTold;
    let left = mostWriteBytes;
    while (this.#ready.length > 0 && left > 0) {
      const round = this.#ready;
      this.#ready = [];
      let at = 0;
      for (; at < round.length && left > 0; at++) left -= this.#send(round[at]!, mostBytes, sent);
      if (at < round.length) this.#ready = [...round.slice(at), ...this.#ready];
    }
    this.#isTableTold = hasSmallTable && !writer.isTableDue;
    return sent;
  }

  /** One stream's turn; answers how many bytes it took. */
  #send(stream: Http2Stream, mostBytes: number, sent: Http2Stream[]): number {
    stream.isQueued = false;
    if (stream.isClosed) return 0;
    const { writer } = this.parts;
    const count = stream.send(writer, this.windowBytes, mostBytes);
    this.windowBytes -= count;
    this.#sentBytes += count;
    if (stream.hasMore) this.#sendAgain(stream);
    if ((count > 0 || stream.isEndSent) && sent.at(-1) !== stream) sent.push(stream);
    return count;
  }

  #sendAgain(stream: Http2Stream): void {
    // Otherwise the peer's next word on the stream's window brings it back.
    if (stream.sendWindowBytes <= 0) return;
    stream.isQueued = true;
    join(this.windowBytes > 0 ? this.#ready : this.#starved, stream);
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

/** Streams that were closed while they waited would pile up while nothing can be sent. */
function join(line: Http2Stream[], stream: Http2Stream): void {
  if (line.push(stream) <= mostWaitingStreams) return;
  const open = line.filter(({ isClosed }) => !isClosed);
  line.splice(0, line.length, ...open);
}

function flush(line: SendLine): void {
  line.flush();
}
