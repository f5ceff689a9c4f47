import { ConnectionError, frameBytes, frameHeadBytes, preface } from './protocol.js';

/** Takes frames as they become complete. The payload is `bytes` from `start` to `end`. */
export interface FrameSink {
  /** No more is to be read. */
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
 * Cuts what arrives into frames, after the preface. A frame that lies in one chunk is handed on
 * where it is, and is gone when the chunk is; at most one is kept that waits for its rest.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  #prefaceBytes = 0;
  readonly #head = Buffer.allocUnsafeSlow(frameHeadBytes);
  /** The head, then the whole frame, that waits for its rest. */
  #waiting: Buffer | undefined;
  #waitingBytes = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  get hasPreface(): boolean {
    return this.#prefaceBytes === preface.length;
  }

  /** Throws a ConnectionError for what cannot be HTTP/2. */
  push(chunk: Buffer, end: number): void {
    let at = this.hasPreface ? 0 : this.#takePreface(chunk, end);
    if (this.#waiting) at = this.#takeRest(chunk, at, end);
    while (end - at >= frameHeadBytes && !this.#sink.isOver) {
      const next = at + frameHeadBytes + lengthAt(chunk, at);
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
      throw new ConnectionError('PROTOCOL_ERROR', 'HTTP/2 is spoken here, with prior knowledge');
    }
    this.#prefaceBytes += count;
    return count;
  }

  /** Adds to the frame that waits; answers where what does not belong to it begins. */
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
        const whole = Buffer.allocUnsafe(frameHeadBytes + lengthAt(waiting, 0));
        waiting.copy(whole);
        this.#waiting = whole;
        if (whole.length > frameHeadBytes) continue;
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
    const payload = start + frameHeadBytes;
    this.#sink.takeFrame(bytes[start + 3]!, bytes[start + 4]!, streamId, bytes, payload, end);
  }
}

function lengthAt(bytes: Buffer, at: number): number {
  const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (length <= frameBytes) return length;
  throw new ConnectionError('FRAME_SIZE_ERROR', `a frame has more than ${frameBytes} bytes`);
}
