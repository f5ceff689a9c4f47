import type { HeaderList } from './header-list.js';
import type { ConnectionMemory } from './http2/connection-memory.js';
import type { ErrorName } from './http2/protocol.js';

/** Who speaks on a stream. None of these may throw. */
export interface StreamUser {
  /** More of the request: `bytes` from `start` to `end`, which are gone when this returns. */
  takeBytes(bytes: Buffer, start: number, end: number): void;
  /** The request is complete. */
  takeEnd(): void;
  /** Nothing more comes or goes, for whatever reason. */
  takeClose(): void;
  /** Its reader may pause for minutes, as that of a watch. */
  readonly isExemptFromReadRate: boolean;
  /** Called every few seconds, by the monotonic clock, to give up peers that do not keep up. */
  checkPace(now: number): void;
}

/** What waits to be sent. */
export interface OutgoingBytes {
  readonly unsentBytes: number;
  take(writer: ByteWriter, count: number): void;
  /** What was taken since the last time has been written. */
  takeSent(): void;
  /** The stream is closed. */
  forget(): void;
}

/** Takes the bytes of a response for one write. */
export interface ByteWriter {
  /** The prefix of a gRPC message that is not compressed. */
  messageHead(length: number): void;
  bytes(source: Uint8Array, start: number, end: number): void;
}

/** One request and its response, whoever implements HTTP/2. */
export interface ServerStream {
  user: StreamUser | undefined;
  outgoing: OutgoingBytes | undefined;
  readonly isClosed: boolean;
  readonly hasHeaders: boolean;
  readonly memory: ConnectionMemory;
  /** The peer lets us send nothing on this stream. */
  readonly isWindowExhausted: boolean;
  /** Begins the response; only the first time counts. */
  respond(headers: HeaderList): void;
  /** There is more to send. */
  wake(): void;
  /** Ends the response when all is sent. */
  end(trailers?: HeaderList): void;
  reset(code: ErrorName): void;
  pause(): void;
  resume(): void;
}
