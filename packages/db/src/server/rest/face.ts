import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { dbRoutes, type DbRoute } from '@millrace/contract/db';
import { refuse } from '../../engine/refusal.js';
import type { Gate } from '../access/gate.js';
import type { Calls } from '../calls/calls.js';
import type { CallScope } from '../calls/scope.js';
import { TurnQueue } from '../calls/turn-queue.js';
import { stallMsOf } from '../limits/stalls.js';
import type { StreamingRpc, UnaryRpc } from '../service/call.js';
import { statusOf } from '../status.js';
import { checkTimeout, deadlineOf, untilAborted } from './deadline.js';
import { statusHeaders, statusJson } from './errors.js';
import { Operation, type Fields } from './operation.js';
import { checkOrigin } from './origin.js';
import type { Pages } from './pages.js';
import { ResponseWriter } from './response-writer.js';
import { noSuchRoute, RouteTable, type FoundRoute } from './routes.js';

export interface RestParts {
  calls: Calls;
  clock: Clock;
  gate: Gate;
  log: Log;
  pages: Pages;
}

/** The REST face: every binding of the contract, and the pages beside them. */
export class RestFace {
  readonly #routes = new RouteTable();
  readonly #operations = new Map<DbRoute, Operation>(
    dbRoutes.map((route) => [route, new Operation(route)]),
  );

  constructor(private readonly parts: RestParts) {}

  readonly #requests = new TurnQueue<IncomingMessage>((request) => this.#begin(request));

  /** Answers one request. Never throws. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    (request as HeldRequest)[responseOf] = response;
    this.#requests.push(request);
  };

  #begin(request: IncomingMessage): void {
    const response = (request as HeldRequest)[responseOf];
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    const path = mark === -1 ? url : url.slice(0, mark);
    try {
      if (this.parts.calls.isDraining) response.setHeader('connection', 'close');
      const page = this.parts.pages.find(path);
      if (page) return this.#page(page, request, response);
      const found = this.#routes.find(path);
      if (!found) throw noSuchRoute(path);
      const route = this.#routeFor(request.method, found);
      if (!route) throw noSuchMethod(request.method, response, this.#methodsOf(found));
      const query = mark === -1 ? '' : url.slice(mark + 1);
      this.#call(this.#operations.get(route)!, found.fields, query, request, response);
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  #page(
    page: NonNullable<ReturnType<Pages['find']>>,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw noSuchMethod(request.method, response, ['GET', 'HEAD']);
    }
    Promise.resolve(page(request, response)).catch((error: unknown) =>
      this.#refuse(response, error),
    );
  }

  #call(
    operation: Operation,
    path: Readonly<Record<string, string>>,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const { calls, clock, gate } = this.parts;
    const { headers } = request;
    const deadline = deadlineOf(headers, clock);
    const scope = calls.open(operation.route.rpc, 'rest', peerOf(request.socket), deadline);
    const call: RestCall = { operation, scope, request, response };
    response.on('close', () => {
      if (!response.writableFinished) scope.abort(callerLeft());
    });
    // It may have left while the request waited for its turn.
    if (response.destroyed) scope.abort(callerLeft());
    try {
      if (!gate.needsKeys) checkOrigin(headers);
      checkTimeout(headers);
      const { 'x-api-key': apiKey, authorization } = headers;
      calls.identify(scope, { apiKey: apiKey?.toString(), authorization });
      const read = operation.read(request, path, query);
      if (!(read instanceof Promise)) this.#carryOut(call, read);
      else {
        const go = (message: Fields) => this.#carryOut(call, message);
        read.then(go, (error: unknown) => this.#fail(call, error));
      }
    } catch (error) {
      this.#fail(call, error);
    }
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
      done.then(close, (error: unknown) => this.#fail(call, error));
    } catch (error) {
      this.#fail(call, error);
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

  async #stream(call: RestCall, message: Fields): Promise<void> {
    const { operation, scope, request, response } = call;
    const { calls, clock } = this.parts;
    const rpc = operation.route.rpc as StreamingRpc;
    const form = operation.chooseForm(request);
    const { signal } = scope;
    const writer = new ResponseWriter({ response, clock, signal, stallMs: stallMsOf(rpc) });
    await calls.stream(scope, rpc, message, (messages) => form.deliver(messages, writer));
  }

  /** Ends the call, and tells the caller what went wrong as far as there is still a way to. */
  #fail({ operation, scope, request, response }: RestCall, error: unknown): void {
    const { calls } = this.parts;
    const status = calls.explain(scope, error);
    calls.close(scope, status);
    if (response.writableEnded || response.destroyed) return;
    if (!response.headersSent) {
      sendJson(response, status.status, statusJson(status), statusHeaders(status));
      return;
    }
    const failure = operation.forms && operation.chooseForm(request).failure;
    if (failure) response.end(failure(statusJson(status)));
    // The caller must not take half an answer for a whole one.
    else response.destroy();
  }

  #routeFor(method = '', { methods }: FoundRoute): DbRoute | undefined {
    if (method !== 'HEAD') return methods.get(method);
    // HEAD is a GET whose body Node leaves out. A stream has an end only when the caller leaves.
    const route = methods.get('GET');
    return route && this.#operations.get(route)!.forms ? undefined : route;
  }

  #methodsOf(found: FoundRoute): string[] {
    const known = [...found.methods.keys()];
    return this.#routeFor('HEAD', found) ? [...known, 'HEAD'] : known;
  }

  #refuse(response: ServerResponse, error: unknown): void {
    const status = statusOf(error);
    if (status.isBug) this.parts.log.error({ err: error }, 'a request failed');
    if (response.headersSent) response.destroy();
    else sendJson(response, status.status, statusJson(status), statusHeaders(status));
  }
}

/** What is done for one request. */
interface RestCall {
  readonly operation: Operation;
  readonly scope: CallScope;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const responseOf = Symbol('response');
type HeldRequest = IncomingMessage & { [responseOf]: ServerResponse };

const peer = Symbol('peer');

/** Kept by the connection, which makes many calls. */
function peerOf(socket: Socket & { [peer]?: string }): string {
  return (socket[peer] ??= `${socket.remoteAddress}:${socket.remotePort}`);
}

function show({ operation, scope, response }: RestCall, answer: unknown): void {
  if (!scope.isOver) sendText(response, 200, operation.write(answer), []);
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string>,
): void {
  sendText(response, status, JSON.stringify(body), Object.entries(headers).flat());
}

function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: readonly string[],
): void {
  const length = String(Buffer.byteLength(text));
  // A list, which node writes as it is: names of an object it would look up one by one.
  response.writeHead(status, [
    'content-type',
    'application/json',
    'content-length',
    length,
    'cache-control',
    'no-store',
    ...headers,
  ]);
  response.end(text);
}

function callerLeft(): Error {
  return refuse('CANCELLED', 'The caller gave the call up.');
}

function noSuchMethod(
  method: string | undefined,
  response: ServerResponse,
  allowed: readonly string[],
): Error {
  const known = allowed.join(', ');
  response.setHeader('allow', known);
  return refuse('NO_SUCH_METHOD', `This path does not take ${method}; it takes ${known}.`);
}
