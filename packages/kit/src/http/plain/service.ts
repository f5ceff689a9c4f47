import { STATUS_CODES, validateHeaderValue } from 'node:http';
import type { AnswerCheck } from '../answer-check.js';
import { textOf } from '../answer.js';
import { problemMediaType } from '../app.js';
import type { AppCore } from '../app.js';
import { operationFor } from '../bound.js';
import type { BoundOperation, PathEntry } from '../bound.js';
import { goneStatus } from '../exchange.js';
import type { Exchange } from '../exchange.js';
import type { AnswerHeaders, UntypedAnswer } from '../handlers.js';
import type { UntypedOptions } from '../options.js';
import { perform } from '../perform.js';
import type { PathRouter } from '../router.js';
import { PlainCall } from './call.js';
import type { PlainAsk, PlainConnection, PlainService } from './connection.js';
import type { PlainHead } from './head.js';

export interface PlainRoute {
  readonly bound: BoundOperation;
  readonly params: Readonly<Record<string, string>>;
}

export interface PlainParts {
  app: AppCore;
  router: PathRouter<PathEntry>;
  answers: AnswerCheck | undefined;
  options: UntypedOptions;
  keepAliveTimeoutMs: number;
}

type Connection = PlainConnection<PlainRoute>;
type Ask = PlainAsk<PlainRoute>;

const noQuery: Readonly<Record<string, never>> = Object.freeze({});

/** Walks plain requests through the same checks as the dispatcher, in the same order. */
export class PlainOperations implements PlainService<PlainRoute> {
  readonly #operations: ReadonlySet<string>;
  readonly #keepAlive: string;
  #dateSecond = -1;
  #date = '';

  constructor(private readonly parts: PlainParts) {
    this.#operations = new Set(parts.options.plainOperations);
    const seconds = Math.floor(parts.keepAliveTimeoutMs / 1000);
    this.#keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n\r\n`;
  }

  routeOf(head: PlainHead): PlainRoute | undefined {
    const match = this.parts.router.find(head.path);
    const bound = match && operationFor(match.leaf, head.method);
    if (!bound || !this.#operations.has(bound.operation.id)) return undefined;
    // A body that nobody reads, or that is too large, has rules of its own.
    if (head.bodyBytes > (bound.body?.limitBytes ?? 0)) return undefined;
    return { bound, params: match.params };
  }

  serve(connection: Connection, ask: Ask, bytes: Buffer): void {
    const { app } = this.parts;
    const { head, route } = ask;
    const exchange = app.ledger.begin(app.requestId(head.headers), head.method);
    exchange.operation = route.bound.operation;
    connection.exchange = exchange;
    void this.#walk(connection, exchange, ask, bytes);
  }

  abandoned(exchange: Exchange): void {
    this.#close(exchange, goneStatus);
    exchange.leaving?.abort(new Error('The client went away'));
  }

  async #walk(connection: Connection, exchange: Exchange, ask: Ask, bytes: Buffer): Promise<void> {
    const { bound, params } = ask.route;
    const { operation } = bound;
    const { headers } = ask.head;
    try {
      const { options, app, answers } = this.parts;
      const known = this.#principal(connection, ask);
      const principal = known instanceof Promise ? await known : known;
      exchange.principal = principal;
      exchange.principalName = options.principalName?.(principal);
      exchange.enteredBytes = bytes.length;
      options.load?.enter(bytes.length);
      if (!operation.isPublic) {
        const allowed = options.authorize?.(principal, operation, params);
        if (allowed instanceof Promise) await allowed;
      }
      const call = new PlainCall(app, exchange, operation, principal);
      const outcome = perform(bound, call, { params, query: noQuery, headers, bytes });
      const answer = outcome instanceof Promise ? await outcome : outcome;
      if ('takenOver' in answer || answer.content !== undefined) {
        throw new Error(`${operation.id} answers with a stream, so it cannot be plain`);
      }
      answers?.seeAnswer(operation, answer);
      this.#send(connection, exchange, answer);
    } catch (error) {
      this.#fail(connection, exchange, error);
    }
  }

  #principal({ socket }: Connection, { head, route }: Ask): unknown {
    const { options } = this.parts;
    if (route.bound.operation.isPublic) return options.anonymous;
    return options.authenticate({ headers: head.headers, ip: socket.remoteAddress ?? '' });
  }

  #send(connection: Connection, exchange: Exchange, { status, body, headers }: UntypedAnswer) {
    // What can fail comes first: an error must not leave behind half an answer.
    const text = textOf(body);
    const lines = headers ? linesOf(headers) : '';
    this.#write(connection, exchange, { status, lines, mediaType: 'application/json', text });
  }

  #fail(connection: Connection, exchange: Exchange, error: unknown): void {
    const { app, answers } = this.parts;
    try {
      const { status, headers, body, code } = app.problemOf(error, exchange.id);
      const lines = linesOf(headers);
      const text = JSON.stringify(body);
      this.#write(connection, exchange, { status, lines, mediaType: problemMediaType, text });
      answers?.seeProblem(exchange.operation!, body, code);
    } catch (bug) {
      app.world.log.error({ err: bug, request_id: exchange.id }, 'a problem could not be sent');
      connection.socket.destroy();
    }
  }

  #write(
    connection: Connection,
    exchange: Exchange,
    { status, lines, mediaType, text }: PlainAnswer,
  ): void {
    // The client went, and that was noted.
    if (connection.exchange !== exchange) return;
    const isLast = this.parts.app.ending.aborted;
    const bytes = text === undefined ? 0 : Buffer.byteLength(text);
    const content =
      text === undefined
        ? status === 204
          ? ''
          : 'content-length: 0\r\n'
        : `content-type: ${mediaType}\r\ncontent-length: ${bytes}\r\n`;
    connection.answer(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nx-request-id: ${exchange.id}\r\n${lines}` +
        `${content}Date: ${this.#dateText()}\r\n` +
        (isLast ? 'Connection: close\r\n\r\n' : this.#keepAlive) +
        (text ?? ''),
      text === undefined || bytes === text.length,
      isLast,
    );
    this.#close(exchange, status);
  }

  #close(exchange: Exchange, status: number): void {
    const { app, options } = this.parts;
    app.ledger.close(exchange, status);
    if (exchange.enteredBytes !== undefined) options.load?.leave(exchange.enteredBytes);
  }

  #dateText(): string {
    const now = this.parts.app.world.clock.now();
    const second = Math.floor(now / 1000);
    if (second !== this.#dateSecond) {
      this.#dateSecond = second;
      this.#date = new Date(now).toUTCString();
    }
    return this.#date;
  }
}

interface PlainAnswer {
  status: number;
  lines: string;
  mediaType: string;
  /** Undefined: no body. */
  text: string | undefined;
}

function linesOf(headers: AnswerHeaders): string {
  let lines = '';
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) continue;
    validateHeaderValue(name, String(value));
    lines += `${name.toLowerCase()}: ${value}\r\n`;
  }
  return lines;
}
