import { ConnectionError, frameBytes, frameHeaderBytes, preface } from './protocol.js';

/** Receives complete frames. The payload is `bytes` from `start` to `end`. */
export interface FrameSink {
  /** True when reading must stop. */
  readonly isOver: boolean;
  takeFrame(
    type: number,
    flags: number,
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void;
}

/**
 * Checks the connection preface of a client, then splits the input into frames. A frame inside one chunk is
 * passed on without a copy; at most one incomplete frame is buffered.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  #prefaceBytes = 0;
  readonly #head = Buffer.allocUnsafeSlow(frameHeaderBytes);
  /** Buffer of the incomplete frame: first its header, then the whole frame. */
  #waiting: Buffer | undefined;
  #waitingBytes = 0;

  /** Only a client sends a preface. */
  constructor(sink: FrameSink, from: 'client' | 'server' = 'client') {
    this.#sink = sink;
    if (from === 'server') this.#prefaceBytes = preface.length;
  }

  get hasPreface(): boolean {
    return this.#prefaceBytes === preface.length;
  }

  /** Throws a ConnectionError for input that is not HTTP/2. */
  push(chunk: Buffer, end: number): void {
    let at = this.hasPreface ? 0 : this.#takePreface(chunk, end);
    if (this.#waiting) at = this.#takeRest(chunk, at, end);
    while (end - at >= frameHeaderBytes && !this.#sink.isOver) {
      const next = at + frameHeaderBytes + lengthAt(chunk, at);
      if (next > end) break;
      this.#hand(chunk, at, next);
      at = next;
    }
    if (at < end && !this.#sink.isOver) {
      this.#waiting = this.#head;
      this.#waitingBytes = 0;
      this.#takeRest(chunk, at, end);
    }
  }

  #takePreface(chunk: Buffer, end: number): number {
    const start = this.#prefaceBytes;
    const count = Math.min(preface.length - start, end);
    if (preface.compare(chunk, 0, count, start, start + count) !== 0) {
      throw new ConnectionError('PROTOCOL_ERROR', 'invalid connection preface');
    }
    this.#prefaceBytes += count;
    return count;
  }

  /** Appends to the incomplete frame; returns the offset after it. */
  #takeRest(chunk: Buffer, from: number, end: number): number {
    let at = from;
    while (at < end) {
      const waiting: Buffer = this.#waiting!;
      const count = Math.min(waiting.length - this.#waitingBytes, end - at);
      chunk.copy(waiting, this.#waitingBytes, at, at + count);
      this.#waitingBytes += count;
      at += count;
      if (this.#waitingBytes < waiting.length) break;
      if (waiting === this.#head) {
        const whole = Buffer.allocUnsafe(frameHeaderBytes + lengthAt(waiting, 0));
        waiting.copy(whole);
        this.#waiting = whole;
        if (whole.length > frameHeaderBytes) continue;
      }
      const frame = this.#waiting!;
      this.#waiting = undefined;
      this.#hand(frame, 0, frame.length);
      break;
    }
    return at;
  }

  #hand(bytes: Buffer, start: number, end: number): void {
    const streamId =
      ((bytes[start + 5]! & 0x7f) << 24) |
      (bytes[start + 6]! << 16) |
      (bytes[start + 7]! << 8) |
      bytes[start + 8]!;
    const payload = start + frameHeaderBytes;
    this.#sink.takeFrame(bytes[start + 3]!, bytes[start + 4]!, streamId, bytes, payload, end);
  }
}

function lengthAt(bytes: Buffer, at: number): number {
  const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (length <= frameBytes) return length;
  throw new ConnectionError('FRAME_SIZE_ERROR', `frame exceeds ${frameBytes} bytes`);
}
