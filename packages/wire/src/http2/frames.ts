/** Constants of RFC 9113. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const frameHeaderBytes = 9;
/** The default SETTINGS_MAX_FRAME_SIZE, which this server does not change. */
export const frameBytes = 16_384;
export const maxFrameBytes = 2 ** 24 - 1;
export const maxWindowBytes = 2 ** 31 - 1;
/** Initial flow-control window of streams and connections. */
export const defaultWindowBytes = 65_535;

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = {
  ack: 0x1,
  endStream: 0x1,
  endHeaders: 0x4,
  padded: 0x8,
  priority: 0x20,
} as const;

export const settings = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const errorCodes = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;

export type ErrorName = keyof typeof errorCodes;

/** A connection error (RFC 9113, 5.4.1). */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  constructor(
    readonly code: ErrorName,
    message: string,
  ) {
    super(message);
  }
}

export function protocolError(text: string): ConnectionError {
  return new ConnectionError('PROTOCOL_ERROR', text);
}

export function checkLength(byteCount: number, actual: number): void {
  if (actual === byteCount) return;
  throw new ConnectionError('FRAME_SIZE_ERROR', `frame payload has ${actual} bytes`);
}

export function checkStreamId(id: number): void {
  if (id === 0) throw protocolError('frame requires a stream ID');
}

export function checkConnectionFrame(id: number): void {
  if (id !== 0) throw protocolError('frame requires stream ID 0');
}

export function dependencyAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) & 0x7fffffff;
}

export function paddingAt(bytes: Buffer, start: number, end: number): number {
  if (start === end) throw new ConnectionError('FRAME_SIZE_ERROR', 'frame has no pad length');
  return bytes[start]!;
}

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

/** Builds control frames; response frames are written by FrameWriter. */
function frame(type: number, frameFlags: number, streamId: number, payloadBytes: number): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + payloadBytes);
  bytes.writeUIntBE(payloadBytes, 0, 3);
  bytes[3] = type;
  bytes[4] = frameFlags;
  bytes.writeUInt32BE(streamId, 5);
  return bytes;
}

export function settingsFrame(values: Partial<Record<keyof typeof settings, number>>): Buffer {
  const entries = Object.entries(values) as [keyof typeof settings, number][];
  const bytes = frame(frameTypes.settings, 0, 0, 6 * entries.length);
  entries.forEach(([name, value], i) => {
    bytes.writeUInt16BE(settings[name], frameHeaderBytes + 6 * i);
    bytes.writeUInt32BE(value, frameHeaderBytes + 6 * i + 2);
  });
  return bytes;
}

export const settingsAck = frame(frameTypes.settings, flags.ack, 0, 0);

export const pingFrame = frame(frameTypes.ping, 0, 0, 8);

export function pingAck(bytes: Buffer, start: number): Buffer {
  const answer = frame(frameTypes.ping, flags.ack, 0, 8);
  bytes.copy(answer, frameHeaderBytes, start, start + 8);
  return answer;
}

export function windowUpdate(streamId: number, byteCount: number): Buffer {
  const bytes = frame(frameTypes.windowUpdate, 0, streamId, 4);
  bytes.writeUInt32BE(byteCount, frameHeaderBytes);
  return bytes;
}

export function rstStream(streamId: number, code: ErrorName): Buffer {
  const bytes = frame(frameTypes.rstStream, 0, streamId, 4);
  bytes.writeUInt32BE(errorCodes[code], frameHeaderBytes);
  return bytes;
}

export function goaway(lastStreamId: number, code: ErrorName, text: string): Buffer {
  const bytes = frame(frameTypes.goaway, 0, 0, 8 + text.length);
  bytes.writeUInt32BE(lastStreamId, frameHeaderBytes);
  bytes.writeUInt32BE(errorCodes[code], frameHeaderBytes + 4);
  bytes.write(text, frameHeaderBytes + 8, 'latin1');
  return bytes;
}

const entryBytes = 6;

/** The SETTINGS of the peer. */
export class PeerSettings {
  initialWindowBytes = defaultWindowBytes;
  frameBytes: number = frameBytes;
  maxConcurrentStreams = Infinity;
  /** Whether the peer ever set a header table below the default size. */
  hasSmallTable = false;

  /** Throws a ConnectionError for invalid values. */
  take(bytes: Buffer, start: number, end: number): void {
    if ((end - start) % entryBytes !== 0) {
      throw new ConnectionError('FRAME_SIZE_ERROR', 'SETTINGS length is not a multiple of 6');
    }
    for (let at = start; at < end; at += entryBytes) {
      this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
    }
  }

  #set(name: number, value: number): void {
    switch (name) {
      case settings.headerTableSize:
        if (value < 4_096) this.hasSmallTable = true;
        return;
      case settings.enablePush:
        if (value > 1)
          throw new ConnectionError('PROTOCOL_ERROR', 'SETTINGS_ENABLE_PUSH is not 0 or 1');
        return;
      case settings.maxConcurrentStreams:
        this.maxConcurrentStreams = value;
        return;
      case settings.initialWindowSize:
        if (value > maxWindowBytes) {
          throw new ConnectionError('FLOW_CONTROL_ERROR', 'flow-control window exceeds 2^31-1');
        }
        this.initialWindowBytes = value;
        return;
      case settings.maxFrameSize:
        if (value < frameBytes || value > maxFrameBytes) {
          throw new ConnectionError('PROTOCOL_ERROR', 'SETTINGS_MAX_FRAME_SIZE out of range');
        }
        this.frameBytes = value;
    }
  }
}
