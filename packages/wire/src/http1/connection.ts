import type { Socket } from 'node:net';
import type { Timer } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import { ResponseReader, type ReadResult } from './response-reader.js';
import { Dial, type DialTools } from './dial.js';
import type { Exchange } from './exchange.js';
import { prematureClose, Failure, failureOf } from '../base/failure.js';
import { endsConnection, writeRequest } from './request-bytes.js';

/** Idle timeout when the server sends no Keep-Alive timeout. */
const defaultIdleMs = 4_000;
const maxIdleMs = 600_000;
/** Closes this much before the server's timeout, so that no request races with its close. */
const idleMarginMs = 2_000;

/**
 * A connection to one origin, opened for a request and reused for later ones, one request at a
 * time. It is opened under the policy and the timeouts of that request. Requests are never retried.
 */
export class Http1Connection {
  /** The request in flight. */
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
    // The peer may have closed already: a pending close event is processed first.
    setImmediate(sendUnlessClosed, this, exchange);
  }

  /** Sends on the reused connection, or opens a new one when it has closed meanwhile. */
  sendIfOpen(exchange: Exchange): void {
    // The exchange may have settled meanwhile.
    if (this.exchange !== exchange) return;
    const socket = this.#socket;
    if (socket === undefined) return this.#open(exchange);
    // An old connection closes after this request, so that the name is resolved again.
    const isOld = this.tools.clock.monotonic() - this.#openedAt >= this.maxAgeMs;
    this.#send(socket, exchange, isOld);
  }

  /** Detaches a settled request, so that an idle connection does not hold its response. */
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
    // A connection whose request is not fully written cannot be reused.
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
    // One timer serves many requests, unless it would fire too late.
    if (this.#idleTimer === undefined || this.#idleTimer.endsAt > this.#idleUntil)
      this.#startIdleTimer(idleMs);
    return true;
  }

  #startIdleTimer(delayMs: number): void {
    const { clock } = this.tools;
    this.#stopIdleTimer();
    const timer = clock.after(delayMs, () => {
      this.#idleTimer = undefined;
      // In use again; the timer restarts after the response.
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
    // A server that closes with unread request bytes resets, even after a complete response.
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
