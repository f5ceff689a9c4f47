import type { Socket } from 'node:net';
import type { Timer } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import { ResponseReader, type ReadResult } from './response-reader.js';
import { Dial, type DialTools } from './dial.js';
import type { Exchange } from './exchange.js';
import { prematureClose, Failure, failureOf } from './failure.js';
import { endsConnection, writeRequest } from './request-bytes.js';

/** How long a connection lies idle when its peer does not say how long it lets it. */
const defaultIdleMs = 4_000;
const maxIdleMs = 600_000;
/** Sooner than the peer says, so that no request meets it hanging up. */
const idleMarginMs = 2_000;

/**
 * One connection at a time to one origin, opened when there is a request for it and kept between
 * requests. It carries one request at a time, so each connection is opened for a request that is
 * known, under that request's policy and time limits. No request is sent twice.
 */
export class Http1Connection {
  /** The request under way. */
  exchange: Exchange | undefined;
  readonly #response = new ResponseReader();
  #socket: Socket | undefined;
  #remoteIp = '';
  #openedAt = 0;
  #isSent = false;
  #isLast = false;
  #idleUntil = 0;
  #idleTimer: { timer: Timer; endsAt: number } | undefined;

  constructor(
    readonly tools: DialTools,
    readonly maxAgeMs: number,
  ) {}

  send(exchange: Exchange): void {
    this.exchange = exchange;
    exchange.connection = this;
    const socket = this.#socket;
    if (socket === undefined) return this.#open(exchange);
    exchange.remoteIp = this.#remoteIp;
    socket.ref();
    // The peer may have hung up and we not have looked yet: nothing is sent before we have.
    setImmediate(sendUnlessClosed, this, exchange);
  }

  /** The moment after which a connection that was kept is known to be there still. */
  sendIfOpen(exchange: Exchange): void {
    // It gave up meanwhile, and another may be in its place.
    if (this.exchange !== exchange) return;
    const socket = this.#socket;
    if (socket === undefined) return this.#open(exchange);
    // The last request on an old connection: the next one resolves the name anew.
    const isOld = this.tools.clock.monotonic() - this.#openedAt >= this.maxAgeMs;
    this.#send(socket, exchange, isOld);
  }

  /** Lets go of a request that has settled, so that an idle line does not keep its response. */
  release(): void {
    this.exchange = undefined;
    this.#isSent = false;
    this.#socket?.unref();
  }

  /** Closes the connection, if there is one. */
  close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#response.forget();
    this.#stopIdleTimer();
    socket?.destroy();
  }

  #open(exchange: Exchange): void {
    exchange.remoteIp = undefined;
    const { tools } = this;
    exchange.dial = new Dial(exchange.params, tools, this.#arrived, (result) => {
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
    socket.on('error', (error) => this.#closed(socket, error));
    socket.on('end', () => this.#closed(socket));
    socket.on('close', () => this.#closed(socket));
  }

  #send(socket: Socket, exchange: Exchange, isLast: boolean): void {
    const { request } = exchange.params;
    this.#isLast = isLast || endsConnection(request);
    this.#isSent = true;
    this.#response.begin(exchange, request.method === 'HEAD');
    writeRequest(socket, request, this.#isLast);
  }

  readonly #arrived = (bytes: Buffer): void => {
    const { exchange } = this;
    if (exchange === undefined || !this.#isSent) return this.close();
    let reading: ReadResult;
    try {
      reading = this.#response.read(bytes);
    } catch (error) {
      this.close();
      return exchange.failed(failureOf(error));
    }
    if (reading === 'more') return;
    // A connection that is not done with the request is not done with its body either.
    if (reading === 'unwanted' || !this.#canReuse()) this.close();
    exchange.completed(reading === 'unwanted');
  };

  #canReuse(): boolean {
    const { keepsAlive, keepAliveMs } = this.#response;
    if (this.#isLast || !keepsAlive || this.#socket?.writableLength !== 0) return false;
    const idleMs =
      keepAliveMs === undefined ? defaultIdleMs : Math.min(keepAliveMs - idleMarginMs, maxIdleMs);
    if (idleMs <= 0) return false;
    this.#idleUntil = this.tools.clock.monotonic() + idleMs;
    // One timer for all the requests of some seconds, as long as it does not come too late.
    if (this.#idleTimer === undefined || this.#idleTimer.endsAt > this.#idleUntil)
      this.#startIdleTimer(idleMs);
    return true;
  }

  #startIdleTimer(delayMs: number): void {
    const { clock } = this.tools;
    this.#stopIdleTimer();
    const timer = clock.after(delayMs, () => {
      this.#idleTimer = undefined;
      // Whoever uses it looks to it.
      if (this.exchange !== undefined) return;
      const leftMs = this.#idleUntil - clock.monotonic();
      if (leftMs > 0) this.#startIdleTimer(leftMs);
      else this.close();
    });
    this.#idleTimer = { timer, endsAt: clock.monotonic() + delayMs };
  }

  #stopIdleTimer(): void {
    this.#idleTimer?.timer.cancel();
    this.#idleTimer = undefined;
  }

  #closed(socket: Socket, error?: Error): void {
    if (this.#socket !== socket) return;
    const { exchange } = this;
    // Whoever closes with a part of the request unread resets, however whole the response is.
    const isHangUp = error === undefined || systemCode(error) === 'ECONNRESET';
    const isWhole = isHangUp && this.#response.ended();
    this.close();
    if (exchange === undefined || !this.#isSent) return;
    if (isWhole) exchange.completed(false);
    else exchange.failed(error === undefined ? prematureClose() : failureOf(error));
  }
}

function sendUnlessClosed(connection: Http1Connection, exchange: Exchange): void {
  connection.sendIfOpen(exchange);
}
