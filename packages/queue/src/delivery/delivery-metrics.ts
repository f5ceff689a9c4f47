import type { CounterSeries, HistogramSeries, Metrics } from '@millrace/kit/metrics';
import type { BreakerPhase } from '../core/pacing.js';
import type { Outcome } from '../core/outcome.js';
import type { DeadReason } from '../core/task.js';

const durationBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
];
const wakeBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30];
const batchBuckets = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500];
const breakerLevels: Readonly<Record<BreakerPhase, number>> = { closed: 0, half_open: 1, open: 2 };

export type DeliveryMetrics = ReturnType<typeof deliveryMetrics>;

/** What delivery counts, as `millrace_queue_...`. */
export function deliveryMetrics(metrics: Metrics) {
  const queue = ['queue'] as const;
  const inFlight = metrics.gauge({
    name: 'deliveries_in_flight',
    help: 'Tasks that this server is delivering now.',
    labelNames: queue,
  });
  const breaker = metrics.gauge({
    name: 'breaker_state',
    help: 'Circuit breakers of the queue: 0 all closed, 1 one is half open, 2 one is open.',
    labelNames: queue,
  });
  const handlerBreaker = metrics.gauge({
    name: 'handler_breaker_state',
    help: 'Circuit breaker of a handler that kept failing: 0 closed, 1 half open, 2 open.',
    labelNames: ['queue', 'handler_ref'],
  });
  const tripped = new Map<string, Set<string>>();
  const held = metrics.gauge({
    name: 'held',
    help: '1 while the queue is held: its callback URL is off the allowlist or a secret is missing.',
    labelNames: queue,
  });
  return {
    deliveries: metrics.counter({
      name: 'deliveries_total',
      help: 'Callbacks by outcome: succeeded, async, failed, interrupted.',
      labelNames: ['queue', 'outcome'],
    }),
    durations: metrics.histogram({
      name: 'delivery_duration_seconds',
      help: 'Time from the start of a callback to its last byte.',
      labelNames: queue,
      buckets: durationBuckets,
    }),
    retries: metrics.counter({
      name: 'retries_total',
      help: 'Failed attempts that are followed by another.',
      labelNames: queue,
    }),
    dead: metrics.counter({
      name: 'tasks_dead_total',
      help: 'Tasks that were dead-lettered, by reason.',
      labelNames: ['queue', 'reason'],
    }),
    leaseExpiries: metrics.counter({
      name: 'lease_expiries_total',
      help: 'Leases that ran out before their attempt was settled.',
      labelNames: queue,
    }),
    lateAnswers: metrics.counter({
      name: 'late_answers_total',
      help: 'Callbacks that ended after their lease and settled nothing.',
      labelNames: queue,
    }),
    steps: metrics.counter({
      name: 'steps_recorded_total',
      help: 'Steps that handlers recorded.',
      labelNames: queue,
    }),
    wakeDelays: metrics.histogram({
      name: 'wake_up_delay_seconds',
      help: 'Time from the end of a wait of a flow to the claim of its task.',
      labelNames: queue,
      buckets: wakeBuckets,
    }),
    tasksDeleted: metrics.counter({
      name: 'tasks_deleted_total',
      help: 'Finished tasks deleted at the end of their retention.',
      labelNames: ['queue', 'status'],
    }),
    claimBatch: metrics.histogram({
      name: 'claim_batch_size',
      help: 'Tasks that one claim took.',
      buckets: batchBuckets,
    }),
    storeFailures: metrics.counter({
      name: 'delivery_store_failures_total',
      help: 'Calls of the store that failed and were tried again.',
      labelNames: ['call'],
    }),
    setInFlight: (name: string, count: number) => inFlight.set({ queue: name }, count),
    setBreaker: (name: string, phase: BreakerPhase) =>
      breaker.set({ queue: name }, breakerLevels[phase]),
    setHandlerBreaker: (name: string, handler: string, phase: BreakerPhase) => {
      const handlers = tripped.get(name);
      if (handlers) handlers.add(handler);
      else tripped.set(name, new Set([handler]));
      handlerBreaker.set({ queue: name, handler_ref: handler }, breakerLevels[phase]);
    },
    forgetBreaker: (name: string, handler: string) => {
      if (tripped.get(name)?.delete(handler)) {
        handlerBreaker.remove({ queue: name, handler_ref: handler });
      }
    },
    setHeld: (name: string, isHeld: boolean) => held.set({ queue: name }, isHeld ? 1 : 0),
    forget: (name: string) => {
      for (const gauge of [inFlight, breaker, held]) gauge.remove({ queue: name });
      for (const handler of tripped.get(name) ?? []) {
        handlerBreaker.remove({ queue: name, handler_ref: handler });
      }
      tripped.delete(name);
    },
  };
}

/** The series of one queue, looked up once. */
export class QueueSeries {
  readonly #byOutcome = new Map<Outcome['kind'], CounterSeries>();
  readonly #byReason = new Map<DeadReason, CounterSeries>();
  readonly durations: HistogramSeries;
  readonly retries: CounterSeries;
  readonly lateAnswers: CounterSeries;
  readonly leaseExpiries: CounterSeries;
  readonly steps: CounterSeries;
  readonly wakeDelays: HistogramSeries;

  constructor(
    private readonly metrics: DeliveryMetrics,
    private readonly queue: string,
  ) {
    this.durations = metrics.durations.of({ queue });
    this.retries = metrics.retries.of({ queue });
    this.lateAnswers = metrics.lateAnswers.of({ queue });
    this.leaseExpiries = metrics.leaseExpiries.of({ queue });
    this.steps = metrics.steps.of({ queue });
    this.wakeDelays = metrics.wakeDelays.of({ queue });
  }

  delivery(outcome: Outcome['kind']): CounterSeries {
    let series = this.#byOutcome.get(outcome);
    if (!series) {
      series = this.metrics.deliveries.of({ queue: this.queue, outcome });
      this.#byOutcome.set(outcome, series);
    }
    return series;
  }

  dead(reason: DeadReason): CounterSeries {
    let series = this.#byReason.get(reason);
    if (!series) {
      series = this.metrics.dead.of({ queue: this.queue, reason });
      this.#byReason.set(reason, series);
    }
    return series;
  }
}
