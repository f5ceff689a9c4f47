import type { Clock } from '../base/clock-and-random.js';
import type { Log } from '../base/log.js';
import type { HistogramSeries, Metrics } from '../base/metrics.js';
import {
  type Exchange,
  ConnectionsExceeded,
  headerList,
  MalformedRequest,
  PeerMemoryExceeded,
  peerMemoryRetryMs,
} from './exchange.js';
import type { IncomingHttpHeaders } from 'node:http';
import { Refusal, type CodeTable } from '../base/errors.js';
import type { World } from '../base/world.js';
import { isLoopback } from '../config/address.js';
import { Dispatcher, type Endpoint, type Steps } from './dispatch.js';
import { countDroppedConnections, type PeerMemory } from '../base/limits.js';
import { HttpServer, type HttpServerLimits } from './http-server.js';
import {
  bareProblem,
  defaultHttpErrorCodes,
  problemFrom,
  type HttpErrorCodes,
  type Problem,
  type ProblemResponse,
} from './problem.js';
import { crossSiteHeader, shownHeader } from './same-site.js';

interface RequestLogOptions {
  clock: Clock;
  log: Log;
  metrics?: Metrics | undefined;
  /** Operations whose requests are counted but not logged. */
  quietOperations: ReadonlySet<string>;
  /** Successful reads are logged at debug level. */
  quietReads: boolean;
}

/** The status that proxies log when the client disconnects before the response. */
const clientClosedRequest = 499;

/** Counts, times and logs every request, also those without a response. */
class RequestLog {
  readonly #options: RequestLogOptions;
  readonly #observe: (operation: string, status: number, seconds: number) => void;
  #inFlight = 0;

  constructor(options: RequestLogOptions) {
    this.#options = options;
    this.#observe = observer(options.metrics, () => this.#inFlight);
  }

  /** Every exchange that is opened must be closed. */
  open(exchange: Exchange): void {
    this.#inFlight++;
    exchange.startedAt = this.#options.clock.monotonic();
  }

  close(exchange: Exchange, isComplete: boolean): void {
    this.#inFlight--;
    const { clock, log, quietOperations, quietReads } = this.#options;
    const status = isComplete ? exchange.response.statusCode : clientClosedRequest;
    const durationMs = clock.monotonic() - exchange.startedAt;
    const operation = exchange.operation?.id ?? 'none';
    this.#observe(operation, status, durationMs / 1000);
    if (quietOperations.has(operation)) return;
    const { method } = exchange;
    const isQuiet = quietReads && status < 400 && (method === 'GET' || method === 'HEAD');
    log[isQuiet ? 'debug' : 'info'](
      {
        request_id: exchange.id,
        method,
        route: exchange.operation?.path ?? '',
        operation,
        status,
        duration_ms: Math.round(durationMs * 100) / 100,
        principal: exchange.principalName,
      },
      'request',
    );
  }
}

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

function observer(metrics: Metrics | undefined, inFlight: () => number) {
  if (!metrics) return () => undefined;
  const histogram = metrics.histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the start of a request to the end of its response.',
    labelNames: ['operation', 'status'],
    buckets: durationBuckets,
  });
  metrics.gauge({
    name: 'http_requests_in_flight',
    help: 'Requests in flight.',
    read: inFlight,
  });
  const known = new Map<string, Map<number, HistogramSeries>>();
  return (operation: string, status: number, seconds: number) => {
    let byStatus = known.get(operation);
    if (!byStatus) known.set(operation, (byStatus = new Map()));
    let series = byStatus.get(status);
    if (!series) {
      series = histogram.of({ operation, status: String(status) });
      byStatus.set(status, series);
    }
    series.observe(seconds);
  };
}

export interface AppOptions extends HttpServerLimits {
  world: World;
  /** Status and title of each error code. */
  codes: CodeTable;
  metrics?: Metrics;
  /** Codes of the errors raised by this layer, where they differ from the defaults. */
  httpErrorCodes?: Partial<HttpErrorCodes>;
  /** Runs on every request before authentication, for checks of Host and Origin. */
  admit?: (caller: { readonly headers: IncomingHttpHeaders; readonly ip: string }) => void;
  /** Maps errors of lower layers to refusals; undefined leaves the error as it is. */
  translateError?: (error: unknown) => unknown;
  /** Changes the problem document before it is sent. */
  shapeProblem?: (problem: Problem) => object;
  /** Headers of every response that does not set them itself. Lower case. */
  defaultHeaders?: Readonly<Record<string, string>>;
  /** Operations whose requests are counted but not logged: health checks. */
  quietOperations?: readonly string[];
  /** Logs successful reads at debug level, for servers that are polled by a dashboard. */
  quietReads?: boolean;
}

/** An HTTP server with Millrace's error responses, request ids, access log and metrics. */
export interface HttpApp {
  readonly server: HttpServer;
  /** Aborted when the server starts to drain. */
  readonly ending: AbortSignal;
  /** Paths of the pages added with `addPage`. */
  readonly pages: readonly string[];
  /** Serves a public page with GET. */
  addPage(path: string, page: Page): void;
  /** From now on every response closes its connection, and event streams end. */
  beginDrain(): void;
  /** Stops accepting connections. Resolves when the last one is closed. */
  close(): Promise<void>;
}

/** Responds with `exchange.send`. */
type Page = (exchange: Exchange) => void | Promise<void>;

/** Serves one method of one path of an app. */
export interface AppEndpoint extends Endpoint {
  serve(exchange: Exchange, body: Buffer | 'too large' | undefined): unknown;
}

/** Connects the operations of a document to an app. */
export interface Binding {
  readonly protectedPrefixes: readonly string[];
  identify(exchange: Exchange, endpoint: AppEndpoint | undefined, isNeeded: boolean): unknown;
  authorize(exchange: Exchange, endpoint: AppEndpoint): void | Promise<void>;
  /** Called after every problem response. */
  problemSent(exchange: Exchange, problem: object, code: string | undefined): void;
}

const problemMediaType = 'application/problem+json';
const sane = /^[A-Za-z0-9._~:-]{1,128}$/;

export class AppCore implements HttpApp, Steps<AppEndpoint> {
  readonly server: HttpServer;
  readonly world: World;
  readonly httpErrorCodes: HttpErrorCodes;
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
    this.httpErrorCodes = { ...defaultHttpErrorCodes, ...options.httpErrorCodes };
    checkGlueCodes(this.httpErrorCodes, options.codes);
    this.#defaults = Object.entries(options.defaultHeaders ?? {});
    this.#log = new RequestLog({
      clock: world.clock,
      log: world.log,
      metrics,
      quietOperations: new Set(quietOperations),
      quietReads,
    });
    this.server = new HttpServer({
      onDrop: metrics && countDroppedConnections(metrics),
      ...options,
      clock: world.clock,
      log: world.log,
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
    const hint = isMeant ? ` Remove the trailing slash: ${bare}.` : '';
    return new Refusal(this.httpErrorCodes.notFound, `There is no route ${path}.${hint}`);
  }

  methodNotAllowed({ path, method }: Exchange, allow: string): Error {
    const detail = `${path} takes ${allow}, not ${method}.`;
    return new Refusal(this.httpErrorCodes.methodNotAllowed, detail, { headers: { allow } });
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

  /** Sends the problem response of an error. */
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
      log.error({ err: bug, request_id: exchange.id }, 'failed to send problem response');
      exchange.response.destroy();
    }
  }

  /** Maps an error to a problem document, and logs server errors. */
  #problemFor(error: unknown, requestId: string): Pick<ProblemResponse, 'problem' | 'headers'> {
    if (error instanceof MalformedRequest) {
      return { problem: bareProblem(error.status, error.message, requestId), headers: {} };
    }
    const { log } = this.world;
    const { codes, translateError } = this.#options;
    const meant = this.#overload(error) ?? translateError?.(error) ?? error;
    if (meant instanceof PeerMemoryExceeded || meant instanceof ConnectionsExceeded) {
      const headers = { 'retry-after': String(peerMemoryRetryMs / 1000) };
      return { problem: bareProblem(503, meant.message, requestId), headers };
    }
    const notes = { err: meant, request_id: requestId };
    const { httpErrorCodes } = this;
    const { problem, headers, isBug } = problemFrom(meant, requestId, { codes, httpErrorCodes });
    if (isBug) log.error(notes, 'internal error');
    else if (problem.status >= 500) log.warn(notes, 'request failed');
    return { problem, headers };
  }

  #overload(error: unknown): Refusal | undefined {
    const { overloaded } = this.httpErrorCodes;
    if (!(error instanceof PeerMemoryExceeded) || overloaded === undefined) return undefined;
    return new Refusal(overloaded, error.message, { retryAfterMs: peerMemoryRetryMs });
  }

  #malformed(status: number, detail: string) {
    const id = this.#requestId({});
    const problem = bareProblem(status, detail, id);
    const body = JSON.stringify(this.#options.shapeProblem?.(problem) ?? problem);
    return { contentType: problemMediaType, body, headers: { 'X-Request-Id': id } };
  }

  /** The X-Request-Id of the client, or a new id. */
  #requestId({ 'x-request-id': given }: IncomingHttpHeaders): string {
    const { clock, random } = this.world;
    return typeof given === 'string' && sane.test(given) ? given : random.ulid(clock.now());
  }
}

/** An app without an OpenAPI document, for example for a metrics listener. */
export function createApp(options: AppOptions): HttpApp {
  return new AppCore(options);
}

function checkGlueCodes(httpErrorCodes: HttpErrorCodes, codes: CodeTable): void {
  for (const code of Object.values(httpErrorCodes) as (string | undefined)[]) {
    if (code !== undefined && !Object.hasOwn(codes, code)) {
      throw new Error(
        `The table of codes lacks ${code}; add it or set another one in httpErrorCodes`,
      );
    }
  }
}

export interface MetricsAppOptions {
  world: World;
  codes: CodeTable;
  /** Where it will listen. */
  host: string;
  peerMemory: PeerMemory;
}

/**
 * An app for a listener of metrics alone, so that an API can be exposed without them. On loopback,
 * requests of web pages of other sites are refused.
 */
export function metricsApp(
  metrics: Pick<Metrics, 'text' | 'contentType'>,
  { host, ...options }: MetricsAppOptions,
): HttpApp {
  const needsLoopbackHost = isLoopback(host);
  const app: HttpApp = createApp({
    ...options,
    admit: ({ headers }) => {
      const at = app.server.node.address();
      const port = typeof at === 'object' && at !== null ? at.port : 0;
      const foreign = crossSiteHeader(headers, { port, needsLoopbackHost });
      if (foreign === undefined) return;
      const { header, value } = foreign;
      throw new Refusal('FORBIDDEN', `The ${header} ${shownHeader(value)} is not this machine.`);
    },
  });
  serveMetrics(app, metrics);
  return app;
}

/** Serves the metrics in Prometheus text. */
export function serveMetrics(
  app: Pick<HttpApp, 'addPage'>,
  metrics: Pick<Metrics, 'text' | 'contentType'>,
  path = '/metrics',
): void {
  app.addPage(path, async (exchange) => {
    const text = await metrics.text();
    exchange.send(200, ['content-type', metrics.contentType], text);
  });
}
