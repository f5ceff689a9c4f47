import type { CodeTable } from '../errors.js';
import type { IncomingHttpHeaders } from 'node:http';
import { AppCore, usualKeepAliveMs } from './app.js';
import type { HttpApp } from './app.js';
import { Dispatcher } from './dispatch.js';
import { operationsOf } from './document.js';
import type { OpenApiDocument, OperationDescription } from './document.js';
import type { BindOptions, RequestLoad, UntypedOptions } from './options.js';
import { openPlainDoor } from './plain/door.js';
import { PlainOperations } from './plain/service.js';
import { DocumentSchemas } from './schemas.js';

/** An app that serves a document. */
export interface BoundApp extends HttpApp {
  readonly document: OpenApiDocument;
  readonly operations: readonly OperationDescription[];
  readonly codes: CodeTable;
}

/**
 * Binds each operation of the document to the handler of its name. Throws at once where the two
 * do not fit: an operation without handler, a handler without operation, a code that the table
 * does not know.
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
  const dispatcher = new Dispatcher(app, operations, schemas, untyped);
  app.routeMissing = (request, reply) => dispatcher.dispatch(request, reply);
  app.pathUnreadable = (request, reply) => dispatcher.refuseUnreadable(request, reply);
  app.fastify.addHook('onRequest', (request, reply, done) => {
    dispatcher.identify(request, reply, done);
  });
  if (options.load) tellLoad(app, options.load);
  if (options.plainOperations) servePlainly(app, dispatcher, untyped);
  return Object.assign(app, { document: options.document, operations, codes: options.codes });
}

/** A body of unknown length counts as this much. */
const largestBodyBytes = 16 * 2 ** 20;

function tellLoad({ fastify }: AppCore, load: RequestLoad): void {
  fastify.addHook('onRequest', ({ headers }, reply, done) => {
    const bytes = announcedBytes(headers);
    load.enter(bytes);
    reply.raw.on('close', () => load.leave(bytes));
    done();
  });
}

function announcedBytes(headers: IncomingHttpHeaders): number {
  const length = headers['content-length'];
  if (length !== undefined) return Math.min(Number(length), largestBodyBytes);
  return headers['transfer-encoding'] === undefined ? 0 : largestBodyBytes;
}

function servePlainly(app: AppCore, dispatcher: Dispatcher, options: UntypedOptions): void {
  if (options.admit) throw new Error('admit looks at requests of Fastify, so none can be plain');
  const { router, answers } = dispatcher;
  const { keepAliveTimeoutMs = usualKeepAliveMs } = options;
  const service = new PlainOperations({ app, router, answers, options, keepAliveTimeoutMs });
  openPlainDoor(app.fastify.server, service, keepAliveTimeoutMs);
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
