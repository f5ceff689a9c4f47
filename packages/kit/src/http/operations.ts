import { BodyReader, type BodyParser, hasBody, mediaTypeOf, parseJson } from './body.js';
import type { Endpoint } from './dispatch.js';
import {
  type OperationDescription,
  type ResponseDescription,
  operationsOf,
  type OpenApiDocument,
} from './document.js';
import {
  type UntypedHandler,
  type UntypedOptions,
  type ContentResponse,
  type UntypedResponse,
  type UntypedOutcome,
  CachedJson,
  type BindOptions,
  type RequestLoad,
} from './handlers.js';
import { parameterReader, type ParameterReader } from './parameters.js';
import type { HttpErrorCodes, Problem } from './problem.js';
import { schemasOf, type DocumentSchemas } from './schemas.js';
import { Readable } from 'node:stream';
import type { ServerResponse, IncomingHttpHeaders } from 'node:http';
import { Refusal, type CodeTable } from '../base/errors.js';
import type { Log } from '../base/log.js';
import { AppCore, type AppEndpoint, type Binding, type HttpApp } from './app.js';
import { headerList, type Exchange } from './exchange.js';

/** An operation with its handler and readers, created at startup. */
interface BoundOperation extends Endpoint {
  operation: OperationDescription;
  handler: UntypedHandler;
  path: ParameterReader | undefined;
  query: ParameterReader | undefined;
  headers: ParameterReader | undefined;
  body: BodyReader | undefined;
  checksBody: boolean;
}

interface BindingParts {
  schemas: DocumentSchemas;
  httpErrorCodes: HttpErrorCodes;
  parsers: Readonly<Record<string, BodyParser>>;
  options: UntypedOptions;
}

const defaultBodyLimitBytes = 1_048_576;

function boundOperation(
  operation: OperationDescription,
  { schemas, httpErrorCodes, parsers, options }: BindingParts,
): BoundOperation {
  const handler = options.handlers[operation.id]!;
  const { fillDefaults = false, handlersCheckBodies = false } = options;
  const { invalidCode } = operation;
  const invalidQueryCode = options.invalidQueryCode ?? invalidCode;
  const otherInvalidCode = invalidCode ?? invalidQueryCode;
  const reader = (place: 'path' | 'query' | 'header', code: string | undefined) =>
    parameterReader(operation, schemas, { place, fillDefaults, invalidCode: code });
  const [path, query, headers] = [
    reader('path', otherInvalidCode),
    reader('query', invalidQueryCode),
    reader('header', otherInvalidCode),
  ];
  if (options.precompiledOperations?.includes(operation.id)) {
    for (const each of [path, query, headers]) each?.prepare();
  }
  const limitBytes = operation.bodyLimitBytes ?? options.bodyLimitBytes ?? defaultBodyLimitBytes;
  const body = operation.body
    ? new BodyReader(operation, { schemas, httpErrorCodes, fillDefaults, parsers, limitBytes })
    : undefined;
  return {
    operation,
    isPublic: operation.isPublic,
    bodyLimitBytes: body && limitBytes,
    handler,
    path,
    query,
    headers,
    body,
    checksBody: !handlersCheckBodies,
  };
}

const nothing: Readonly<Record<string, never>> = Object.freeze({});

/** Serves one operation of a document: media type, body, parameters, schema, then its handler. */
class OperationEndpoint implements AppEndpoint {
  readonly isPublic: boolean;
  readonly bodyLimitBytes: number | undefined;
  readonly operation: OperationDescription;

  constructor(
    private readonly app: AppCore,
    private readonly bound: BoundOperation,
    private readonly answers: ResponseCheck | undefined,
  ) {
    this.operation = bound.operation;
    this.isPublic = bound.isPublic;
    this.bodyLimitBytes = bound.bodyLimitBytes;
  }

  serve(exchange: Exchange, bytes: Buffer | 'too large' | undefined): Promise<void> | undefined {
    const { bound } = this;
    if (!bound.body) this.#refuseCrossSiteBody(exchange);
    const call = new HandlerCall(this.app, this.operation, exchange);
    const body = bound.body?.parse(bytes!, exchange.headers);
    if (bound.query) call.query = bound.query.read(exchange.query);
    if (bound.headers) call.headers = bound.headers.read(exchange.headers);
    if (bound.path) call.params = bound.path.read(exchange.params);
    call.body = body?.value;
    if (body && bound.checksBody) bound.body!.verify(body);
    const outcome = bound.handler(call as never);
    // A synchronous handler saves a turn of the microtask queue.
    if (outcome instanceof Promise) return outcome.then((answer) => this.#answer(exchange, answer));
    this.#answer(exchange, outcome);
    return undefined;
  }

  /**
   * A page of another site can send a form or plain text without a CORS preflight. Where the
   * contract has a code for it, such a body is rejected although the operation ignores it.
   */
  #refuseCrossSiteBody({ request, headers }: Exchange): void {
    const { unsupportedMediaType: code } = this.app.httpErrorCodes;
    if (!hasBody(request) || !this.operation.codes.includes(code)) return;
    const given = headers['content-type'];
    if (mediaTypeOf(given) === 'application/json') return;
    const found = given === undefined ? 'no Content-Type' : `Content-Type ${given}`;
    throw new Refusal(code, `The request has a body and ${found}: send application/json, or none.`);
  }

  #answer(exchange: Exchange, answer: UntypedOutcome): void {
    if ('takenOver' in answer) return;
    this.answers?.checkResponse(this.operation, answer);
    // Serialized first: an error response must not get these headers.
    const text = textOf(answer);
    const headers = answer.headers ? headerList(answer.headers) : [];
    if (answer.content !== undefined) {
      headers.push('content-type', answer.contentType!);
      this.#sendContent(exchange, answer.status, headers, answer.content);
      return;
    }
    if (text !== undefined) headers.push('content-type', 'application/json');
    this.app.send(exchange, answer.status, headers, text);
  }

  #sendContent(
    exchange: Exchange,
    status: number,
    headers: string[],
    content: ContentResponse<number, string>['content'],
  ): void {
    if (typeof content === 'string') {
      this.app.send(exchange, status, headers, content);
    } else if (content instanceof Uint8Array) {
      const { buffer, byteOffset, byteLength } = content;
      this.app.send(exchange, status, headers, Buffer.from(buffer, byteOffset, byteLength));
    } else {
      this.app.addDefaults(headers);
      exchange.begin(status, headers);
      void this.#stream(exchange, content);
    }
  }

  async #stream(
    exchange: Exchange,
    content: Readable | AsyncIterable<string | Uint8Array>,
  ): Promise<void> {
    if (exchange.method === 'HEAD') {
      if (content instanceof Readable) content.destroy();
      exchange.response.end();
      return;
    }
    const parts = content[Symbol.asyncIterator]() as AsyncIterator<string | Uint8Array>;
    // Ends a source that waits for its next part when the client disconnects.
    exchange.signal.addEventListener('abort', () => leave(parts, content), { once: true });
    try {
      for (let next = await parts.next(); !next.done; next = await parts.next()) {
        if (exchange.isClosed) return;
        await exchange.write(next.value);
      }
      exchange.response.end();
    } catch (error) {
      if (!exchange.isClosed) this.#streamFailed(exchange, error);
    } finally {
      leave(parts, content);
    }
  }

  #streamFailed(exchange: Exchange, error: unknown): void {
    const notes = { err: error, request_id: exchange.id };
    this.app.world.log.warn(notes, 'response stream failed');
    exchange.response.destroy();
  }
}

/** Ends a source without waiting: a generator that awaits cannot return immediately. */
function leave(parts: AsyncIterator<unknown>, content: unknown): void {
  if (content instanceof Readable) content.destroy();
  parts.return?.()?.catch(() => undefined);
}

/** Undefined: there is no body. */
function textOf({ body }: UntypedResponse): string | undefined {
  if (body instanceof CachedJson) return body.text;
  return body === undefined ? undefined : JSON.stringify(body);
}

/** A `Call` whose expensive parts are created on first use. */
class HandlerCall {
  readonly principal: unknown;
  params: unknown = nothing;
  query: unknown = nothing;
  headers: unknown = nothing;
  body: unknown;

  constructor(
    private readonly app: AppCore,
    readonly operation: OperationDescription,
    readonly exchange: Exchange,
  ) {
    this.principal = exchange.principal;
  }

  get log(): Log {
    return this.app.world.log.child({ request_id: this.exchange.id });
  }

  get ending(): AbortSignal {
    return this.app.ending;
  }

  get signal(): AbortSignal {
    return this.exchange.signal;
  }

  takeOver(): ServerResponse {
    const { response } = this.exchange;
    const head = this.exchange.beginHead([]);
    for (let i = 0; i < head.length; i += 2) response.setHeader(head[i]!, head[i + 1]!);
    return response;
  }
}

/** Checks every response against the OpenAPI document, in tests. */
class ResponseCheck {
  readonly #schemas: DocumentSchemas;
  readonly #report: (difference: string) => void;

  constructor(schemas: DocumentSchemas, report: (difference: string) => void) {
    this.#schemas = schemas;
    this.#report = report;
  }

  checkResponse(operation: OperationDescription, answer: UntypedResponse): void {
    const isEmpty = answer.content === undefined && answer.body === undefined;
    const mediaType = answer.contentType ?? 'application/json';
    const response = this.#responseFor(operation, answer.status);
    if (!response) return;
    if (isEmpty) {
      if (response.contents.length > 0)
        this.#reportResponse(operation, answer.status, 'has no body');
      return;
    }
    // As serialized: undefined members are dropped and dates are text.
    const value = answer.content === undefined ? asSent(answer.body) : undefined;
    this.#checkContent(operation, response, mediaType, value);
  }

  checkProblem(operation: OperationDescription, problem: object, code: string | undefined): void {
    const { status } = problem as Problem;
    if (code !== undefined && !operation.codes.includes(code)) {
      this.#report(`${operation.id} responds with ${code}, which is not in its x-codes`);
    }
    const response = this.#responseFor(operation, status);
    if (response)
      this.#checkContent(operation, response, 'application/problem+json', asSent(problem));
  }

  #responseFor(operation: OperationDescription, status: number): ResponseDescription | undefined {
    const response = operation.responses.find((known) => known.status === status);
    if (!response) this.#report(`${operation.id} responds with ${status}, which is not documented`);
    return response;
  }

  #checkContent(
    operation: OperationDescription,
    response: ResponseDescription,
    mediaType: string,
    value: unknown,
  ): void {
    const essence = mediaType.split(';')[0]!.trim();
    const content = response.contents.find((known) => known.mediaType === essence);
    if (!content) {
      this.#reportResponse(operation, response.status, `is ${essence}, which is not documented`);
      return;
    }
    if (content.pointer === undefined || value === undefined) return;
    const check = this.#schemas.at(content.pointer);
    if (check.accepts(value)) return;
    for (const { pointer, message } of check.faults(value)) {
      this.#reportResponse(
        operation,
        response.status,
        `does not fit its schema: ${pointer} ${message}`,
      );
    }
  }

  #reportResponse(operation: OperationDescription, status: number, what: string): void {
    this.#report(`The ${status} response of ${operation.id} ${what}`);
  }
}

function asSent(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

/** An app that serves an OpenAPI document. */
export interface BoundApp extends HttpApp {
  readonly document: OpenApiDocument;
  readonly operations: readonly OperationDescription[];
  readonly codes: CodeTable;
}

/**
 * Binds each operation of the document to the handler of the same name. Throws when they do not
 * match: an operation without a handler, a handler without an operation, or an unknown code.
 */
export function bindOperations<Operations extends object, Principal>(
  options: BindOptions<Operations, Principal>,
): BoundApp {
  const operations = operationsOf(options.document);
  checkHandlers(operations, options.handlers);
  checkCodes(operations, options);
  const app = new AppCore(options);
  const schemas = options.schemas ?? schemasOf(options.document);
  const untyped = options as unknown as UntypedOptions;
  const { onUndocumentedResponse: report } = options;
  const answers = report ? new ResponseCheck(schemas, report) : undefined;
  app.binding = new OperationBinding(untyped, answers);
  const parsers = { 'application/json': parseJson, ...options.bodyParsers };
  const parts = { schemas, httpErrorCodes: app.httpErrorCodes, parsers, options: untyped };
  for (const operation of operations) {
    const endpoint = new OperationEndpoint(app, boundOperation(operation, parts), answers);
    const rest = operation.parameters.find(({ takesRest }) => takesRest);
    app.dispatcher.add(operation.method, operation.path, endpoint, rest?.name);
  }
  return Object.assign(app, { document: options.document, operations, codes: options.codes });
}

/** Authentication and authorization of the operations. */
class OperationBinding implements Binding {
  readonly protectedPrefixes: readonly string[];

  constructor(
    private readonly options: UntypedOptions,
    private readonly answers: ResponseCheck | undefined,
  ) {
    this.protectedPrefixes = options.protectedPrefixes;
  }

  identify(exchange: Exchange, endpoint: AppEndpoint | undefined, isNeeded: boolean) {
    if (endpoint instanceof OperationEndpoint) exchange.operation = endpoint.operation;
    if (!isNeeded) {
      exchange.principal = this.options.anonymous;
      return this.#enter(exchange);
    }
    const principal = this.options.authenticate(exchange);
    if (principal instanceof Promise) {
      return principal.then((known: unknown) => this.#accept(exchange, known));
    }
    return this.#accept(exchange, principal);
  }

  #accept(exchange: Exchange, principal: unknown): void {
    exchange.principal = principal;
    exchange.principalName = this.options.principalName?.(principal);
    this.#enter(exchange);
  }

  #enter(exchange: Exchange): void {
    const { load } = this.options;
    if (load && !exchange.isClosed) trackLoad(exchange, load);
  }

  authorize(exchange: Exchange, endpoint: AppEndpoint): void | Promise<void> {
    if (endpoint.isPublic || !(endpoint instanceof OperationEndpoint)) return undefined;
    const { principal, params } = exchange;
    return this.options.authorize?.(principal, endpoint.operation, params);
  }

  problemSent({ operation }: Exchange, problem: object, code: string | undefined): void {
    if (operation) this.answers?.checkProblem(operation, problem, code);
  }
}

/** Size that counts for a body of unknown length. */
const maxCountedBodyBytes = 16 * 2 ** 20;

function trackLoad(exchange: Exchange, load: RequestLoad): void {
  const bytes = announcedBytes(exchange.headers);
  const { onClose } = exchange;
  load.enter(bytes);
  exchange.onClose = (isComplete) => {
    load.leave(bytes);
    onClose?.(isComplete);
  };
}

function announcedBytes(headers: IncomingHttpHeaders): number {
  const length = headers['content-length'];
  if (length !== undefined) return Math.min(Number(length), maxCountedBodyBytes);
  return headers['transfer-encoding'] === undefined ? 0 : maxCountedBodyBytes;
}

function checkHandlers(operations: readonly OperationDescription[], handlers: object): void {
  const documented = new Set(operations.map((operation) => operation.id));
  const missing = [...documented].filter((id) => !Object.hasOwn(handlers, id));
  const unknown = Object.keys(handlers).filter((id) => !documented.has(id));
  if (missing.length > 0) throw new Error(`Operations without a handler: ${missing.join(', ')}`);
  if (unknown.length > 0) throw new Error(`Handlers without an operation: ${unknown.join(', ')}`);
}

function checkCodes(
  operations: readonly OperationDescription[],
  options: { codes: CodeTable; invalidQueryCode?: string },
): void {
  const check = (code: string | undefined, where: string) => {
    if (code !== undefined && !Object.hasOwn(options.codes, code)) {
      throw new Error(`${where} names the code ${code}, which the table of codes lacks`);
    }
  };
  check(options.invalidQueryCode, 'invalidQueryCode');
  for (const operation of operations) {
    check(operation.invalidCode, operation.id);
    for (const code of operation.codes) check(code, operation.id);
    for (const { invalidCode } of operation.parameters) check(invalidCode, operation.id);
  }
}
