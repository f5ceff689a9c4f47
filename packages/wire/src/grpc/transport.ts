import type { Socket } from 'node:net';

/** Server certificate. With a client CA, clients must present a certificate (mTLS). */
export interface TlsKeys {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly clientCa: Buffer | undefined;
}

/** Serves gRPC on accepted sockets. */
export interface GrpcTransport {
  take(accepted: Socket): void;
  /** Lets calls in flight finish; `signal` aborts them. Resolves when all connections are closed. */
  close(signal: AbortSignal): Promise<void>;
}
