import type { CodeTable } from '../base/errors.js';
import type { IncomingHttpHeaders } from 'node:http';
import { ResponseCheck } from './response-check.js';
import { AppCore, type AppEndpoint, type Binding, type HttpApp } from './app.js';
import { boundOperation } from './bound.js';
import { operationsOf } from './document.js';
import type { OpenApiDocument, OperationDescription } from './document.js';
import type { Exchange } from './exchange.js';
import { parseJson } from './json.js';
import { OperationEndpoint } from './operation-endpoint.js';
import type { BindOptions, RequestLoad, UntypedOptions } from './options.js';
import { DocumentSchemas } from './schemas.js';

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
  const schemas = options.schemas ?? new DocumentSchemas(options.document);
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
  options: { codes: CodeTable; invalidQueryCode?: string; invalidPathCode?: string },
): void {
  const check = (code: string | undefined, where: string) => {
    if (code !== undefined && !Object.hasOwn(options.codes, code)) {
      throw new Error(`${where} names the code ${code}, which the table of codes lacks`);
    }
  };
  check(options.invalidQueryCode, 'invalidQueryCode');
  check(options.invalidPathCode, 'invalidPathCode');
  for (const operation of operations) {
    check(operation.invalidCode, operation.id);
    for (const code of operation.codes) check(code, operation.id);
    for (const { invalidCode } of operation.parameters) check(invalidCode, operation.id);
  }
}
