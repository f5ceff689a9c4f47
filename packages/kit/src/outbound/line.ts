import type { Socket } from 'node:net';
import type { Client, Dispatcher } from 'undici';
// The client alone: with the rest of undici, which nobody here uses, it takes three times as long
// to load, and every server and half of the commands would wait for that.
import NewClient from 'undici/lib/dispatcher/client.js';
import { Dial, type DialTools } from './dial.js';
import type { Exchange } from './exchange.js';
import { Failure } from './outcome.js';

type Opened = (...result: [Error, null] | [null, Socket]) => void;

/**
 * One connection at a time to one origin, opened when there is a request for it and kept between
 * requests. It carries one request at a time, so each connection is opened for a request that is
 * known, under that request's policy and time limits.
 */
export class Line {
  /** The request under way. */
  exchange: Exchange | undefined;
  readonly #client: Client;
  #socket: Socket | undefined;
  #remoteIp: string | undefined;
  #openedAt = 0;

  constructor(
    origin: string,
    readonly tools: DialTools,
    readonly maxAgeMs: number,
  ) {
    this.#client = new NewClient(origin, {
      pipelining: 1,
      // The exchange has one deadline for everything, more exact than undici's one-second ticks.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (_, opened) => this.#open(opened),
    });
  }

  carry(exchange: Exchange, options: Dispatcher.DispatchOptions): void {
    this.exchange = exchange;
    exchange.line = this;
    const isOpen = this.#socket !== undefined && !this.#socket.destroyed;
    exchange.remoteIp = isOpen ? this.#remoteIp : undefined;
    // The last request on this connection: the next one resolves the name anew.
    const isOld = isOpen && this.tools.clock.monotonic() - this.#openedAt >= this.maxAgeMs;
    this.#client.dispatch(isOld ? { ...options, reset: true } : options, exchange);
  }

  /** Lets go of a request that has settled, so that an idle line does not keep its response. */
  rest(): void {
    this.exchange = undefined;
  }

  async destroy(): Promise<void> {
    await this.#client.destroy();
  }

  #open(opened: Opened): void {
    const { exchange } = this;
    if (exchange === undefined || exchange.isSettled) {
      return opened(new Failure('ABORTED', 'Nobody waits for this connection any more'), null);
    }
    exchange.remoteIp = undefined;
    exchange.dial = new Dial(exchange.ask, this.tools, (result) => {
      exchange.dial = undefined;
      if (result instanceof Failure) return opened(result, null);
      this.#socket = result.socket;
      this.#remoteIp = result.remoteIp;
      this.#openedAt = this.tools.clock.monotonic();
      exchange.remoteIp = result.remoteIp;
      opened(null, result.socket);
    });
  }
}
