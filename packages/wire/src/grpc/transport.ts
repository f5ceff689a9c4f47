import type { Socket } from 'node:net';

/** The certificate of the server; with a client CA, callers must show a certificate of it. */
export interface TlsKeys {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly clientCa: Buffer | undefined;
}

/** Serves gRPC on sockets that someone else accepted. */
export interface GrpcTransport {
  take(accepted: Socket): void;
  /** Lets calls in flight finish; `signal` cuts them. Resolves when all connections are gone. */
  close(signal: AbortSignal): Promise<void>;
}
