import type { Log } from '@millrace/kit/log';
import type { Metrics } from '@millrace/kit/metrics';
import type { Outbound } from '@millrace/kit/outbound';
import type { World } from '@millrace/kit/world';
import type { BreakerPhase } from '../core/pacing.js';
import type { Queue, SecretLookup } from '../core/queue.js';
import type { Task } from '../core/task.js';
import { removalOf, type Row, type TaskStore } from '../storage/port/task-store.js';
import type { TaskObserver } from '../background/index.js';
import { Coordinator } from './coordinator.js';
import { credentialsFor } from './callback-request.js';
import { deliveryMetrics } from './delivery-metrics.js';
import { type BreakerChange, type Emit, StoreHealth } from './queue-state.js';
import type { GrpcHandlers } from './grpc-handlers.js';
import {
  HandlerReports,
  type FailReport,
  type ProgressReport,
  type ReportResult,
  type TaskReport,
} from './handler-reports.js';
import { LeaseExpiry, Maintenance, Retention } from './maintenance.js';
import { probe, type ProbeResult } from './probe.js';
import { PulledLeases, PullServer } from './pull-server.js';
import { type PulledTask, type PullRequest, WaitingClaim } from './waiting-claims.js';
import { WorkerActivity, workerKey, type WorkerStats } from './worker-activity.js';
import { waitingFor, waitingForAll, type WaitingFor } from './waiting-for.js';

export interface DeliveryOptions extends World {
  store: TaskStore;
  /** Learns of every settlement and expiry. */
  observer: TaskObserver;
  log: Log;
  outbound: Outbound;
  /** Calls the handlers of queues with `protocol: grpc`; absent: those calls fail. */
  grpcHandlers?: GrpcHandlers | undefined;
  findSecret: SecretLookup;
  /** Whether the allowlist still permits the URL. */
  isAllowed: (url: string) => boolean;
  nodeId: string;
  metrics: Metrics;
  /** Tasks that this server runs at the same time, over all queues. */
  maxRunning?: number;
}

export interface HandlerBreaker {
  handler: string;
  phase: BreakerPhase;
  nextProbeAt: number | null;
}

/** The worst is the last. */
const phases: readonly BreakerPhase[] = ['closed', 'half_open', 'open'];
/** How often the breakers of other servers are read, at most. */
const sharedBreakersMs = 1_000;
/** A server that is gone does not close its breakers. */
const breakerMemoryMs = 600_000;
/** A task may wait this long for a worker that is about to claim. */
const overdueMs = 1_000;
const workerGoneMs = 60_000;
const defaultMaxRunning = 10_000;
/** A claim without a wait ends at the latest after this time, if the store does not respond. */
const minClaimMs = 2_000;
/** Time for the store to take back aborted tasks, after the drain timeout. */
const handBackMs = 5_000;

/** Sends due tasks to their handlers and settles them by the answers. */
export class Delivery {
  #sharedBreakers: readonly Row[] = [];
  #breakersReadAt = -Infinity;
  readonly #coordinator: Coordinator;
  readonly #maintenance: Maintenance;
  readonly #retention: Retention;
  readonly #reports: HandlerReports;
  readonly #workers: WorkerActivity;
  readonly #pulledLeases: PulledLeases;
  #stopListening: (() => void) | undefined;
  #stopped: Promise<void> | undefined;

  constructor(private readonly options: DeliveryOptions) {
    const { store, observer, clock, random, log } = options;
    const metrics = deliveryMetrics(options.metrics);
    const health = new StoreHealth(log, random, metrics);
    const emit: Emit = (event) => this.#coordinator.handle(event);
    const knownQueues = () => this.#coordinator.queues.keys();
    this.#retention = new Retention({ store, clock, metrics, knownQueues });
    const workers = new WorkerActivity({ store, clock, log });
    const pulledLeases = new PulledLeases(clock, store.capabilities.isShared === true);
    this.#workers = workers;
    this.#pulledLeases = pulledLeases;
    const onLeaseExpired = (queue: string, token: string) => {
      pulledLeases.ended(token, 'bad');
      workers.expired(queue, token);
    };
    const leaseExpiry = new LeaseExpiry({
      store,
      observer,
      clock,
      random,
      onLeaseExpired,
      emit,
    });
    const retention = this.#retention;
    this.#maintenance = new Maintenance({ store, clock, health, leaseExpiry, retention, emit });
    const maxRunning = options.maxRunning ?? defaultMaxRunning;
    const pullServer = new PullServer({
      ...options,
      metrics,
      workers,
      leases: pulledLeases,
      leaseTaken: (leaseMs) => this.#maintenance.leaseTaken(leaseMs),
    });
    const breakerChanged = (change: BreakerChange) => void this.#noteBreaker(change);
    const parts = { ...options, metrics, health, maxRunning, pullServer, breakerChanged };
    this.#coordinator = new Coordinator(parts, this.#maintenance);
    const { inFlight } = this.#coordinator;
    this.#reports = new HandlerReports({
      store,
      observer,
      clock,
      random,
      inFlight,
      pulledLeases,
      workers,
      emit,
    });
  }

  /** Resolves after the first scan of the store; a store that fails is retried. */
  async start(): Promise<void> {
    const { store } = this.options;
    const stops = [
      store.onWork((queue, handlers) => this.workArrived(queue, handlers)),
      store.onCancelled((id) => this.#coordinator.inFlight.abort(id)),
    ];
    this.#stopListening = () => stops.forEach((stop) => stop());
    await this.#maintenance.start();
  }

  /** A queue's config, pause or secrets changed. */
  queueChanged(queue: string): void {
    this.#retention.queueChanged(queue);
    this.#coordinator.handle({ kind: 'config_changed', queue });
  }

  queueDeleted(queue: string): void {
    this.#workers.forget(queue);
    this.queueChanged(queue);
  }

  /** `handlers`: those that may have work; undefined: any. */
  workArrived(queue: string, handlers?: ReadonlySet<string>): void {
    this.#coordinator.handle({ kind: 'submitted', queue, handlers });
  }

  /** An operator cancelled tasks of the queue; `leaseToken`: the one that is revoked, if any. */
  cancelled(queue: string, count: number, leaseToken?: string): void {
    if (leaseToken !== undefined) {
      this.#pulledLeases.ended(leaseToken, 'unknown');
      this.#workers.revoked(queue, leaseToken);
    }
    this.#coordinator.handle({ kind: 'cancelled', queue, count });
  }

  /** The circuit breakers of the queue on all servers, the worst of each handler and of all. */
  async breakersOf(queue: string): Promise<{ phase: BreakerPhase; handlers: HandlerBreaker[] }> {
    const { store, clock, nodeId } = this.options;
    const own = this.#ownBreakers(queue);
    if (!store.capabilities.isShared) return own;
    const now = clock.now();
    if (now - this.#breakersReadAt > sharedBreakersMs) {
      this.#breakersReadAt = now;
      this.#sharedBreakers = await store.listRows({ table: 'breaker' });
    }
    const worst = new Map(own.handlers.map((each) => [each.handler, each]));
    for (const row of this.#sharedBreakers) {
      const { at, ...other } = row.value as HandlerBreaker & { at: number };
      const isOld = Math.max(at, other.nextProbeAt ?? 0) < now - breakerMemoryMs;
      if (row.queue !== queue || row.key.startsWith(`${nodeId} `) || isOld) continue;
      const known = worst.get(other.handler)?.phase ?? 'closed';
      if (phases.indexOf(other.phase) > phases.indexOf(known)) worst.set(other.handler, other);
    }
    const handlers = [...worst.values()];
    const rank = Math.max(0, ...handlers.map(({ phase }) => phases.indexOf(phase)));
    return { phase: phases[rank]!, handlers };
  }

  /** Records the event, and stores the state where other servers show it. */
  async #noteBreaker({ queue, handler, phase, taskId }: BreakerChange): Promise<void> {
    const { store, clock, nodeId, log } = this.options;
    // The breaker calls while it changes.
    await Promise.resolve();
    const now = clock.now();
    const found = this.#ownBreakers(queue).handlers.find((each) => each.handler === handler);
    const nextProbeAt = found?.nextProbeAt ?? null;
    const event = { at: now, queue, taskId, handlerRef: handler, attempt: 0 } as const;
    const row = { table: 'breaker', queue, key: `${nodeId} ${handler}` } as const;
    const value = { handler, phase, nextProbeAt, at: now };
    try {
      const detail = { breaker: { state: phase, nextProbeAt } };
      await store.noteEvent({ ...event, type: 'breaker', detail });
      if (!store.capabilities.isShared) return;
      const isClosed = phase === 'closed';
      await store.writeRows(
        isClosed ? { removals: [removalOf(row)], now } : { puts: [{ ...row, value }], now },
      );
    } catch (error) {
      log.warn({ err: error, queue, handler_ref: handler }, 'failed to note a circuit breaker');
    }
  }

  #ownBreakers(queue: string): { phase: BreakerPhase; handlers: HandlerBreaker[] } {
    const { clock } = this.options;
    const breakers = this.#coordinator.queues.get(queue)?.breakers;
    const wallTime = clock.now() - clock.monotonic();
    const handlers = (breakers?.all() ?? []).map(({ handler, phase, probesAt }) => {
      return { handler, phase, nextProbeAt: probesAt === undefined ? null : wallTime + probesAt };
    });
    return { phase: breakers?.worst ?? 'closed', handlers };
  }

  /** Whether tasks of a pull queue are due and no worker has been seen for a minute. */
  async hasNoWorker({ name, config }: Queue, oldestDueAt: number | null): Promise<boolean> {
    const now = this.options.clock.now();
    if (config.callback.protocol !== 'pull' || oldestDueAt === null) return false;
    if (oldestDueAt > now - overdueMs || this.#coordinator.queue(name).waiting.hasClaims) {
      return false;
    }
    const workers = await this.#workers.list(name);
    return !workers.some(({ lastSeenAt }) => lastSeenAt > now - workerGoneMs);
  }

  /** Why a PENDING task is not running. */
  waitingFor(task: Task, queue: Queue): Promise<WaitingFor> {
    return waitingFor(task, queue, this.#waitingOptions(queue));
  }

  /** The same for all PENDING tasks among those of one queue, by id. */
  waitingForAll(tasks: readonly Task[], queue: Queue): Promise<Map<string, WaitingFor>> {
    return waitingForAll(tasks, queue, this.#waitingOptions(queue));
  }

  #waitingOptions(queue: Queue) {
    const { store, clock } = this.options;
    const state = this.#coordinator.queue(queue.name);
    const isHeld = !credentialsFor(queue, this.options).ok;
    const hasNoWorker = (dueAt: number | null) => this.hasNoWorker(queue, dueAt);
    return { store, clock, state, isHeld, hasNoWorker };
  }

  /** Claims tasks of a pull queue, and waits for the first one. */
  async claim(queue: string, request: PullRequest): Promise<readonly PulledTask[]> {
    this.#workers.seen(queue, request);
    const state = this.#coordinator.queue(queue);
    const isFirst = !state.knowsPayloads;
    const tasks = await this.#claim(queue, request);
    if (!isFirst || tasks.length === 0) return tasks;
    // A first claim is kept small until the size of the tasks is known.
    const limit = Math.min(request.limit, state.maxTasksBySize) - tasks.length;
    if (limit <= 0) return tasks;
    return [...tasks, ...(await this.#claim(queue, { ...request, limit, waitMs: 0 }))];
  }

  async #claim(queue: string, request: PullRequest): Promise<readonly PulledTask[]> {
    const { clock } = this.options;
    const { signal, waitMs } = request;
    if (signal?.aborted) return [];
    return new Promise((resolve) => {
      const claim = new WaitingClaim(request, workerKey(queue, request), (tasks) => {
        timer.cancel();
        signal?.removeEventListener('abort', disconnected);
        this.#coordinator.removeClaim(queue, claim);
        resolve(tasks);
      });
      const disconnected = () => claim.end([]);
      const timer = clock.after(waitMs === 0 ? minClaimMs : waitMs, () => claim.endWait());
      signal?.addEventListener('abort', disconnected);
      this.#coordinator.addClaim(queue, claim);
    });
  }

  /** How many claims of a principal wait for tasks of the queue. */
  waitingClaims(queue: string, principal: string): number {
    return this.#coordinator.queue(queue).waiting.countOf(principal);
  }

  /** The queue of a task that a worker of this server holds, if it need not be read. */
  queueOfLease(id: string, token: string): Queue | undefined {
    return this.#pulledLeases.find(id, token)?.state.activeQueue;
  }

  /** The queue as the last claim found it, if it need not be read again. */
  knownQueue(name: string): Queue | undefined {
    return this.#coordinator.queues.get(name)?.activeQueue;
  }

  /** Calls the listener with the token of each lease of a worker that ends on this server. */
  onPulledLeaseEnded(listener: (token: string) => void): () => void {
    return this.#pulledLeases.onEnded(listener);
  }

  /** The workers of a queue that were seen in the last ten minutes. */
  workers(queue: string): Promise<WorkerStats[]> {
    return this.#workers.list(queue);
  }

  /** Tasks of a claim that did not reach their worker can be claimed again at once. */
  async handBack(claimed: readonly { id: string; token: string }[]): Promise<void> {
    await this.#reports.handBack(claimed).catch((error: unknown) => {
      const { log } = this.options;
      log.warn({ err: error, tasks: claimed.length }, 'claimed tasks wait for lease expiry');
    });
  }

  /** The worker of these tasks is gone: they can be claimed again at once. */
  async abandon(claimed: readonly { id: string; token: string }[]): Promise<void> {
    await this.#reports.abandon(claimed).catch((error: unknown) => {
      const { log } = this.options;
      log.warn({ err: error, tasks: claimed.length }, 'abandoned tasks wait for lease expiry');
    });
  }

  async settleAll(queue: Queue, reports: readonly TaskReport[]): Promise<ReportResult[]> {
    const results = await this.#reports.settleAll(queue, reports);
    reports.forEach(({ steps }, i) => {
      if (steps && typeof results[i] === 'object') this.stepsRecorded(queue.name, steps.length);
    });
    return results;
  }

  complete(id: string, token: string, result?: string): Promise<ReportResult> {
    return this.#reports.complete(id, token, result);
  }

  fail(id: string, token: string, report: FailReport): Promise<ReportResult> {
    return this.#reports.fail(id, token, report);
  }

  stepsRecorded(queue: string, count: number): void {
    this.#coordinator.queue(queue).series.steps.inc(count);
  }

  extend(
    id: string,
    token: string,
    extendMs: number,
    progress?: ProgressReport,
  ): Promise<ReportResult> {
    return this.#reports.extend(id, token, extendMs, progress);
  }

  /** Sends one test request to the queue's callback. */
  probe(queue: Queue): Promise<ProbeResult> {
    return probe(queue, this.options);
  }

  /**
   * Graceful shutdown: claims nothing more, waits for running callbacks, aborts the rest after the
   * timeout and hands their tasks back, which does not count as an attempt.
   */
  stop({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    this.#stopped ??= this.#stop(timeoutMs);
    return this.#stopped;
  }

  async #stop(timeoutMs: number): Promise<void> {
    const { clock, log } = this.options;
    const { inFlight } = this.#coordinator;
    this.#stopListening?.();
    this.#coordinator.handle({ kind: 'stop' });
    const drain = clock.after(timeoutMs, () => {
      log.info({ running: inFlight.count }, 'drain timeout: aborting callbacks');
      inFlight.abortAll();
    });
    let giveUp = drain;
    const gaveUp = new Promise<void>((resolve) => {
      giveUp = clock.after(timeoutMs + handBackMs, () => {
        log.error({ running: inFlight.count }, 'shutdown timeout: tasks wait for lease expiry');
        this.#coordinator.giveUp();
        resolve();
      });
    });
    await Promise.race([Promise.all([this.#coordinator.idle(), this.#maintenance.stop()]), gaveUp]);
    drain.cancel();
    giveUp.cancel();
    this.#pulledLeases.stop();
    await this.#workers.stop();
  }
}
