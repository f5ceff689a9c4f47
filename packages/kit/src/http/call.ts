import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServerResponse } from 'node:http';
import type { Log } from '../log.js';
import type { AppCore } from './app.js';
import type { BoundOperation } from './bound.js';
import type { OperationDescription } from './document.js';

/** A `Call` whose costlier parts are made only when a handler asks for them. */
export class LiveCall {
  readonly #app: AppCore;
  #log: Log | undefined;
  #signal: AbortSignal | undefined;
  readonly operation: OperationDescription;
  readonly principal: unknown;
  params: unknown;
  query: unknown;
  headers: unknown;
  body: unknown;

  constructor(
    app: AppCore,
    readonly bound: BoundOperation,
    readonly request: FastifyRequest,
    readonly reply: FastifyReply,
  ) {
    this.#app = app;
    this.operation = bound.operation;
    this.principal = request.exchange.principal;
  }

  get log(): Log {
    return (this.#log ??= this.#app.world.log.child({ request_id: this.request.id }));
  }

  get ending(): AbortSignal {
    return this.#app.ending;
  }

  takeOver(): ServerResponse {
    const { raw } = this.reply.hijack();
    // A hijacked reply does not send the headers that were set on it so far.
    for (const [name, value] of Object.entries(this.reply.getHeaders())) {
      if (value !== undefined) raw.setHeader(name, value);
    }
    if (this.#app.ending.aborted) raw.setHeader('connection', 'close');
    return raw;
  }

  get signal(): AbortSignal {
    return (this.#signal ??= signalOf(this.reply));
  }
}

function signalOf(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const { raw } = reply;
  const onClose = () => {
    if (!raw.writableFinished) controller.abort(new Error('The client went away'));
  };
  if (raw.destroyed) onClose();
  else raw.on('close', onClose);
  return controller.signal;
}
