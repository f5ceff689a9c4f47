/** The user of a stream. None of these methods may throw. */
export interface StreamUser {
  /** Request bytes from `start` to `end`; the buffer is reused after this returns. */
  takeBytes(bytes: Buffer, start: number, end: number): void;
  /** The request is complete. */
  takeEnd(): void;
  /** The stream is closed, for any reason. */
  takeClose(): void;
  /** True for watch streams, whose client may stop reading for minutes. */
  readonly isExemptFromReadRate: boolean;
  /** Called every few seconds with the monotonic time, to drop slow peers. */
  checkTimeouts(now: number): void;
}

/** Response bytes that wait to be sent. */
export interface OutgoingBytes {
  readonly unsentBytes: number;
  take(writer: ByteWriter, count: number): void;
  /** The bytes taken since the last call have been written. */
  takeSent(): void;
  /** The stream is closed. */
  forget(): void;
}

/** Collects the bytes of one write. */
export interface ByteWriter {
  /** The prefix of a gRPC message that is not compressed. */
  messagePrefix(length: number): void;
  bytes(source: Uint8Array, start: number, end: number): void;
}
