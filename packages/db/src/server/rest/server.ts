import {
  crossSiteHeader,
  hasBody,
  mediaTypeOf,
  shownHeader,
  type Exchange,
  ConnectionsExceeded,
  MalformedRequest,
  PeerMemoryExceeded,
  peerMemoryRetryMs,
  type Dispatcher,
  type Steps,
} from '@millrace/kit/http';
import { refuse } from '@millrace/engine/value/documents';
import { badField } from '../service/records.js';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Socket } from 'node:net';
import type { Authenticator } from '../access/access.js';
import type { Calls, CallScope } from '../calls/calls.js';
import { TurnBytes, TurnQueue } from '../calls/turn-queue.js';
import type { StreamingRpc, UnaryRpc } from '../service/call.js';
import { statusOf, type CallStatus } from '../base/status.js';
import {
  checkTimeout,
  deadlineOf,
  untilAborted,
  statusHeaders,
  statusJson,
  type Fields,
  type Operation,
} from './operation.js';
import { serveBulkLines } from './bulk-lines.js';
import { errorLine, ResponseWriter } from './streams.js';
import type { Pages } from './pages.js';
import { noSuchRoute, restDispatcher, type RestEndpoint } from './routes.js';

/**
 * Protects a server without keys from web pages in a local browser: refuses foreign Host, Origin
 * and Sec-Fetch-Site headers, and, from browsers, bodies that need no CORS preflight (forms, plain
 * text). A client that sends neither Origin nor Sec-Fetch-Site is not a browser; its body is
 * accepted with any Content-Type or none, so that plain `curl -d` keeps working.
 */
function checkOrigin({ headers, request }: Exchange, port: number): void {
  const foreign = crossSiteHeader(headers, { port, needsLoopbackHost: true });
  if (foreign) {
    throw refuse(
      'BAD_REQUEST',
      `The ${foreign.header} ${shownHeader(foreign.value)} is not this machine. A server without ` +
        'keys serves localhost only. Configure a keys_file to serve other hosts.',
    );
  }
  const { origin, 'sec-fetch-site': site, 'content-type': type = 'none' } = headers;
  // Browsers send at least one of these with every cross-site request that has a body.
  const isFromPage = origin !== undefined || site !== undefined;
  if (!isFromPage || !hasBody(request) || mediaTypeOf(type) === 'application/json') return;
  throw badField('Content-Type', `${type.slice(0, 100)} is not supported: send application/json`);
}

interface RestParts {
  calls: Calls;
  clock: Clock;
  authenticator: Authenticator;
  log: Log;
  pages: Pages;
}

const healthPaths = new Set(['/healthz', '/readyz']);

/** The REST API: all HTTP bindings of the contract, plus health, metrics and docs pages. */
export class RestServer implements Steps<RestEndpoint> {
  readonly protectedPrefixes = [];
  /** The port, known once the server listens. */
  port = 0;
  readonly #dispatcher: Dispatcher<RestEndpoint>;
  readonly #requests: TurnQueue<Exchange>;
  /** Calls that wait because many bytes were encoded in this turn. */
  readonly #received: TurnQueue<ReceivedCall>;
  readonly #encoded = new TurnBytes();

  constructor(private readonly parts: RestParts) {
    const { calls, clock, pages } = parts;
    this.#dispatcher = restDispatcher(this, pages.all);
    this.#requests = new TurnQueue((exchange) => this.#dispatcher.handle(exchange), {
      clock,
      onDelay: (delayMs) => calls.queued(delayMs),
    });
    // Calls in this queue are admitted already, so that their delay does not count for shedding.
    const received = { clock, onDelay: () => undefined };
    this.#received = new TurnQueue((call) => this.#start(call), received);
  }

  /** Handles one request. Never throws. Health checks do not wait behind calls. */
  handle(exchange: Exchange): void {
    if (healthPaths.has(exchange.path)) this.#dispatcher.handle(exchange);
    else this.#requests.push(exchange);
  }

  admit(exchange: Exchange): void {
    if (!this.parts.authenticator.needsKeys) checkOrigin(exchange, this.port);
  }

  /** Opens a call and authenticates its caller, before the body is read. Pages are public. */
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
    // The caller may have disconnected while the request was queued.
    if (exchange.isClosed) throw callerLeft();
    checkTimeout(headers);
    const { 'x-api-key': apiKey, authorization } = headers;
    calls.identify(scope, { apiKey: apiKey?.toString(), authorization });
    // Without keys all callers are one.
    if (this.parts.authenticator.needsKeys) exchange.principalName = scope.principal.id;
  }

  serve(
    exchange: Exchange,
    { page }: RestEndpoint,
    body: Buffer | 'too large' | undefined,
  ): Promise<void> | void {
    if (page) return page(exchange);
    const received = { call: exchange.context as RestCall, body };
    if (this.#encoded.isSpent) this.#received.push(received);
    else this.#start(received);
  }

  #start({ call, body }: ReceivedCall): void {
    // The caller may have disconnected while the call was queued.
    if (call.scope.isEnded) return;
    call.isReceiving = false;
    const { exchange, operation } = call;
    try {
      if (exchange.isBodyStreamed) this.#serveLines(call);
      else this.#carryOut(call, operation.read(exchange, body!));
    } catch (error) {
      this.#fail(call, meaningOf(error));
    }
  }

  notFound({ path }: Exchange): Error {
    return noSuchRoute(path);
  }

  methodNotAllowed(exchange: Exchange, allow: string): Error {
    exchange.setHead(['allow', allow]);
    const { method } = exchange;
    return refuse('NO_SUCH_METHOD', `This path does not support ${method}. Use ${allow}.`);
  }

  fail(exchange: Exchange, error: unknown): void {
    const meant = meaningOf(error);
    const call = exchange.context as RestCall | undefined;
    if (call) return this.#fail(call, meant);
    const status = statusOf(meant);
    if (status.isBug) this.parts.log.error({ err: error }, 'request failed');
    if (exchange.response.headersSent) exchange.response.destroy();
    else sendStatus(exchange, status);
  }

  /** Runs the call. Never throws. Synchronous results are sent synchronously. */
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

  #serveLines(call: RestCall): void {
    const { calls } = this.parts;
    serveBulkLines(calls, call.scope, call.exchange).then(
      () => calls.close(call.scope),
      (error: unknown) => this.#fail(call, meaningOf(error)),
    );
  }

  #unary(call: RestCall, message: Fields): Promise<void> | undefined {
    const { scope, operation } = call;
    const rpc = operation.route.rpc as UnaryRpc;
    const answer = this.parts.calls.unary(scope, rpc, message);
    if (answer instanceof Promise) return answer.then((later) => this.#show(call, later));
    this.#show(call, answer);
    return undefined;
  }

  #show({ operation, scope, exchange }: RestCall, answer: unknown): void {
    if (scope.isEnded) return;
    const text = operation.write(answer);
    this.#encoded.add(text.length);
    exchange.send(200, jsonHeaders, text);
  }

  async #stream({ operation, scope, exchange }: RestCall, message: Fields): Promise<void> {
    const rpc = operation.route.rpc as StreamingRpc;
    const form = operation.chooseForm(exchange.request);
    scope.recordWriter = form.recordWriter;
    const writer = new ResponseWriter(exchange, scope);
    await this.parts.calls.stream(scope, rpc, message, (messages) =>
      form.deliver(messages, writer),
    );
  }

  /** Ends the call and sends the error if the response is still open. */
  #fail({ operation, scope, exchange }: RestCall, error: unknown): void {
    const { calls } = this.parts;
    const { response } = exchange;
    const status = calls.explain(scope, error);
    calls.close(scope, status);
    if (response.writableEnded || response.destroyed) return;
    if (!response.headersSent) return sendStatus(exchange, status);
    const failure = exchange.isBodyStreamed
      ? errorLine
      : operation.forms && operation.chooseForm(exchange.request).failure;
    if (failure) response.end(failure(statusJson(status)));
    // Destroys the response, so that the caller cannot take it for a complete one.
    else response.destroy();
  }
}

/** State of one request. */
interface RestCall {
  readonly operation: Operation;
  readonly scope: CallScope;
  readonly exchange: Exchange;
  /** True until the call is carried out. */
  isReceiving: boolean;
}

interface ReceivedCall {
  readonly call: RestCall;
  readonly body: Buffer | 'too large' | undefined;
}

const address = Symbol('address');

/** Cached on the socket, which is used for many calls. */
function addressOf(socket: Socket & { [address]?: string }): string {
  return (socket[address] ??= `${socket.remoteAddress}:${socket.remotePort}`);
}

const jsonHeaders = ['content-type', 'application/json', 'cache-control', 'no-store'];

function sendStatus(exchange: Exchange, status: CallStatus): void {
  const headers = Object.entries(statusHeaders(status)).flat();
  exchange.send(status.status, [...jsonHeaders, ...headers], JSON.stringify(statusJson(status)));
}

/** Maps errors of the HTTP core to refusals of the contract. */
function meaningOf(error: unknown): unknown {
  if (error instanceof MalformedRequest) return refuse('BAD_REQUEST', `${error.message}.`);
  const retryAfterMs = peerMemoryRetryMs;
  if (error instanceof ConnectionsExceeded) {
    return refuse('CONNECTION_LIMIT', error.message, undefined, { retryAfterMs });
  }
  if (!(error instanceof PeerMemoryExceeded)) return error;
  return refuse('OVERLOADED', error.message, undefined, { retryAfterMs });
}

function callerLeft(): Error {
  return refuse('CANCELLED', 'The caller cancelled the call.');
}
