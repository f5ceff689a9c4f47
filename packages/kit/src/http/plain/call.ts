import type { Log } from '../../log.js';
import type { AppCore } from '../app.js';
import type { OperationDescription } from '../document.js';
import type { Exchange } from '../exchange.js';

/** A `Call` without Fastify's request and Node's response. */
export class PlainCall {
  params: unknown;
  query: unknown;
  headers: unknown;
  body: unknown;

  constructor(
    private readonly app: AppCore,
    private readonly exchange: Exchange,
    readonly operation: OperationDescription,
    readonly principal: unknown,
  ) {}

  get log(): Log {
    return this.app.world.log.child({ request_id: this.exchange.id });
  }

  get ending(): AbortSignal {
    return this.app.ending;
  }

  get request(): never {
    throw this.#lacks('request');
  }

  get signal(): AbortSignal {
    return (this.exchange.leaving ??= new AbortController()).signal;
  }

  takeOver(): never {
    throw this.#lacks('takeOver');
  }

  #lacks(what: string): Error {
    return new Error(`${this.operation.id} needs call.${what}, so it cannot be a plain operation`);
  }
}
