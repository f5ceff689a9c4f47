import type { Clock, Timer } from '@millrace/kit/clock';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { ByteSource } from '../http2/byte-source.js';
import { Http2Connection } from '../http2/connection.js';
import { ConnectionMemory } from '../http2/connection-memory.js';
import type { RequestHeaders } from '../http2/request-headers.js';
import type { SendLineParts } from '../http2/send-line.js';
import type { Http2Stream } from '../http2/stream.js';
import { GrpcCall, type CallRequest } from './call.js';
import { requestOf } from './intake.js';
import type { Methods } from './methods.js';

const checkMs = 5_000;
// A caller that is gone without a word is noticed within a minute.
const pingMs = 30_000;
const pongMs = 20_000;

export interface ConnectionParts {
  readonly clock: Clock;
  readonly methods: Methods;
  /** What the process holds for all its peers. */
  readonly memory: PeerMemory;
}

/** One caller's connection, from when its bytes are those of HTTP/2. */
export class Connection {
  readonly #http2: Http2Connection;
  readonly #peer: string;
  #check: Timer | undefined;
  #pingedAt: number;
  #pong: Timer | undefined;

  constructor(
    private readonly source: ByteSource,
    private readonly parts: ConnectionParts,
    sending: SendLineParts,
  ) {
    const { socket } = source;
    const { remoteAddress = 'unknown', remotePort } = socket;
    this.#peer = remotePort === undefined ? remoteAddress : `${remoteAddress}:${remotePort}`;
    this.#http2 = new Http2Connection(source, {
      clock: parts.clock,
      memory: new ConnectionMemory(parts.memory),
      writer: sending.writer,
      turn: sending.turn,
      open: (stream, headers) => this.#open(stream, headers),
    });
    this.#http2.onPong = () => this.#pong?.cancel();
    this.#pingedAt = parts.clock.monotonic();
    socket.on('close', () => this.#stopChecks());
    this.#startCheck();
  }

  /** Takes no more calls, and ends when those under way have. */
  close(): void {
    this.#http2.close();
  }

  #open(stream: Http2Stream, headers: RequestHeaders): GrpcCall | undefined {
    const known = headers.meaning as CallRequest | undefined;
    const request = known ?? requestOf(stream, headers, this.parts.methods);
    if (!request) return undefined;
    headers.meaning = request;
    const call = new GrpcCall(stream, request, this.#peer, this.parts.clock);
    call.begin();
    return call;
  }

  #startCheck(): void {
    const { clock } = this.parts;
    this.#check = clock.after(checkMs, () => {
      const now = clock.monotonic();
      this.#http2.checkPace(now);
      if (now - this.#pingedAt >= pingMs) this.#ping(now);
      this.#startCheck();
    });
  }

  #ping(now: number): void {
    if (this.#http2.isOver) return;
    this.#pingedAt = now;
    this.#pong = this.parts.clock.after(pongMs, () => this.source.socket.destroy());
    this.#http2.ping();
  }

  #stopChecks(): void {
    this.#check?.cancel();
    this.#pong?.cancel();
  }
}
