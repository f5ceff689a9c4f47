/** The headers of a request that anyone here reads. */
export interface CallHeaders {
  readonly ':method': string | undefined;
  readonly ':path': string | undefined;
  readonly 'content-type': string | undefined;
  readonly 'grpc-timeout': string | undefined;
  readonly 'grpc-encoding': string | undefined;
  readonly 'x-api-key': string | undefined;
  readonly authorization: string | undefined;
  /** What the peer sent, uncompressed. */
  readonly byteCount: number;
  /** What their reader made of them, kept for when the same come again. */
  meaning: unknown;
}
