import type { Clock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { HistogramSeries, Metrics } from '../base/metrics.js';
import type { Exchange } from './exchange.js';

export interface RequestLogOptions {
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
export class RequestLog {
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
