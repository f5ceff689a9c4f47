import type { DbMethod, GrpcCode } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { CounterSeries, HistogramSeries, Metrics } from '@millrace/kit/metrics';
import type { Random } from '@millrace/kit/random';
import type { CallScope, Face } from './scope.js';
import type { CallStatus } from '../status.js';

export type AccessLog = 'all' | 'failures' | 'off';

export interface LedgerOptions {
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  /** Which calls get a line of their own in the log. */
  accessLog: AccessLog;
}

/** What an operator should see without asking; a key that is not there is everyday business. */
const failures: ReadonlySet<GrpcCode> = new Set([
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'INTERNAL',
  'DATA_LOSS',
]);

const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

interface Series {
  calls: CounterSeries;
  seconds: HistogramSeries;
}

/** Counts, times and logs every call. */
export class CallLedger {
  readonly #series: Record<Face, Map<DbMethod, Map<string, Series>>> = {
    grpc: new Map(),
    rest: new Map(),
  };
  readonly #make: (method: string, face: string, code: string) => Series;

  constructor(private readonly options: LedgerOptions) {
    const { metrics } = options;
    const calls = metrics.counter({
      name: 'calls_total',
      help: 'Calls by method, face and gRPC code.',
      labelNames: ['method', 'face', 'code'],
    });
    const seconds = metrics.histogram({
      name: 'call_duration_seconds',
      help: 'Time from the arrival of a call to the end of its answer.',
      labelNames: ['method', 'face'],
      buckets,
    });
    this.#make = (method, face, code) => ({
      calls: calls.of({ method, face, code }),
      seconds: seconds.of({ method, face }),
    });
  }

  note(scope: CallScope, status: CallStatus | undefined): void {
    const { clock, log, accessLog } = this.options;
    const durationMs = clock.monotonic() - scope.startedAt;
    const code = status?.code ?? 'OK';
    const series = this.#seriesOf(scope, code);
    series.calls.inc();
    // A watch lasts as long as its caller likes.
    if (scope.rpc !== 'Watch') series.seconds.observe(durationMs / 1000);
    if (accessLog === 'off') return;
    if (accessLog === 'failures' && !(status && failures.has(status.code))) return;
    log.info(
      {
        method: scope.rpc,
        face: scope.face,
        code,
        reason: status?.reason,
        principal: scope.principal.id,
        peer: scope.peer,
        duration_ms: Math.round(durationMs * 100) / 100,
      },
      'call',
    );
  }

  /** Logs a fault of ours, and gives the caller an id to ask about it by. */
  noteBug(scope: CallScope, error: unknown, status: CallStatus): CallStatus {
    const { clock, random, log } = this.options;
    const errorId = random.ulid(clock.now());
    log.error(
      { err: error, error_id: errorId, method: scope.rpc, principal: scope.principal.id },
      'a call failed',
    );
    return { ...status, metadata: { ...status.metadata, error_id: errorId } };
  }

  #seriesOf({ rpc, face }: CallScope, code: string): Series {
    let codes = this.#series[face].get(rpc);
    if (!codes) this.#series[face].set(rpc, (codes = new Map()));
    let series = codes.get(code);
    if (!series) codes.set(code, (series = this.#make(rpc, face, code)));
    return series;
  }
}
