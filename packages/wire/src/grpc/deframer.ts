import { failed, type GrpcStatus } from './status.js';

/** Takes messages as they become complete. */
export interface MessageSink {
  takeMessage(bytes: Buffer, isCompressed: boolean): void;
  /** Room for a message; the sink releases it when the message is no longer needed. */
  tryReserve(bytes: number): boolean;
}

export const messageHeadBytes = 5;
const firstBytes = 16 * 1024;

/**
 * Cuts the bytes of a request into messages, wherever the pieces of the network end. What waits for
 * its rest takes no more room than twice what has arrived, whatever length was announced.
 */
export class Deframer {
  readonly #sink: MessageSink;
  readonly #mostBytes: number;
  #head: Buffer | undefined;
  #headLength = 0;
  #flag = 0;
  #length = -1;
  #body: Buffer | undefined;
  #bodyLength = 0;

  constructor(sink: MessageSink, mostBytes: number) {
    this.#sink = sink;
    this.#mostBytes = mostBytes;
  }

  /** True when a message has begun and is not complete. */
  get isMidway(): boolean {
    return this.#headLength > 0 || this.#length >= 0;
  }

  /** What is wrong with the bytes, if anything: then no more may follow. */
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
    if (this.#flag > 1) return failed('INTERNAL', 'What begins here is no message of gRPC.');
    if (this.#length <= this.#mostBytes) return undefined;
    const text = `A message of ${this.#length} bytes is more than the ${this.#mostBytes} that fit.`;
    return failed('RESOURCE_EXHAUSTED', text);
  }

  #takeHead(chunk: Buffer, at: number, end: number): number {
    if (this.#headLength === 0 && end - at >= messageHeadBytes) {
      this.#readHead(chunk, at);
      return messageHeadBytes;
    }
    this.#head ??= Buffer.allocUnsafe(messageHeadBytes);
    const count = Math.min(messageHeadBytes - this.#headLength, end - at);
    chunk.copy(this.#head, this.#headLength, at, at + count);
    this.#headLength += count;
    if (this.#headLength === messageHeadBytes) this.#readHead(this.#head, 0);
    return count;
  }

  #readHead(bytes: Buffer, at: number): void {
    this.#flag = bytes[at]!;
    this.#length = bytes.readUInt32BE(at + 1);
    this.#headLength = 0;
  }

  /** Undefined when there is no memory for it. */
  #takeBody(chunk: Buffer, at: number, end: number): number | undefined {
    const count = Math.min(this.#length - this.#bodyLength, end - at);
    const body = this.#roomFor(count);
    if (!body) return undefined;
    chunk.copy(body, this.#bodyLength, at, at + count);
    this.#bodyLength += count;
    if (this.#bodyLength === this.#length) {
      this.#complete(body.length === this.#length ? body : body.subarray(0, this.#length));
    }
    return count;
  }

  #roomFor(count: number): Buffer | undefined {
    const needed = this.#bodyLength + count;
    if (this.#body && this.#body.length >= needed) return this.#body;
    const size = Math.min(this.#length, Math.max(firstBytes, 2 * needed));
    if (!this.#sink.tryReserve(size - (this.#body?.length ?? 0))) return undefined;
    const larger = Buffer.allocUnsafe(size);
    this.#body?.copy(larger, 0, 0, this.#bodyLength);
    return (this.#body = larger);
  }

  #complete(message: Buffer): void {
    this.#length = -1;
    this.#body = undefined;
    this.#bodyLength = 0;
    this.#sink.takeMessage(message, this.#flag === 1);
  }
}

/** Ends a call that needs more memory than its connection or the process may hold. */
export const outOfMemory: GrpcStatus = failed(
  'RESOURCE_EXHAUSTED',
  'The server holds as much for this connection, or for all of them, as it may; try again later.',
);

/** Whether these bytes are a message as a whole, and nothing but it. */
export function isOneMessage(bytes: Buffer, start: number, end: number): boolean {
  return (
    end - start >= messageHeadBytes &&
    bytes[start]! <= 1 &&
    bytes.readUInt32BE(start + 1) === end - start - messageHeadBytes
  );
}
