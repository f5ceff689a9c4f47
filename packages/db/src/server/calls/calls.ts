import { dbMethods, type DbMethod, type GrpcCode } from '@millrace/contract/db';
import type {
  Request,
  CallContext,
  RecordWriter,
  ResponseMessage,
  Service,
  StreamingRpc,
  StreamingMethods,
  UnaryMethods,
  UnaryRpc,
} from '../service/call.js';
import {
  wholeDatabase,
  type Principal,
  local,
  type Authenticator,
  type Credentials,
} from '../access/access.js';
import type { Clock } from '@millrace/kit/clock';
import { refuse } from '@millrace/engine/value/documents';
import type { Admission } from '../limits/admission.js';
import { statusOf, type CallStatus } from '../base/status.js';
import type { Log } from '@millrace/kit/log';
import type { CounterSeries, HistogramSeries, Metrics } from '@millrace/kit/metrics';
import type { Random } from '@millrace/kit/random';

const anywhere: ReadonlySet<DbMethod> = new Set(['BeginTx', 'CommitTx', 'RollbackTx']);

/** Refuses SCOPE unless the principal is allowed to make this call. */
function checkScope<Rpc extends DbMethod>(
  principal: Principal,
  rpc: Rpc,
  request: Request<Rpc>,
): void {
  const { access } = dbMethods[rpc];
  // A replication peer reads the whole database.
  if ('peer' in request && request.peer) principal.check(wholeDatabase, 'admin');
  // Each operation of a transaction is checked separately.
  if (anywhere.has(rpc)) principal.checkSomewhere(access);
  else if (!('collection' in request)) principal.check(wholeDatabase, access);
  else if (request.collection === '' && rpc === 'Watch') principal.check(wholeDatabase, 'admin');
  else principal.check(String(request.collection), access);
}

type ApiKind = 'grpc' | 'rest';

interface ScopeOptions {
  rpc: DbMethod;
  api: ApiKind;
  peer: string;
  /** Milliseconds since the epoch; undefined: no deadline. */
  deadline: number | undefined;
  /** On the monotonic clock. */
  startedAt: number;
}

/** Abort reason of a call that completed. */
export const callEnded = new Error('The call is over');

/** One call, from its first byte to the end of its response. */
export class CallScope implements CallContext {
  readonly rpc: DbMethod;
  readonly api: ApiKind;
  readonly peer: string;
  readonly deadline: number | undefined;
  readonly startedAt: number;
  principal: Principal = local;
  isEnded = false;
  /** A follower's stream: it stays open until all other calls have ended. */
  isFollower = false;
  /** Repeats the access check. */
  recheck: (() => void) | undefined;
  recordWriter: (() => RecordWriter) | undefined;
  #controller: AbortController | undefined;
  #aborted: { reason: unknown } | undefined;

  constructor(options: ScopeOptions) {
    this.rpc = options.rpc;
    this.api = options.api;
    this.peer = options.peer;
    this.deadline = options.deadline;
    this.startedAt = options.startedAt;
  }

  /** Created lazily: most calls end before anyone needs the signal. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#aborted.reason;
  }

  /** Aborts the call. Only the first reason counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}

interface CallParts {
  clock: Clock;
  authenticator: Authenticator;
  admission: Admission;
  callMetrics: CallMetrics;
  service: Service;
}

/** Authentication, authorization, admission and metrics of a call, for gRPC and REST. */
export class Calls {
  readonly #open = new Set<CallScope>();
  #draining = false;
  #onIdle: (() => void)[] = [];

  constructor(private readonly parts: CallParts) {}

  get isDraining(): boolean {
    return this.#draining;
  }

  open(rpc: DbMethod, api: ApiKind, peer: string, deadline: number | undefined): CallScope {
    const startedAt = this.parts.clock.monotonic();
    const scope = new CallScope({ rpc, api, peer, deadline, startedAt });
    this.#open.add(scope);
    return scope;
  }

  /** Records how long a call was queued before it started. */
  queued(delayMs: number): void {
    this.parts.admission.queued(delayMs);
  }

  /** Authenticates the caller. Refuses every call while the server shuts down. */
  checkCaller(rpc: DbMethod, credentials: Credentials): Principal {
    // Writes in flight may wait for the acks that followers report with this method.
    if (this.#draining && rpc !== 'ReplicationStatus') throw shuttingDown();
    return this.parts.authenticator.identify(credentials);
  }

  /** Like `checkCaller`, once the request is complete: the key may have been revoked meanwhile. */
  identify(scope: CallScope, credentials: Credentials): void {
    const { authenticator } = this.parts;
    scope.principal = this.checkCaller(scope.rpc, credentials);
    if (scope.rpc !== 'Watch' || !authenticator.needsKeys) return;
    scope.recheck = () => void (scope.principal = authenticator.identify(credentials));
  }

  /** Accepts a caller without a key, on a listener that only the owner can reach. */
  trust(): void {
    if (this.#draining) throw shuttingDown();
  }

  /** Runs a unary call. Returns the response directly when the method is synchronous. */
  unary<Rpc extends UnaryRpc>(
    scope: CallScope,
    rpc: Rpc,
    request: Request<Rpc>,
  ): Promise<ResponseMessage<Rpc>> | ResponseMessage<Rpc> {
    checkScope(scope.principal, rpc, request);
    const leave = this.parts.admission.enter(rpc);
    let answer: Promise<ResponseMessage<Rpc>> | ResponseMessage<Rpc>;
    try {
      const method: UnaryMethods[Rpc] = this.parts.service[rpc];
      answer = method(request, scope);
    } catch (error) {
      leave();
      throw error;
    }
    if (answer instanceof Promise) return leaveAfter(answer, leave);
    leave();
    return answer;
  }

  /** Runs a streaming call; `deliver` consumes its messages and may stop early. */
  async stream<Rpc extends StreamingRpc>(
    scope: CallScope,
    rpc: Rpc,
    request: Request<Rpc>,
    deliver: (messages: AsyncIterable<ResponseMessage<Rpc>>) => Promise<void>,
  ): Promise<void> {
    checkScope(scope.principal, rpc, request);
    this.#keepChecking(scope, rpc, request);
    scope.isFollower = 'peer' in request && request.peer !== undefined;
    const leave = this.parts.admission.enter(rpc, scope.isFollower);
    try {
      const method: StreamingMethods[Rpc] = this.parts.service[rpc];
      await deliver(await method(request, scope));
    } finally {
      leave();
      // Releases everything the method still holds for this call.
      scope.abort(callEnded);
    }
  }

  /** Ends a scope, when its response is complete or the caller is gone. */
  close(scope: CallScope, status?: CallStatus): void {
    if (scope.isEnded) return;
    scope.isEnded = true;
    this.#open.delete(scope);
    this.parts.callMetrics.record(scope, status);
    if (this.#onIdle.length === 0 || !this.#isIdle()) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** The status to send for an error. Internal errors are logged in full. */
  explain(scope: CallScope, error: unknown): CallStatus {
    const status = statusOf(error);
    return status.isBug ? this.parts.callMetrics.recordInternalError(scope, error, status) : status;
  }

  /** Ends watches whose key was revoked, has expired or has lost its scope. */
  recheckWatches(): void {
    for (const scope of this.#open) {
      try {
        scope.recheck?.();
      } catch (refusal) {
        scope.abort(refusal);
      }
    }
  }

  #keepChecking<Rpc extends StreamingRpc>(scope: CallScope, rpc: Rpc, request: Request<Rpc>): void {
    const identify = scope.recheck;
    if (!identify) return;
    scope.recheck = () => {
      identify();
      checkScope(scope.principal, rpc, request);
    };
  }

  /** Refuses new calls and ends watches, which would otherwise never end. */
  beginDrain(): void {
    this.#draining = true;
    for (const scope of this.#open) {
      if (scope.rpc === 'Watch' && !scope.isFollower) scope.abort(shuttingDown());
    }
  }

  /** Resolves when only calls of followers are in flight. */
  async idle(): Promise<void> {
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #isIdle(): boolean {
    for (const { isFollower } of this.#open) if (!isFollower) return false;
    return true;
  }

  /** Aborts all calls in flight. */
  cut(): void {
    for (const scope of this.#open) scope.abort(shuttingDown());
  }
}

/** Avoids `await`, whose extra microtasks cost more than the work itself on this hot path. */
function leaveAfter<Answer>(answer: Promise<Answer>, leave: () => void): Promise<Answer> {
  return answer.then(
    (given) => {
      leave();
      return given;
    },
    (error: unknown) => {
      leave();
      throw error;
    },
  );
}

function shuttingDown(): Error {
  return refuse('SHUTTING_DOWN', 'The server is shutting down. Retry when it is back.');
}

type AccessLog = 'all' | 'failures' | 'off';

interface CallMetricsOptions {
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
