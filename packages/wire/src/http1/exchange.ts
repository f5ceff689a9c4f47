import type {
  AddressPolicy,
  OutboundOutcome,
  OutboundRequest,
  OutboundResponse,
  Target,
} from '@millrace/kit/outbound';
import { Failure } from '../base/socket.js';
import type { Dial } from './dial.js';

export interface OutgoingRequest {
  method: OutboundRequest['method'];
  path: string;
  /** Flat list of names and values, without hop-by-hop fields. */
  headers: string[];
  body: Uint8Array | string | undefined;
}

export interface ExchangeParams {
  target: Target;
  policy: AddressPolicy;
  request: OutgoingRequest;
  timeoutMs: number;
  connectTimeoutMs: number;
  maxResponseBytes: number;
}

/** A connection that carries one request at a time. */
export interface PooledConnection {
  exchange: Exchange | undefined;
  send(exchange: Exchange): void;
  /** Ends the current request; the connection becomes idle. */
  release(): void;
  close(): void;
}

/**
 * One request in flight. It settles once, with whatever comes first: the response, a failure, the
 * deadline or an abort. Later events are ignored.
 */
export class Exchange {
  isSettled = false;
  /** The connection of this request; undefined while it waits for one. */
  connection: PooledConnection | undefined;
  /** Set while a connection is being opened for this request. */
  dial: Dial | undefined;
  /** Peer address of the connection. */
  remoteIp: string | undefined;

  /** The request is being written. */
  isSent = false;

  #head: Pick<OutboundResponse, 'status' | 'headers'> | undefined;
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(
    readonly params: ExchangeParams,
    readonly elapsedMs: () => number,
    readonly settle: (outcome: OutboundOutcome) => void,
  ) {}

  get status(): number | undefined {
    return this.#head?.status;
  }

  expire(): void {
    const message = `No complete response within ${this.params.timeoutMs} ms (${this.#phase()})`;
    this.#stop(new Failure('TIMEOUT', message, this.remoteIp ?? this.dial?.address));
  }

  abort(message: string): void {
    this.#stop(new Failure('ABORTED', message, this.remoteIp));
  }

  headArrived(status: number, headers: readonly Buffer[]): void {
    this.#head = { status, headers: responseHeaders(headers) };
  }

  bodyArrived(bytes: Buffer): boolean {
    const room = this.params.maxResponseBytes - this.#length;
    const taken = Math.min(bytes.length, room);
    // Copied because the parser reuses its buffer.
    if (taken > 0) this.#chunks.push(Buffer.from(bytes.subarray(0, taken)));
    this.#length += taken;
    return bytes.length <= room;
  }

  /** The response is complete, or truncated at the size limit. */
  completed(truncated: boolean): void {
    if (this.isSettled) return;
    const { status, headers } = this.#head!;
    const chunks = this.#chunks;
    this.isSettled = true;
    this.#chunks = [];
    this.settle({
      ok: true,
      status,
      headers,
      body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, this.#length),
      truncated,
      remoteIp: this.remoteIp ?? '',
      durationMs: this.elapsedMs(),
    });
  }

  failed({ errorType, message, remoteIp = this.remoteIp }: Failure): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.#chunks = [];
    this.settle({
      ok: false,
      errorType,
      message,
      ...(remoteIp === undefined ? {} : { remoteIp }),
      durationMs: this.elapsedMs(),
    });
  }

  /** Closes the connection, which is in an unknown state, and settles. */
  #stop(failure: Failure): void {
    if (this.isSettled) return;
    this.connection?.close();
    this.dial?.cancel(failure);
    this.failed(failure);
  }

  #phase(): string {
    if (this.dial !== undefined) return this.dial.phase;
    if (this.#head !== undefined) return 'reading the response';
    return this.isSent ? 'waiting for the response' : 'waiting for a connection';
  }
}

/** Names in lower case; a header that came more than once is a list. */
function responseHeaders(raw: readonly Buffer[]): OutboundResponse['headers'] {
  const headers: Record<string, string | string[]> = Object.create(null);
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toString('latin1').toLowerCase();
    const value = raw[i + 1]!.toString('latin1');
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    else if (typeof known === 'string') headers[name] = [known, value];
    else known.push(value);
  }
  return headers;
}
