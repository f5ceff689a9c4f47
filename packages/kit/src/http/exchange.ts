import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../clock.js';
import type { Log } from '../log.js';
import type { HistogramSeries, Metrics } from '../metrics.js';
import type { PathEntry } from './bound.js';
import type { OperationDescription } from './document.js';
import type { RouteMatch } from './router.js';

/** What is known about one request from its first byte to the end of its answer. */
export class Exchange {
  operation: OperationDescription | undefined;
  match: RouteMatch<PathEntry> | undefined;
  principal: unknown;
  principalName: string | undefined;
  /** The length of its body, if the server's load was told of it. */
  enteredBytes: number | undefined;
  /** Aborted when the client leaves; made when somebody asks for it. */
  leaving: AbortController | undefined;
  /** Fastify's own route, for what no operation serves. */
  route: string | undefined;

  constructor(
    readonly id: string,
    readonly method: string,
    readonly startedAt: number,
    readonly ledger: Ledger,
  ) {}
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Millrace's own notes on the request. */
    exchange: Exchange;
  }
}

export interface LedgerOptions {
  clock: Clock;
  log: Log;
  metrics?: Metrics | undefined;
  /** Operations whose requests are counted but not logged. */
  quietOperations: ReadonlySet<string>;
  /** Reads that went well are logged at the level debug. */
  quietReads: boolean;
}

/** What proxies write when the client did not wait for the answer. */
export const goneStatus = 499;

const exchangeOf = Symbol('exchange');
type TrackedResponse = ServerResponse & { [exchangeOf]?: Exchange };

/** Counts, times and logs every request, also those that end before they are answered. */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #observe: (operation: string, status: number, seconds: number) => void;
  #inFlight = 0;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#observe = observer(options.metrics, () => this.#inFlight);
  }

  open(request: FastifyRequest, reply: FastifyReply): void {
    const exchange = this.begin(request.id, request.method);
    exchange.route = request.routeOptions.url;
    request.exchange = exchange;
    reply.header('x-request-id', request.id);
    const raw: TrackedResponse = reply.raw;
    raw[exchangeOf] = exchange;
    raw.on('close', onClose);
  }

  /** Every exchange that is begun must be closed. */
  begin(id: string, method: string): Exchange {
    this.#inFlight++;
    return new Exchange(id, method, this.#options.clock.monotonic(), this);
  }

  close(exchange: Exchange, status: number): void {
    this.#inFlight--;
    const { clock, log, quietOperations, quietReads } = this.#options;
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
        route: exchange.operation?.path ?? exchange.route ?? '',
        operation,
        status,
        duration_ms: Math.round(durationMs * 100) / 100,
        principal: exchange.principalName,
      },
      'request',
    );
  }
}

// Shared by all responses: one function each, not one per request.
function onClose(this: TrackedResponse): void {
  const exchange = this[exchangeOf];
  if (!exchange) return;
  exchange.ledger.close(exchange, this.writableFinished ? this.statusCode : goneStatus);
}

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

function observer(metrics: Metrics | undefined, inFlight: () => number) {
  if (!metrics) return () => undefined;
  const histogram = metrics.histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the first byte of a request to the end of its answer.',
    labelNames: ['operation', 'status'],
    buckets: durationBuckets,
  });
  metrics.gauge({
    name: 'http_requests_in_flight',
    help: 'Requests that have not been answered yet.',
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
