import type { DbMethod, GrpcCode } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { CounterSeries, HistogramSeries, Metrics } from '@millrace/kit/metrics';
import type { Random } from '@millrace/kit/random';
import type { CallScope, ApiKind } from './scope.js';
import type { CallStatus } from '../base/status.js';

export type AccessLog = 'all' | 'failures' | 'off';

export interface CallMetricsOptions {
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  /** Which calls are written to the access log. */
  accessLog: AccessLog;
}

/** Codes logged by default. NOT_FOUND and the like are part of normal operation. */
const failures: ReadonlySet<GrpcCode> = new Set([
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'INTERNAL',
  'DATA_LOSS',
]);

/** Metric label and log field of the API kind. Dashboards and alerts use this name. */
export const apiLabel = 'face';

const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

interface Series {
  calls: CounterSeries;
  seconds: HistogramSeries;
}

/** Counts, times and logs every call. */
export class CallMetrics {
  readonly #series: Record<ApiKind, Map<DbMethod, Map<string, Series>>> = {
    grpc: new Map(),
    rest: new Map(),
  };
  readonly #make: (method: string, api: string, code: string) => Series;

  constructor(private readonly options: CallMetricsOptions) {
    const { metrics } = options;
    const calls = metrics.counter({
      name: 'calls_total',
      help: 'Calls by method, API (gRPC or REST) and gRPC code.',
      labelNames: ['method', apiLabel, 'code'],
    });
    const seconds = metrics.histogram({
      name: 'call_duration_seconds',
      help: 'Time from the arrival of a call to the end of its response.',
      labelNames: ['method', apiLabel],
      buckets,
    });
    this.#make = (method, api, code) => ({
      calls: calls.of({ method, [apiLabel]: api, code }),
      seconds: seconds.of({ method, [apiLabel]: api }),
    });
  }

  record(scope: CallScope, status: CallStatus | undefined): void {
    const { clock, log, accessLog } = this.options;
    const durationMs = clock.monotonic() - scope.startedAt;
    const code = status?.code ?? 'OK';
    const series = this.#seriesOf(scope, code);
    series.calls.inc();
    // The duration of a watch depends on its caller alone.
    if (scope.rpc !== 'Watch') series.seconds.observe(durationMs / 1000);
    if (accessLog === 'off') return;
    if (accessLog === 'failures' && !(status && failures.has(status.code))) return;
    log.info(
      {
        method: scope.rpc,
        [apiLabel]: scope.api,
        code,
        reason: status?.reason,
        principal: scope.principal.id,
        peer: scope.peer,
        duration_ms: Math.round(durationMs * 100) / 100,
      },
      'call',
    );
  }

  /** Logs an internal error and returns the status with the error id that is logged with it. */
  recordInternalError(scope: CallScope, error: unknown, status: CallStatus): CallStatus {
    const { clock, random, log } = this.options;
    const errorId = random.ulid(clock.now());
    log.error(
      { err: error, error_id: errorId, method: scope.rpc, principal: scope.principal.id },
      'call failed',
    );
    return { ...status, metadata: { ...status.metadata, error_id: errorId } };
  }

  #seriesOf({ rpc, api }: CallScope, code: string): Series {
    let codes = this.#series[api].get(rpc);
    if (!codes) this.#series[api].set(rpc, (codes = new Map()));
    let series = codes.get(code);
    if (!series) codes.set(code, (series = this.#make(rpc, api, code)));
    return series;
  }
}
