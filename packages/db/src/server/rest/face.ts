import type { Clock } from '@millrace/kit/clock';
import {
  MalformedRequest,
  PeerMemoryExceeded,
  peerMemoryRetryMs,
  type Dispatcher,
  type Exchange,
  type Steps,
} from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import type { Socket } from 'node:net';
import { refuse } from '../../engine/refusal.js';
import type { Gate } from '../access/gate.js';
import type { Calls } from '../calls/calls.js';
import type { CallScope } from '../calls/scope.js';
import { TurnQueue } from '../calls/turn-queue.js';
import type { StreamingRpc, UnaryRpc } from '../service/call.js';
import { statusOf, type CallStatus } from '../status.js';
import { checkTimeout, deadlineOf, untilAborted } from './deadline.js';
import { statusHeaders, statusJson } from './errors.js';
import type { Fields, Operation } from './operation.js';
import { checkOrigin } from './origin.js';
import type { Pages } from './pages.js';
import { ResponseWriter } from './response-writer.js';
import { noSuchRoute, restDispatcher, type RestEndpoint } from './routes.js';

export interface RestParts {
  calls: Calls;
  clock: Clock;
  gate: Gate;
  log: Log;
  pages: Pages;
}

/** The REST interface: every binding of the contract, and the pages beside them. */
export class RestFace implements Steps<RestEndpoint> {
  readonly protectedPrefixes = [];
  /** The port that the server listens at, known once it does. */
  port = 0;
  readonly #dispatcher: Dispatcher<RestEndpoint>;
  readonly #requests = new TurnQueue<Exchange>((exchange) => this.#dispatcher.handle(exchange));

  constructor(private readonly parts: RestParts) {
    this.#dispatcher = restDispatcher(this, parts.pages.all);
  }

  /** Answers one request. Never throws. */
  handle(exchange: Exchange): void {
    this.#requests.push(exchange);
  }

  admit(exchange: Exchange): void {
    if (!this.parts.gate.needsKeys) checkOrigin(exchange, this.port);
  }

  /** Opens a call and finds out who makes it. Pages are for everybody, or look for themselves. */
  identify(exchange: Exchange, endpoint: RestEndpoint | undefined): void {
    const operation = endpoint?.operation;
    if (!operation) return;
    const { calls, clock } = this.parts;
    const { headers, peer } = exchange;
    const deadline = deadlineOf(headers, clock);
    const scope = calls.open(operation.route.rpc, 'rest', addressOf(peer.socket), deadline);
    const call: RestCall = { operation, scope, exchange, isReceiving: true };
    exchange.context = call;
    exchange.onClose = (isComplete) => {
      if (isComplete) return;
      scope.abort(callerLeft());
      if (call.isReceiving) this.#fail(call, callerLeft());
    };
    // It may have left while the request waited for its turn.
    if (exchange.isClosed) throw callerLeft();
    checkTimeout(headers);
    const { 'x-api-key': apiKey, authorization } = headers;
    calls.identify(scope, { apiKey: apiKey?.toString(), authorization });
  }

  serve(
    exchange: Exchange,
    { page }: RestEndpoint,
    body: Buffer | 'too large' | undefined,
  ): Promise<void> | void {
    if (page) return page(exchange);
    const call = exchange.context as RestCall;
    call.isReceiving = false;
    this.#carryOut(call, call.operation.read(exchange, body!));
  }

  notFound({ path }: Exchange): Error {
    return noSuchRoute(path);
  }

  methodNotAllowed(exchange: Exchange, allow: string): Error {
    exchange.setHead(['allow', allow]);
    const { method } = exchange;
    return refuse('NO_SUCH_METHOD', `This path does not take ${method}; it takes ${allow}.`);
  }

  fail(exchange: Exchange, error: unknown): void {
    const meant = meaningOf(error);
    const call = exchange.context as RestCall | undefined;
    if (call) return this.#fail(call, meant);
    const status = statusOf(meant);
    if (status.isBug) this.parts.log.error({ err: error }, 'a request failed');
    if (exchange.response.headersSent) exchange.response.destroy();
    else sendStatus(exchange, status);
  }

  /** Never throws. What is there at once is answered at once. */
  #carryOut(call: RestCall, message: Fields): void {
    const { scope, operation } = call;
    try {
      const work = operation.forms ? this.#stream(call, message) : this.#unary(call, message);
      if (!work) return this.parts.calls.close(scope);
      const { clock } = this.parts;
      const done = scope.deadline === undefined ? work : untilAborted(scope, clock, work);
      const close = () => this.parts.calls.close(scope);
      done.then(close).catch((error: unknown) => this.#fail(call, meaningOf(error)));
    } catch (error) {
      this.#fail(call, meaningOf(error));
    }
  }

  #unary(call: RestCall, message: Fields): Promise<void> | undefined {
    const { scope, operation } = call;
    const rpc = operation.route.rpc as UnaryRpc;
    const answer = this.parts.calls.unary(scope, rpc, message);
    if (answer instanceof Promise) return answer.then((later) => show(call, later));
    show(call, answer);
    return undefined;
  }

  async #stream({ operation, scope, exchange }: RestCall, message: Fields): Promise<void> {
    const rpc = operation.route.rpc as StreamingRpc;
    const form = operation.chooseForm(exchange.request);
    const writer = new ResponseWriter(exchange, scope.signal);
    await this.parts.calls.stream(scope, rpc, message, (messages) =>
      form.deliver(messages, writer),
    );
  }

  /** Ends the call, and tells the caller what went wrong as far as there is still a way to. */
  #fail({ operation, scope, exchange }: RestCall, error: unknown): void {
    const { calls } = this.parts;
    const { response } = exchange;
    const status = calls.explain(scope, error);
    calls.close(scope, status);
    if (response.writableEnded || response.destroyed) return;
    if (!response.headersSent) return sendStatus(exchange, status);
    const failure = operation.forms && operation.chooseForm(exchange.request).failure;
    if (failure) response.end(failure(statusJson(status)));
    // The caller must not take half an answer for a whole one.
    else response.destroy();
  }
}

/** What is done for one request. */
interface RestCall {
  readonly operation: Operation;
  readonly scope: CallScope;
  readonly exchange: Exchange;
  /** True until the body is complete. */
  isReceiving: boolean;
}

const address = Symbol('address');

/** Kept by the connection, which makes many calls. */
function addressOf(socket: Socket & { [address]?: string }): string {
  return (socket[address] ??= `${socket.remoteAddress}:${socket.remotePort}`);
}

function show({ operation, scope, exchange }: RestCall, answer: unknown): void {
  if (!scope.isOver) sendJson(exchange, 200, operation.write(answer), []);
}

function sendStatus(exchange: Exchange, status: CallStatus): void {
  const headers = Object.entries(statusHeaders(status)).flat();
  sendJson(exchange, status.status, JSON.stringify(statusJson(status)), headers);
}

function sendJson(
  exchange: Exchange,
  status: number,
  text: string,
  headers: readonly string[],
): void {
  const common = ['content-type', 'application/json', 'cache-control', 'no-store'];
  exchange.send(status, [...common, ...headers], text);
}

/** What an error of the HTTP core means in the terms of the contract. */
function meaningOf(error: unknown): unknown {
  if (error instanceof MalformedRequest) return refuse('BAD_REQUEST', `${error.message}.`);
  if (!(error instanceof PeerMemoryExceeded)) return error;
  const retryAfterMs = peerMemoryRetryMs;
  return refuse('OVERLOADED', error.message, undefined, { retryAfterMs });
}

function callerLeft(): Error {
  return refuse('CANCELLED', 'The caller gave the call up.');
}
