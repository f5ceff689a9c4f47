import {
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '@millrace/kit/clock';
import { GrpcCall } from './call.js';
import { requestOf } from './intake.js';
import type { Methods } from './methods.js';

const megabyte = 1024 * 1024;

const sessionOptions = {
  settings: {
    maxConcurrentStreams: 1_000,
    // A large request must not wait for us at every 64 KiB.
    initialWindowSize: megabyte,
    maxHeaderListSize: 16 * 1024,
  },
  // Until the caller has heard of that limit only this one holds.
  maxHeaderListPairs: 64,
  // In megabytes. Calls have limits of their own; this one would refuse calls beside slow watchers.
  maxSessionMemory: 1_024,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
};
const connectionWindowBytes = 4 * megabyte;

// A caller that is gone without a word is noticed within a minute.
const roundMs = 30_000;
const pongMs = 20_000;

export interface ConnectionParts {
  readonly clock: Clock;
  readonly methods: Methods;
}

/** One caller's connection, from when its bytes are those of HTTP/2. */
export class Connection {
  readonly #session: ServerHttp2Session;
  readonly #calls = new Set<GrpcCall>();
  readonly #peer: string;
  #round: Timer | undefined;
  #pong: Timer | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly parts: ConnectionParts,
  ) {
    const { remoteAddress = 'unknown', remotePort } = socket;
    this.#peer = remotePort === undefined ? remoteAddress : `${remoteAddress}:${remotePort}`;
    const session = performServerHandshake(socket, sessionOptions);
    this.#session = session;
    // A caller's mistake or its end; node closes the session, and the streams tell their calls.
    session.on('error', ignore);
    session.on('stream', (stream, headers) => this.#open(stream, headers));
    socket.on('close', () => this.#stopRounds());
    session.setLocalWindowSize(connectionWindowBytes);
    this.#startRound();
  }

  /** Takes no more calls, and ends when those under way have. */
  close(): void {
    this.#session.close();
  }

  #open(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', ignore);
    if (stream.closed) return;
    const request = requestOf(stream, headers, this.parts.methods);
    if (!request) return;
    const call = new GrpcCall(stream, request, this.#peer, this.parts.clock);
    this.#calls.add(call);
    (stream as CallStream)[callOf] = call;
    stream.on('data', onData);
    stream.on('end', onEnd);
    stream.on('wantTrailers', onWantTrailers);
    stream.on('close', () => {
      this.#calls.delete(call);
      call.takeClose();
    });
    call.begin();
  }

  #startRound(): void {
    this.#round = this.parts.clock.after(roundMs, () => {
      for (const call of this.#calls) call.checkPace();
      this.#ping();
      this.#startRound();
    });
  }

  #ping(): void {
    if (this.#session.destroyed) return;
    this.#pong = this.parts.clock.after(pongMs, () => this.socket.destroy());
    this.#session.ping(() => this.#pong?.cancel());
  }

  #stopRounds(): void {
    this.#round?.cancel();
    this.#pong?.cancel();
  }
}

const callOf = Symbol('call');
type CallStream = ServerHttp2Stream & { [callOf]: GrpcCall };

// Shared by all streams: a call is too short to be worth functions of its own.
function onData(this: CallStream, chunk: Buffer): void {
  this[callOf].takeBytes(chunk);
}

function onEnd(this: CallStream): void {
  this[callOf].takeEnd();
}

function onWantTrailers(this: CallStream): void {
  this[callOf].outbox.sendTrailers();
}

function ignore(): void {
  // What there is to do is done when the stream or session closes.
}
