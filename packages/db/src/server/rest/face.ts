import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { dbRoutes, type DbRoute } from '@millrace/contract/db';
import { refuse } from '../../engine/refusal.js';
import type { Gate } from '../access/gate.js';
import type { Calls } from '../calls/calls.js';
import type { CallScope } from '../calls/scope.js';
import { stallMsOf } from '../limits/stalls.js';
import type { StreamingRpc, UnaryRpc } from '../service/call.js';
import { statusOf, type CallStatus } from '../status.js';
import { checkTimeout, deadlineOf, untilAborted } from './deadline.js';
import { statusHeaders, statusJson } from './errors.js';
import { Operation, type Fields } from './operation.js';
import { checkOrigin } from './origin.js';
import type { Pages } from './pages.js';
import { ResponseWriter } from './response-writer.js';
import { noSuchRoute, RouteTable } from './routes.js';

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

  /** Answers one request. Never rejects. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (this.parts.calls.isDraining) response.setHeader('connection', 'close');
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    const path = mark === -1 ? url : url.slice(0, mark);
    try {
      const page = this.parts.pages.find(path);
      if (page) return this.#page(page, request, response);
      const found = this.#routes.find(path);
      if (!found) throw noSuchRoute(path);
      const route = found.methods.get(request.method ?? '');
      if (!route) throw noSuchMethod(request.method, response, found.methods.keys());
      const query = mark === -1 ? '' : url.slice(mark + 1);
      void this.#call(this.#operations.get(route)!, found.fields, query, request, response);
    } catch (error) {
      this.#refuse(response, error);
    }
  };

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

  async #call(
    operation: Operation,
    path: Readonly<Record<string, string>>,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { calls, clock } = this.parts;
    const { socket, headers } = request;
    const { rpc } = operation.route;
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    const deadline = deadlineOf(headers, clock);
    const scope = calls.open(rpc, 'rest', peer, deadline);
    response.on('close', () => {
      if (!response.writableFinished) scope.abort(callerLeft());
    });
    try {
      if (!this.parts.gate.needsKeys) checkOrigin(headers);
      checkTimeout(headers);
      calls.identify(scope, {
        apiKey: headers['x-api-key']?.toString(),
        authorization: headers.authorization,
      });
      const read = operation.read(request, path, query);
      const message = read instanceof Promise ? await read : read;
      const answered = operation.forms
        ? this.#stream(operation, scope, message, request, response)
        : this.#unary(operation, scope, message, response);
      await (deadline === undefined ? answered : untilAborted(scope, clock, answered));
      calls.close(scope);
    } catch (error) {
      const status = calls.explain(scope, error);
      calls.close(scope, status);
      this.#fail(operation, request, response, status);
    }
  }

  async #unary(
    operation: Operation,
    scope: CallScope,
    message: Fields,
    response: ServerResponse,
  ): Promise<void> {
    const rpc = operation.route.rpc as UnaryRpc;
    const answer = await this.parts.calls.unary(scope, rpc, message);
    if (!scope.isOver) send(response, 200, operation.show(answer), {});
  }

  async #stream(
    operation: Operation,
    scope: CallScope,
    message: Fields,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { calls, clock } = this.parts;
    const rpc = operation.route.rpc as StreamingRpc;
    const form = operation.chooseForm(request);
    const { signal } = scope;
    const writer = new ResponseWriter({ response, clock, signal, stallMs: stallMsOf(rpc) });
    await calls.stream(scope, rpc, message, (messages) => form.deliver(messages, writer));
  }

  /** Tells the caller what went wrong, as far as there is still a way to. */
  #fail(
    operation: Operation,
    request: IncomingMessage,
    response: ServerResponse,
    status: CallStatus,
  ): void {
    if (response.writableEnded || response.destroyed) return;
    if (!response.headersSent)
      send(response, status.status, statusJson(status), statusHeaders(status));
    else {
      const failure = operation.forms && operation.chooseForm(request).failure;
      if (failure) response.end(failure(statusJson(status)));
      // The caller must not take half an answer for a whole one.
      else response.destroy();
    }
  }

  #refuse(response: ServerResponse, error: unknown): void {
    const status = statusOf(error);
    if (status.isBug) this.parts.log.error({ err: error }, 'a request failed');
    if (response.headersSent) response.destroy();
    else send(response, status.status, statusJson(status), statusHeaders(status));
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string>,
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...headers,
  });
  response.end(text);
}

function callerLeft(): Error {
  return refuse('CANCELLED', 'The caller gave the call up.');
}

function noSuchMethod(
  method: string | undefined,
  response: ServerResponse,
  allowed: Iterable<string>,
): Error {
  const known = [...allowed].join(', ');
  response.setHeader('allow', known);
  return refuse('NO_SUCH_METHOD', `This path does not take ${method}; it takes ${known}.`);
}
