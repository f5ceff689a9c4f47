/** Why there is no complete response. */
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
  /** The raw bytes; a content encoding is not decoded. */
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
  /** `Host`, `Content-Length` and hop-by-hop headers are ignored. */
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array | string;
  /** From the DNS lookup to the last byte. Default 30 s. */
  timeoutMs?: number;
  /** For TCP and TLS, after the name is resolved. Default 5 s. */
  connectTimeoutMs?: number;
  /** Default 64 KiB. */
  maxResponseBytes?: number;
  signal?: RequestSignal | undefined;
}

/** The part of an AbortSignal that a request needs. */
export interface RequestSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** Aborts the request of one task. An AbortController and its signal cost 10 us more. */
export class RequestAbort implements RequestSignal {
  aborted = false;
  readonly #listeners = new Set<() => void>();

  abort(): void {
    this.aborted = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }
}

export interface Outbound {
  /**
   * Makes one HTTP request and never follows redirects. Network errors are return values; only an
   * invalid request, such as a header with a line break, throws.
   */
  request(request: OutboundRequest): Promise<OutboundOutcome>;
  /** Aborts requests in flight and closes every connection. */
  close(): Promise<void>;
}

/** Hop-by-hop header fields (RFC 9110, 7.6.1) and others that the connection sets itself. */
export const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
]);

/** The names in a Connection header, which are hop-by-hop too. */
export function namedByConnection(value: string): string[] {
  return value.split(',').map((option) => option.trim().toLowerCase());
}
