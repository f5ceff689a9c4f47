import type { Socket } from 'node:net';
import type { Exchange } from '../exchange.js';
import { readPlainHead } from './head.js';
import type { PlainHead } from './head.js';

/** What is behind the connections. */
export interface PlainService<Route> {
  /** What serves this request; undefined: not by this way. */
  routeOf(head: PlainHead): Route | undefined;
  /** Answers by `connection.answer`, sooner or later. */
  serve(connection: PlainConnection<Route>, ask: PlainAsk<Route>, body: Buffer): void;
  /** The client went before it was answered. */
  abandoned(exchange: Exchange): void;
}

export interface PlainAsk<Route> {
  readonly head: PlainHead;
  readonly route: Route;
}

export interface ConnectionOptions<Route> {
  service: PlainService<Route>;
  keepAliveTimeoutMs: number;
  /** Takes over the socket and all that was read from it since its last request. */
  handOver(socket: Socket, bytes: Buffer): void;
  closed(connection: PlainConnection<Route>): void;
}

const endOfHead = Buffer.from('\r\n\r\n');
const mostHeadBytes = 8_192;
/** There may be very many connections. */
const mostKeptHeadBytes = 2_048;
/** What comes in one read of a socket, or in two. */
const mostBodyBytes = 65_536;
/** What is missing then is left to Node, whose time for a whole request begins. */
const mostHeldMs = 2_000;
/** As Node does: a client that keeps to what it was told must not meet a closed door. */
const afterToldMs = 1_000;

/**
 * Reads requests from a socket as long as they are plain: the whole request at once or in two
 * pieces, one after the other, with nothing unusual in it. At the first that is not, the socket
 * goes to Node's HTTP server with every byte of that request, and stays there.
 */
export class PlainConnection<Route> {
  /** The request that is being answered. */
  exchange: Exchange | undefined;
  #held: Buffer | undefined;
  #waiting: Buffer | undefined;
  #isBusy = false;
  readonly #idleMs: number;
  // Clients send the same head again and again.
  #lastText = '';
  #lastAsk: PlainAsk<Route> | undefined;

  constructor(
    readonly socket: Socket,
    private readonly options: ConnectionOptions<Route>,
  ) {
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('close', this.#onClose);
    socket.on('error', ignore);
    socket.on('drain', this.#onDrain);
    this.#idleMs = options.keepAliveTimeoutMs + afterToldMs;
    socket.setTimeout(this.#idleMs, this.#onTimeout);
  }

  get isIdle(): boolean {
    return !this.#isBusy && this.#held === undefined;
  }

  /** Sends the answer to the request that is being served. */
  answer(text: string, isAscii: boolean, isLast: boolean): void {
    const { socket } = this;
    this.exchange = undefined;
    this.#isBusy = false;
    if (!socket.writable) return;
    const isTaken = socket.write(text, isAscii ? 'latin1' : 'utf8');
    if (isLast) {
      socket.end();
      return;
    }
    if (!isTaken) socket.pause();
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    if (isTaken) socket.resume();
    this.#take(waiting);
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.#isBusy) {
      // The next request comes before the answer to this one: it waits, and so does its sender.
      this.#waiting = this.#waiting ? Buffer.concat([this.#waiting, bytes]) : bytes;
      this.socket.pause();
      return;
    }
    this.#take(this.#held ? Buffer.concat([this.#held, bytes]) : bytes);
  };

  #take(bytes: Buffer): void {
    const end = bytes.indexOf(endOfHead);
    const ask =
      end > 0 && end <= mostHeadBytes ? this.#ask(bytes.toString('latin1', 0, end)) : undefined;
    if (!ask) return this.#handOver(bytes);
    const bodyStart = end + endOfHead.length;
    const missing = bodyStart + ask.head.bodyBytes - bytes.length;
    if (missing < 0) return this.#handOver(bytes);
    if (missing > 0) {
      if (this.#held || ask.head.bodyBytes > mostBodyBytes) return this.#handOver(bytes);
      this.#held = bytes;
      this.socket.setTimeout(mostHeldMs);
      return;
    }
    if (this.#held) this.socket.setTimeout(this.#idleMs);
    this.#held = undefined;
    this.#isBusy = true;
    this.options.service.serve(this, ask, bytes.subarray(bodyStart));
  }

  #ask(text: string): PlainAsk<Route> | undefined {
    if (text === this.#lastText) return this.#lastAsk;
    const head = readPlainHead(text);
    const route = head && this.options.service.routeOf(head);
    if (!head || route === undefined) return undefined;
    const ask = { head, route };
    if (text.length <= mostKeptHeadBytes) {
      this.#lastText = text;
      this.#lastAsk = ask;
    }
    return ask;
  }

  #handOver(bytes: Buffer): void {
    const { socket } = this;
    socket.removeListener('data', this.#onData);
    socket.removeListener('end', this.#onEnd);
    socket.removeListener('close', this.#onClose);
    socket.removeListener('error', ignore);
    socket.removeListener('drain', this.#onDrain);
    socket.setTimeout(0, this.#onTimeout);
    // It may have been told to wait, and nobody there would tell it to go on.
    socket.resume();
    this.options.closed(this);
    this.options.handOver(socket, bytes);
  }

  /** Whoever says no more is taken to have left, as Node does: that is how clients leave. */
  readonly #onEnd = (): void => {
    const { socket } = this;
    if (!this.#held) return void socket.end();
    this.#handOver(this.#held);
    socket.emit('end');
  };

  readonly #onDrain = (): void => {
    if (this.#waiting === undefined) this.socket.resume();
  };

  readonly #onTimeout = (): void => {
    if (this.#held) this.#handOver(this.#held);
    else if (!this.#isBusy) this.socket.destroy();
  };

  readonly #onClose = (): void => {
    this.options.closed(this);
    if (this.exchange) this.options.service.abandoned(this.exchange);
    this.exchange = undefined;
  };
}

/** A broken connection is closed next. */
function ignore(): void {}
