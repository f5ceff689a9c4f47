/** The numbers of RFC 9113. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const frameHeadBytes = 9;
/** The most that a frame holds unless its receiver allows more. We never do. */
export const frameBytes = 16_384;
export const longestFrameBytes = 2 ** 24 - 1;
export const largestWindowBytes = 2 ** 31 - 1;
/** Of streams and connections until someone says otherwise. */
export const firstWindowBytes = 65_535;

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

/** What a peer did that ends its connection. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  constructor(
    readonly code: ErrorName,
    message: string,
  ) {
    super(message);
  }
}
