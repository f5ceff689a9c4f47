import type { Socket } from 'node:net';
import type { Timer } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import { AnswerReader, type Reading } from './answer.js';
import { Dial, type DialTools } from './dial.js';
import type { Exchange } from './exchange.js';
import { cutShort, Failure, failureOf } from './failure.js';
import { endsConnection, writeRequest } from './request-bytes.js';

/** How long a connection lies idle when its peer does not say how long it lets it. */
const defaultIdleMs = 4_000;
const longestIdleMs = 600_000;
/** Sooner than the peer says, so that no request meets it hanging up. */
const idleMarginMs = 2_000;

/**
 * One connection at a time to one origin, opened when there is a request for it and kept between
 * requests. It carries one request at a time, so each connection is opened for a request that is
 * known, under that request's policy and time limits. No request is sent twice.
 */
export class Line {
  /** The request under way. */
  exchange: Exchange | undefined;
  readonly #answer = new AnswerReader();
  #socket: Socket | undefined;
  #remoteIp = '';
  #openedAt = 0;
  #isSent = false;
  #isLast = false;
  #idleUntil = 0;
  #watch: { timer: Timer; endsAt: number } | undefined;

  constructor(
    readonly tools: DialTools,
    readonly maxAgeMs: number,
  ) {}

  carry(exchange: Exchange): void {
    this.exchange = exchange;
    exchange.line = this;
    const socket = this.#socket;
    if (socket === undefined) return this.#open(exchange);
    exchange.remoteIp = this.#remoteIp;
    socket.ref();
    // The peer may have hung up and we not have looked yet: nothing is sent before we have.
    setImmediate(sendUnlessClosed, this, exchange);
  }

  /** The moment after which a connection that was kept is known to be there still. */
  looked(exchange: Exchange): void {
    // It gave up meanwhile, and another may be in its place.
    if (this.exchange !== exchange) return;
    const socket = this.#socket;
    if (socket === undefined) return this.#open(exchange);
    // The last request on an old connection: the next one resolves the name anew.
    const isOld = this.tools.clock.monotonic() - this.#openedAt >= this.maxAgeMs;
    this.#send(socket, exchange, isOld);
  }

  /** Lets go of a request that has settled, so that an idle line does not keep its response. */
  rest(): void {
    this.exchange = undefined;
    this.#isSent = false;
    this.#socket?.unref();
  }

  /** Closes the connection, if there is one. */
  drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#answer.forget();
    this.#stopWatch();
    socket?.destroy();
  }

  #open(exchange: Exchange): void {
    exchange.remoteIp = undefined;
    const { tools } = this;
    exchange.dial = new Dial(exchange.ask, tools, this.#arrived, (result) => {
      exchange.dial = undefined;
      if (result instanceof Failure) return exchange.failed(result);
      this.#take(result.socket);
      this.#remoteIp = result.remoteIp;
      this.#openedAt = tools.clock.monotonic();
      exchange.remoteIp = result.remoteIp;
      this.#send(result.socket, exchange, false);
    });
  }

  #take(socket: Socket): void {
    this.#socket = socket;
    socket.on('data', this.#arrived);
    socket.on('error', (error) => this.#over(socket, error));
    socket.on('end', () => this.#over(socket));
    socket.on('close', () => this.#over(socket));
  }

  #send(socket: Socket, exchange: Exchange, isLast: boolean): void {
    const { request } = exchange.ask;
    this.#isLast = isLast || endsConnection(request);
    this.#isSent = true;
    this.#answer.begin(exchange, request.method === 'HEAD');
    writeRequest(socket, request, this.#isLast);
  }

  readonly #arrived = (bytes: Buffer): void => {
    const { exchange } = this;
    if (exchange === undefined || !this.#isSent) return this.drop();
    let reading: Reading;
    try {
      reading = this.#answer.read(bytes);
    } catch (error) {
      this.drop();
      return exchange.failed(failureOf(error));
    }
    if (reading === 'more') return;
    // A connection that is not done with the request is not done with its body either.
    if (reading === 'unwanted' || !this.#mayBeKept()) this.drop();
    exchange.answered(reading === 'unwanted');
  };

  #mayBeKept(): boolean {
    const { keepsAlive, keepAliveMs } = this.#answer;
    if (this.#isLast || !keepsAlive || this.#socket?.writableLength !== 0) return false;
    const idleMs =
      keepAliveMs === undefined
        ? defaultIdleMs
        : Math.min(keepAliveMs - idleMarginMs, longestIdleMs);
    if (idleMs <= 0) return false;
    this.#idleUntil = this.tools.clock.monotonic() + idleMs;
    // One timer for all the requests of some seconds, as long as it does not come too late.
    if (this.#watch === undefined || this.#watch.endsAt > this.#idleUntil) this.#startWatch(idleMs);
    return true;
  }

  #startWatch(delayMs: number): void {
    const { clock } = this.tools;
    this.#stopWatch();
    const timer = clock.after(delayMs, () => {
      this.#watch = undefined;
      // Whoever uses it looks to it.
      if (this.exchange !== undefined) return;
      const leftMs = this.#idleUntil - clock.monotonic();
      if (leftMs > 0) this.#startWatch(leftMs);
      else this.drop();
    });
    this.#watch = { timer, endsAt: clock.monotonic() + delayMs };
  }

  #stopWatch(): void {
    this.#watch?.timer.cancel();
    this.#watch = undefined;
  }

  #over(socket: Socket, error?: Error): void {
    if (this.#socket !== socket) return;
    const { exchange } = this;
    // Whoever closes with a part of the request unread resets, however whole the response is.
    const isHangUp = error === undefined || systemCode(error) === 'ECONNRESET';
    const isWhole = isHangUp && this.#answer.ended();
    this.drop();
    if (exchange === undefined || !this.#isSent) return;
    if (isWhole) exchange.answered(false);
    else exchange.failed(error === undefined ? cutShort() : failureOf(error));
  }
}

function sendUnlessClosed(line: Line, exchange: Exchange): void {
  line.looked(exchange);
}
