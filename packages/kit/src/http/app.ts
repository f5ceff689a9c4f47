import type { IncomingHttpHeaders } from 'node:http';
import { Refusal } from '../errors.js';
import type { CodeTable } from '../errors.js';
import type { Metrics } from '../metrics.js';
import type { World } from '../world.js';
import { Dispatcher, type Endpoint, type Steps } from './dispatch.js';
import {
  headerList,
  MalformedRequest,
  PeerMemoryExceeded,
  peerMemoryRetryMs,
  type Exchange,
} from './exchange.js';
import { HttpServer, type HttpServerLimits } from './http-server.js';
import { bareProblem, defaultGlueCodes, problemFrom } from './problem.js';
import type { GlueCodes, Problem, ProblemAnswer } from './problem.js';
import { RequestLog } from './request-log.js';

export interface AppOptions extends HttpServerLimits {
  world: World;
  /** What each code of the server means over HTTP. */
  codes: CodeTable;
  metrics?: Metrics;
  /** The codes of refusals that this layer makes, where they differ from the usual names. */
  glueCodes?: Partial<GlueCodes>;
  /** Runs on every request before the caller is known: the place for a check of Host and Origin. */
  admit?: (caller: { readonly headers: IncomingHttpHeaders; readonly ip: string }) => void;
  /** What an error of the layers below means to a caller; undefined: what it says itself. */
  translateError?: (error: unknown) => unknown;
  /** Last word on the shape of a problem document. */
  shapeProblem?: (problem: Problem) => object;
  /** Headers of every response that does not set them itself. Lower case. */
  defaultHeaders?: Readonly<Record<string, string>>;
  /** Operations whose requests are counted but not logged: health checks. */
  quietOperations?: readonly string[];
  /** Logs reads that went well at the level debug: for a server that pages ask all the time. */
  quietReads?: boolean;
}

/** An HTTP server with Millrace's error responses, request ids, access log and metrics. */
export interface HttpApp {
  readonly server: HttpServer;
  /** Aborted when the server starts to drain. */
  readonly ending: AbortSignal;
  /** The pages that were added beside the operations of a document. */
  readonly pages: readonly string[];
  /** Serves a page to everybody by GET. */
  addPage(path: string, page: Page): void;
  /** From now on every response closes its connection, and open-ended streams are told to end. */
  beginDrain(): void;
  /** Stops accepting connections. Resolves when the last one is closed. */
  close(): Promise<void>;
}

/** Answers by `exchange.send`. */
export type Page = (exchange: Exchange) => void | Promise<void>;

/** Serves one method of one path of an app. */
export interface AppEndpoint extends Endpoint {
  serve(exchange: Exchange, body: Buffer | 'too large' | undefined): unknown;
}

/** What binds the operations of a document to an app. */
export interface Binding {
  readonly protectedPrefixes: readonly string[];
  identify(exchange: Exchange, endpoint: AppEndpoint | undefined, isNeeded: boolean): unknown;
  authorize(exchange: Exchange, endpoint: AppEndpoint): void | Promise<void>;
  /** Hears of every problem that was sent. */
  problemSent(exchange: Exchange, problem: object, code: string | undefined): void;
}

export const problemMediaType = 'application/problem+json';
const sane = /^[A-Za-z0-9._~:-]{1,128}$/;

export class AppCore implements HttpApp, Steps<AppEndpoint> {
  readonly server: HttpServer;
  readonly world: World;
  readonly glueCodes: GlueCodes;
  readonly pages: string[] = [];
  readonly dispatcher = new Dispatcher<AppEndpoint>(this);
  binding: Binding | undefined;
  readonly #log: RequestLog;
  readonly #options: AppOptions;
  readonly #ending = new AbortController();
  readonly #defaults: readonly [string, string][];

  constructor(options: AppOptions) {
    const { world, metrics, quietOperations, quietReads = false } = options;
    this.#options = options;
    this.world = world;
    this.glueCodes = { ...defaultGlueCodes, ...options.glueCodes };
    checkGlueCodes(this.glueCodes, options.codes);
    this.#defaults = Object.entries(options.defaultHeaders ?? {});
    this.#log = new RequestLog({
      clock: world.clock,
      log: world.log,
      metrics,
      quietOperations: new Set(quietOperations),
      quietReads,
    });
    this.server = new HttpServer({
      ...options,
      clock: world.clock,
      handle: (exchange) => this.#handle(exchange),
      malformed: (status, detail) => this.#malformed(status, detail),
      onMalformed: (status, reason) => world.log.info({ status, reason }, 'bad request'),
    });
  }

  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  get protectedPrefixes(): readonly string[] {
    return this.binding?.protectedPrefixes ?? [];
  }

  beginDrain(): void {
    this.server.isDraining = true;
    this.#ending.abort(new Error('The server is shutting down'));
  }

  close(): Promise<void> {
    return this.server.close();
  }

  addPage(path: string, page: Page): void {
    this.pages.push(path);
    const serve: AppEndpoint['serve'] = (exchange) => page(exchange);
    this.dispatcher.add('GET', path, { isPublic: true, bodyLimitBytes: undefined, serve });
  }

  #handle(exchange: Exchange): void {
    exchange.id = this.#requestId(exchange.headers);
    exchange.setHead(['x-request-id', exchange.id]);
    this.#log.open(exchange);
    exchange.onClose = (isComplete) => this.#log.close(exchange, isComplete);
    this.dispatcher.handle(exchange);
  }

  admit(exchange: Exchange): void {
    this.#options.admit?.(exchange);
  }

  identify(exchange: Exchange, endpoint: AppEndpoint | undefined, isNeeded: boolean) {
    return this.binding?.identify(exchange, endpoint, isNeeded) as void | Promise<void>;
  }

  authorize(exchange: Exchange, endpoint: AppEndpoint): void | Promise<void> {
    return this.binding?.authorize(exchange, endpoint);
  }

  serve(exchange: Exchange, endpoint: AppEndpoint, body: Buffer | 'too large' | undefined) {
    return endpoint.serve(exchange, body);
  }

  notFound({ path }: Exchange): Error {
    const bare = path.slice(0, -1);
    const isMeant = path.endsWith('/') && this.dispatcher.router.find(bare) !== undefined;
    const hint = isMeant ? ` Without the slash at the end there is: ${bare}.` : '';
    return new Refusal(this.glueCodes.notFound, `There is no route ${path}.${hint}`);
  }

  methodNotAllowed({ path, method }: Exchange, allow: string): Error {
    const detail = `${path} takes ${allow}, not ${method}.`;
    return new Refusal(this.glueCodes.methodNotAllowed, detail, { headers: { allow } });
  }

  /** Sends a response of an operation or a page, with the default headers of the app. */
  send(exchange: Exchange, status: number, headers: string[], body?: string | Buffer): void {
    this.addDefaults(headers);
    exchange.send(status, headers, body);
  }

  addDefaults(headers: string[]): void {
    for (const [name, value] of this.#defaults) {
      if (!headers.includes(name)) headers.push(name, value);
    }
  }

  /** Answers with the problem that the error stands for. */
  fail(exchange: Exchange, error: unknown): void {
    const { log } = this.world;
    if (exchange.response.headersSent || exchange.isClosed) {
      if (exchange.isClosed || error instanceof PeerMemoryExceeded) {
        log.debug({ err: error, request_id: exchange.id }, 'response not completed');
      } else {
        log.error(
          { err: error, request_id: exchange.id },
          'request failed after its response began',
        );
      }
      if (!exchange.response.writableEnded) exchange.response.destroy();
      return;
    }
    try {
      const { problem, headers } = this.#problemFor(error, exchange.id);
      const body = this.#options.shapeProblem?.(problem) ?? problem;
      const list = ['content-type', problemMediaType, ...headerList(headers)];
      this.send(exchange, problem.status, list, JSON.stringify(body));
      this.binding?.problemSent(exchange, body, problem.code);
    } catch (bug) {
      log.error({ err: bug, request_id: exchange.id }, 'a problem could not be sent');
      exchange.response.destroy();
    }
  }

  /** What the caller is told of an error; the log is told what is ours. */
  #problemFor(error: unknown, requestId: string): Pick<ProblemAnswer, 'problem' | 'headers'> {
    if (error instanceof MalformedRequest) {
      return { problem: bareProblem(error.status, error.message, requestId), headers: {} };
    }
    const { log } = this.world;
    const { codes, translateError } = this.#options;
    const meant = this.#overload(error) ?? translateError?.(error) ?? error;
    if (meant instanceof PeerMemoryExceeded) {
      const headers = { 'retry-after': String(peerMemoryRetryMs / 1000) };
      return { problem: bareProblem(503, meant.message, requestId), headers };
    }
    const notes = { err: meant, request_id: requestId };
    const { glueCodes } = this;
    const { problem, headers, isBug } = problemFrom(meant, requestId, { codes, glueCodes });
    if (isBug) log.error(notes, 'a request met a bug');
    else if (problem.status >= 500) log.warn(notes, 'a request could not be served');
    return { problem, headers };
  }

  #overload(error: unknown): Refusal | undefined {
    const { overloaded } = this.glueCodes;
    if (!(error instanceof PeerMemoryExceeded) || overloaded === undefined) return undefined;
    return new Refusal(overloaded, error.message, { retryAfterMs: peerMemoryRetryMs });
  }

  #malformed(status: number, detail: string) {
    const id = this.#requestId({});
    const problem = bareProblem(status, detail, id);
    const body = JSON.stringify(this.#options.shapeProblem?.(problem) ?? problem);
    return { contentType: problemMediaType, body, headers: { 'X-Request-Id': id } };
  }

  /** The id that the client gave its request, or a new one. */
  #requestId({ 'x-request-id': given }: IncomingHttpHeaders): string {
    const { clock, random } = this.world;
    return typeof given === 'string' && sane.test(given) ? given : random.ulid(clock.now());
  }
}

/** An app without a document, for a listener of its own such as the one of the metrics. */
export function createApp(options: AppOptions): HttpApp {
  return new AppCore(options);
}

function checkGlueCodes(glueCodes: GlueCodes, codes: CodeTable): void {
  for (const code of Object.values(glueCodes) as (string | undefined)[]) {
    if (code !== undefined && !Object.hasOwn(codes, code)) {
      throw new Error(`The table of codes lacks ${code}; add it or name another by glueCodes`);
    }
  }
}
