/** Why no whole response came back. */
export type FailureType =
  | 'TIMEOUT'
  | 'CONNECTION_REFUSED'
  | 'CONNECTION_RESET'
  | 'DNS_FAILURE'
  | 'TLS_FAILURE'
  | 'NETWORK_ERROR'
  | 'TARGET_BLOCKED'
  | 'ABORTED';

export interface OutboundResponse {
  readonly ok: true;
  /** Any status, 3xx included: redirects are never followed. */
  readonly status: number;
  /** Names in lower case; a header that came more than once is a list. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The bytes as they came: a content encoding is not undone. */
  readonly body: Uint8Array;
  /** True when the response was longer than `maxResponseBytes` and the rest was thrown away. */
  readonly truncated: boolean;
  readonly remoteIp: string;
  readonly durationMs: number;
}

export interface OutboundFailure {
  readonly ok: false;
  readonly errorType: FailureType;
  readonly message: string;
  readonly remoteIp?: string;
  readonly durationMs: number;
}

export type OutboundOutcome = OutboundResponse | OutboundFailure;

export interface OutboundRequest {
  url: string;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';
  /** `Host`, `Content-Length` and hop-by-hop headers are the connection's own and left out. */
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array | string;
  /** From the DNS lookup to the last byte. Default 30 s. */
  timeoutMs?: number;
  /** For TCP and TLS, after the name is resolved. Default 5 s. */
  connectTimeoutMs?: number;
  /** Default 64 KiB. */
  maxResponseBytes?: number;
  signal?: AbortSignal;
}

export interface Outbound {
  /**
   * Makes one HTTP request and never follows a redirect. Whatever the network does is a value;
   * only a request that cannot be written, such as a header with a line break, throws.
   */
  request(ask: OutboundRequest): Promise<OutboundOutcome>;
  /** Ends what is under way as ABORTED and closes every connection. */
  close(): Promise<void>;
}
