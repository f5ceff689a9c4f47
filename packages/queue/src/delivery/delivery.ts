import type { Log } from '@millrace/kit/log';
import type { Metrics } from '@millrace/kit/metrics';
import type { Outbound } from '@millrace/kit/outbound';
import type { World } from '@millrace/kit/world';
import type { BreakerPhase } from '../core/breaker.js';
import type { Queue, SecretLookup } from '../core/queue.js';
import type { Task } from '../core/task.js';
import type { TaskStore } from '../storage/task-store.js';
import { Agenda } from './agenda.js';
import { AsyncWork, type AsyncResult, type FailReport } from './async-work.js';
import { credentialsOf } from './credentials.js';
import { deliveryMetrics } from './delivery-metrics.js';
import { Dispatcher } from './dispatcher.js';
import { probe, type ProbeResult } from './probe.js';
import { Retention } from './retention.js';
import { Runner } from './runner.js';
import { Settler } from './settler.js';
import { StoreHealth } from './store-health.js';
import { Upkeep } from './upkeep.js';
import { waitingFor, type WaitingFor } from './waiting-for.js';

export interface DeliveryOptions extends World {
  store: TaskStore;
  log: Log;
  outbound: Outbound;
  /** The value of a secret that is open to the queue; undefined when there is none. */
  findSecret: SecretLookup;
  /** Whether the allowlist still opens the URL. */
  isAllowed: (url: string) => boolean;
  nodeId: string;
  metrics: Metrics;
  /** Tasks that this server runs at the same time, over all queues. */
  maxRunning?: number;
}

/** How long the store is given to take back what was broken off, after the drain time. */
const handBackMs = 5_000;

/** Brings due tasks to their handlers and settles them by what comes back. */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #dispatcher: Dispatcher;
  readonly #runner: Runner;
  readonly #settler: Settler;
  readonly #agenda: Agenda;
  readonly #retention: Retention;
  readonly #asyncWork: AsyncWork;
  #stopListening: (() => void) | undefined;
  #stopped: Promise<void> | undefined;
  #whenIdle: (() => void) | undefined;

  constructor(options: DeliveryOptions) {
    const { store, clock, random, log, outbound, findSecret, isAllowed, nodeId } = options;
    this.#options = options;
    const metrics = deliveryMetrics(options.metrics);
    const health = new StoreHealth(log, random, metrics);
    const lane = (name: string) => this.#dispatcher.lane(name);
    const wake = (woken: ReturnType<typeof lane>) => this.#dispatcher.wake(woken);
    this.#settler = new Settler({
      store,
      clock,
      health,
      ending: (runs) => this.#dispatcher.ending(runs),
      ended: (ending, result) => this.#runner.settled(ending, result),
      wake,
      afterGroup: () => {
        this.#dispatcher.pump();
        this.#noticeIdle();
      },
    });
    this.#runner = new Runner({
      store,
      clock,
      random,
      outbound,
      health,
      settler: this.#settler,
      pump: () => this.#dispatcher.pump(),
      release: (run) => {
        this.#dispatcher.release(run);
        this.#noticeIdle();
      },
    });
    this.#dispatcher = new Dispatcher({
      store,
      clock,
      random,
      log,
      metrics,
      health,
      nodeId,
      findSecret,
      isAllowed,
      runner: this.#runner,
      maxRunning: options.maxRunning ?? 10_000,
      leaseTaken: (lastsMs) => this.#agenda.upkeepIn(lastsMs),
      cameShort: () => this.#agenda.plan(),
      ended: () => this.#noticeIdle(),
    });
    const lanes = () => this.#dispatcher.lanes.values();
    this.#retention = new Retention({ store, clock, metrics, lanes, lane });
    const upkeep = new Upkeep({ store, clock, random, lane, wake });
    const { dispatcher, retention } = { dispatcher: this.#dispatcher, retention: this.#retention };
    this.#agenda = new Agenda({ store, clock, health, dispatcher, upkeep, retention });
    const runOf = (token: string) => this.#runner.runs.get(token);
    this.#asyncWork = new AsyncWork({ store, clock, random, runOf, lane, wake });
  }

  /** Resolves when what was waiting has been looked at once; a store that fails is asked again. */
  async start(): Promise<void> {
    this.#stopListening = this.#options.store.onWork((queue) => this.workArrived(queue));
    await this.#agenda.start();
  }

  /** A queue's config or pause was changed. */
  queueChanged(name: string): void {
    const lane = this.#dispatcher.lane(name);
    lane.nextSweepAt = 0;
    lane.isStale = true;
    this.#dispatcher.wake(lane);
  }

  workArrived(name: string): void {
    this.#dispatcher.wake(this.#dispatcher.lane(name));
  }

  /** How the circuit breaker of a queue stands on this server. */
  breakerOf(name: string): BreakerPhase {
    return this.#dispatcher.lanes.get(name)?.breaker?.phase ?? 'closed';
  }

  /** Why a PENDING task is not running. */
  waitingFor(task: Task, queue: Queue): Promise<WaitingFor> {
    const { store, clock } = this.#options;
    const lane = (name: string) => this.#dispatcher.lane(name);
    return waitingFor(task, queue, { store, clock, lane, isHeld: (held) => this.#isHeld(held) });
  }

  complete(id: string, token: string): Promise<AsyncResult> {
    return this.#asyncWork.complete(id, token);
  }

  fail(id: string, token: string, report: FailReport): Promise<AsyncResult> {
    return this.#asyncWork.fail(id, token, report);
  }

  extend(id: string, token: string, extendMs: number): Promise<AsyncResult> {
    return this.#asyncWork.extend(id, token, extendMs);
  }

  /** Sends one request to the queue's callback and says what came back. */
  probe(queue: Queue): Promise<ProbeResult> {
    return probe(queue, this.#options);
  }

  /**
   * Claims nothing more, gives running callbacks so long to end, hands back those that did not, and
   * resolves when the store knows, or cannot be told. Nothing of this counts as an attempt.
   */
  stop({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    this.#stopped ??= this.#stop(timeoutMs);
    return this.#stopped;
  }

  async #stop(timeoutMs: number): Promise<void> {
    this.#stopListening?.();
    this.#dispatcher.stop();
    this.#runner.stop();
    this.#retention.stop();
    const idle = new Promise<void>((resolve) => (this.#whenIdle = resolve));
    const timers = this.#breakOffAfter(timeoutMs);
    this.#noticeIdle();
    await Promise.race([Promise.all([idle, this.#agenda.stop()]), timers.givenUp]);
    timers.cancel();
  }

  #breakOffAfter(timeoutMs: number): { givenUp: Promise<void>; cancel: () => void } {
    const { clock, log } = this.#options;
    const drain = clock.after(timeoutMs, () => {
      log.info({ running: this.#runner.count }, 'breaking off callbacks to hand their tasks back');
      this.#runner.abort();
    });
    let giveUp = drain;
    const givenUp = new Promise<void>((resolve) => {
      giveUp = clock.after(timeoutMs + handBackMs, () => {
        const message =
          'the store could not be told of all tasks; those left wait for their leases';
        log.error({ running: this.#runner.count }, message);
        this.#settler.giveUp();
        this.#runner.giveUp();
        resolve();
      });
    });
    const cancel = () => {
      drain.cancel();
      giveUp.cancel();
    };
    return { givenUp, cancel };
  }

  #noticeIdle(): void {
    if (this.#whenIdle && this.#dispatcher.isIdle) this.#whenIdle();
  }

  #isHeld(queue: Queue): boolean {
    const { callback } = queue.config;
    const { isAllowed, findSecret } = this.#options;
    return !isAllowed(callback.url) || !credentialsOf(queue.name, callback, findSecret).ok;
  }
}
