/** The status codes of gRPC. */
export const grpcCodes = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type GrpcCode = keyof typeof grpcCodes;

/** The status of a call. */
export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
  /** An encoded google.rpc.Status. */
  readonly details?: Buffer;
  /** Set when the transport refused the call, not its method. */
  readonly fault?: TransportFault;
}

/** Why the transport refused a call. */
export interface TransportFault {
  readonly kind: 'unknown_method' | 'invalid_request' | 'too_large' | 'out_of_memory' | 'too_late';
  /** The limit of a message that is too large. */
  readonly limitBytes?: number;
}

export const ok: GrpcStatus = { code: 0, message: '' };

export function errorStatus(code: GrpcCode, message: string): GrpcStatus {
  return { code: grpcCodes[code], message };
}

/** A status of the transport itself. */
export function faultStatus(
  code: GrpcCode,
  message: string,
  kind: TransportFault['kind'],
): GrpcStatus {
  return { code: grpcCodes[code], message, fault: { kind } };
}

export function tooLarge(message: string, limitBytes: number): GrpcStatus {
  const code = grpcCodes.RESOURCE_EXHAUSTED;
  return { code, message, fault: { kind: 'too_large', limitBytes } };
}

const okTrailers: Readonly<Record<string, string>> = { 'grpc-status': '0' };

export function trailersOf(status: GrpcStatus): Readonly<Record<string, string>> {
  const { code, message, details } = status;
  if (code === 0) return okTrailers;
  const trailers: Record<string, string> = {
    'grpc-status': String(code),
    'grpc-message': percentEncoded(message),
  };
  if (details) trailers['grpc-status-details-bin'] = unpadded(details.toString('base64'));
  return trailers;
}

// Printable ASCII except the percent sign, without leading or trailing spaces.
const plain = /^(?:[!-$&-~](?:[ -$&-~]*[!-$&-~])?)?$/;

/** Percent-encodes a text for `grpc-message`. */
export function percentEncoded(text: string): string {
  if (plain.test(text)) return text;
  const bytes = Buffer.from(text, 'utf8');
  let encoded = '';
  bytes.forEach((byte, i) => {
    const isInside = i > 0 && i < bytes.length - 1;
    const isPlain = byte > 0x20 && byte < 0x7f && byte !== 0x25;
    encoded += isPlain || (byte === 0x20 && isInside) ? String.fromCharCode(byte) : escaped(byte);
  });
  return encoded;
}

function escaped(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

function unpadded(base64: string): string {
  const end = base64.indexOf('=');
  return end === -1 ? base64 : base64.slice(0, end);
}

export const blockBytes = 64 * 1024;

const maxFreeBlocks = 256;
const freeBlocks: Buffer[] = [];

/**
 * Blocks for the bodies of unfinished messages. A block that is returned is used again at once;
 * left to the garbage collector, the bodies of rejected requests would stay in memory beside
 * those that take their place in the memory budget.
 */
export function takeBlock(): Buffer {
  return freeBlocks.pop() ?? Buffer.allocUnsafeSlow(blockBytes);
}

/** Nothing may read or write the block afterwards. */
function returnBlock(block: Buffer): void {
  if (freeBlocks.length < maxFreeBlocks) freeBlocks.push(block);
}

/** Receives complete messages. */
export interface MessageSink {
  takeMessage(bytes: Buffer, isCompressed: boolean): void;
  /** Reserves memory for a message; the sink releases it when the message is processed. */
  tryReserve(bytes: number): boolean;
}

export const messagePrefixBytes = 5;
const defaultFirstBytes = 16 * 1024;

/**
 * Splits the bytes of a request into gRPC messages. A partial message takes at most one block
 * more than the bytes received, whatever length its prefix announces.
 */
export class Deframer {
  readonly #sink: MessageSink;
  readonly #maxBytes: number;
  readonly #firstBytes: number;
  #head: Buffer | undefined;
  #headLength = 0;
  #flag = 0;
  #length = -1;
  /** The body so far. Joined when it is complete, so that growing leaves no garbage. */
  #pieces: Buffer[] = [];
  /** Room in the last piece. */
  #room = 0;
  #bodyLength = 0;

  /** `firstBytes`: what is allocated at once for a message of which little has arrived. */
  constructor(sink: MessageSink, maxBytes: number, firstBytes = defaultFirstBytes) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
    this.#firstBytes = firstBytes;
  }

  /** True when a message has begun and is not complete. */
  get hasPartialMessage(): boolean {
    return this.#headLength > 0 || this.#length >= 0;
  }

  /** Returns an error status for invalid bytes; nothing may be pushed after it. */
  push(chunk: Buffer, start = 0, end = chunk.length): GrpcStatus | undefined {
    for (let at = start; at < end;) {
      if (this.#length < 0) {
        at += this.#takeHead(chunk, at, end);
        const problem = this.#length < 0 ? undefined : this.#problem();
        if (problem) return problem;
      }
      if (this.#length >= 0) {
        const count = this.#takeBody(chunk, at, end);
        if (count === undefined) return outOfMemory;
        at += count;
      }
    }
    return undefined;
  }

  #problem(): GrpcStatus | undefined {
    if (this.#flag > 1) return invalid('The compressed flag of a gRPC message is not 0 or 1.');
    if (this.#length <= this.#maxBytes) return undefined;
    const text = `A message of ${this.#length} bytes exceeds the limit of ${this.#maxBytes} bytes.`;
    return tooLarge(text, this.#maxBytes);
  }

  #takeHead(chunk: Buffer, at: number, end: number): number {
    if (this.#headLength === 0 && end - at >= messagePrefixBytes) {
      this.#readHead(chunk, at);
      return messagePrefixBytes;
    }
    this.#head ??= Buffer.allocUnsafe(messagePrefixBytes);
    const count = Math.min(messagePrefixBytes - this.#headLength, end - at);
    chunk.copy(this.#head, this.#headLength, at, at + count);
    this.#headLength += count;
    if (this.#headLength === messagePrefixBytes) this.#readHead(this.#head, 0);
    return count;
  }

  #readHead(bytes: Buffer, at: number): void {
    this.#flag = bytes[at]!;
    this.#length = bytes.readUInt32BE(at + 1);
    this.#headLength = 0;
  }

  /** Undefined when the memory limit is reached. */
  #takeBody(chunk: Buffer, at: number, end: number): number | undefined {
    if (this.#room === 0 && !this.#addPiece(end - at)) return undefined;
    const piece = this.#pieces.at(-1)!;
    const count = Math.min(this.#room, end - at);
    chunk.copy(piece, piece.length - this.#room, at, at + count);
    this.#room -= count;
    this.#bodyLength += count;
    if (this.#bodyLength === this.#length) this.#complete();
    return count;
  }

  /** A small piece first, then blocks. */
  #addPiece(available: number): boolean {
    const left = this.#length - this.#bodyLength;
    const wanted = this.#bodyLength === 0 ? Math.max(this.#firstBytes, available) : blockBytes;
    const size = Math.min(left, wanted, blockBytes);
    if (!this.#sink.tryReserve(size)) return false;
    this.#pieces.push(size === blockBytes ? takeBlock() : Buffer.allocUnsafe(size));
    this.#room = size;
    return true;
  }

  /** Drops a partial message. Nothing may be pushed afterwards. */
  discard(): void {
    this.#returnBlocks();
    this.#room = 0;
  }

  #returnBlocks(): void {
    for (const piece of this.#pieces) if (piece.length === blockBytes) returnBlock(piece);
    this.#pieces = [];
  }

  #complete(): void {
    let body = this.#pieces[0]!;
    if (this.#pieces.length === 1) {
      this.#pieces = [];
    } else {
      body = Buffer.concat(this.#pieces, this.#length);
      this.#returnBlocks();
    }
    this.#length = -1;
    this.#bodyLength = 0;
    this.#sink.takeMessage(body, this.#flag === 1);
  }
}

/** Ends a call that needs more memory than its connection or the process may hold. */
export const outOfMemory: GrpcStatus = faultStatus(
  'RESOURCE_EXHAUSTED',
  'The memory limit for this connection or for all connections is reached. Retry later.',
  'out_of_memory',
);

/** Ends a call whose request breaks the protocol. */
export function invalid(message: string): GrpcStatus {
  return faultStatus('INTERNAL', message, 'invalid_request');
}

/** Whether these bytes are exactly one message. */
export function isOneMessage(bytes: Buffer, start: number, end: number): boolean {
  return (
    end - start >= messagePrefixBytes &&
    bytes[start]! <= 1 &&
    bytes.readUInt32BE(start + 1) === end - start - messagePrefixBytes
  );
}
