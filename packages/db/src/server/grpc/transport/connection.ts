import type { Clock, Timer } from '@millrace/kit/clock';
import type { ByteSource } from '../http2/byte-source.js';
import { Http2Connection } from '../http2/connection.js';
import type { RequestHeaders } from '../http2/request-headers.js';
import type { SendLineParts } from '../http2/send-line.js';
import type { Http2Stream } from '../http2/stream.js';
import { GrpcCall, type CallRequest } from './call.js';
import { requestOf } from './intake.js';
import type { Methods } from './methods.js';

// A caller that is gone without a word is noticed within a minute.
const roundMs = 30_000;
const pongMs = 20_000;

export interface ConnectionParts {
  readonly clock: Clock;
  readonly methods: Methods;
}

/** One caller's connection, from when its bytes are those of HTTP/2. */
export class Connection {
  readonly #http2: Http2Connection;
  readonly #peer: string;
  #round: Timer | undefined;
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
      writer: sending.writer,
      turn: sending.turn,
      open: (stream, headers) => this.#open(stream, headers),
    });
    this.#http2.onPong = () => this.#pong?.cancel();
    socket.on('close', () => this.#stopRounds());
    this.#startRound();
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

  #startRound(): void {
    this.#round = this.parts.clock.after(roundMs, () => {
      this.#http2.checkPace();
      this.#ping();
      this.#startRound();
    });
  }

  #ping(): void {
    if (this.#http2.isOver) return;
    this.#pong = this.parts.clock.after(pongMs, () => this.source.socket.destroy());
    this.#http2.ping();
  }

  #stopRounds(): void {
    this.#round?.cancel();
    this.#pong?.cancel();
  }
}
