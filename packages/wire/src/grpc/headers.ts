/** The request headers that the server reads. */
export interface CallHeaders {
  readonly ':method': string | undefined;
  readonly ':path': string | undefined;
  readonly 'content-type': string | undefined;
  readonly 'grpc-timeout': string | undefined;
  readonly 'grpc-encoding': string | undefined;
  readonly 'x-api-key': string | undefined;
  readonly authorization: string | undefined;
  /** Uncompressed size of the header list. */
  readonly byteCount: number;
  /** The parsed request, cached because identical header blocks share this object. */
  parsed: unknown;
}
