import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { Breaker } from '../core/breaker.js';
import type { TargetHealth } from '../core/outcome.js';
import type { Queue } from '../core/queue.js';
import type { Starts } from '../core/start-window.js';
import { Alarm } from './alarm.js';
import { QueueSeries, type DeliveryMetrics } from './delivery-metrics.js';

export interface LaneTools {
  clock: Clock;
  log: Log;
  metrics: DeliveryMetrics;
}

/** One queue as this server delivers it. All of it may be lost: the store knows the rest. */
export class Lane {
  /** As it was when last read; undefined before that. */
  queue: Queue | undefined;
  breaker: Breaker | undefined;
  /** Tasks that are claimed, or being claimed, by this server and not settled yet. */
  running = 0;
  /** How many of those are being settled and keep no place from being claimed. */
  ending = 0;
  /** Somebody said so, or the last claim left some. */
  mayHaveWork = false;
  isClaiming = false;
  /** By the tasks of the last claim, so not before the first. */
  hasSmallTasks = false;
  /** `queue` may be out of date, and with it every limit: read it again before deciding. */
  isStale = true;
  /** The time of the last claim, as the store was told it. */
  lastClaimAt = -Infinity;
  /** What this server started lately of a queue that has a `dispatch_per_second`. */
  starts: Starts = [];
  /** The last claim got less than was due because of `dispatch_per_second`. */
  isRateLimited = false;
  /** Why the queue is held although it is not paused; undefined when it is not. */
  hold: string | undefined;
  /** When its finished tasks are to be looked through next, by the steady clock. */
  nextSweepAt = 0;
  readonly alarm: Alarm;
  readonly series: QueueSeries;

  constructor(
    readonly name: string,
    private readonly tools: LaneTools,
    wake: (lane: Lane) => void,
  ) {
    this.alarm = new Alarm(tools.clock, () => wake(this));
    this.series = new QueueSeries(tools.metrics, name);
  }

  /** Takes over what the store says about the queue now. */
  adopt(queue: Queue): void {
    const before = this.queue;
    this.queue = queue;
    this.isStale = false;
    if (before && !isOtherTarget(before, queue)) return;
    this.breaker = new Breaker(queue.config.circuit_breaker);
    this.tools.metrics.setBreaker(this.name, 'closed');
  }

  get isFull(): boolean {
    const { queue } = this;
    return queue !== undefined && this.running - this.ending >= queue.config.limits.max_in_flight;
  }

  /** How many calls the circuit breaker lets through now. */
  allowance(): number {
    const { breaker } = this;
    if (!breaker) return Infinity;
    const allowance = this.#watchBreaker(breaker, (now) => breaker.allowance(now));
    // Each time: an alarm that rang for something else meanwhile has forgotten this.
    if (breaker.opensAt !== undefined) {
      this.alarm.ringIn(breaker.opensAt - this.tools.clock.monotonic());
    }
    return allowance;
  }

  callEnded(mark: number, health: TargetHealth): void {
    const { breaker } = this;
    if (breaker) this.#watchBreaker(breaker, (now) => breaker.end(mark, health, now));
  }

  setHold(reason: string | undefined): void {
    if (reason === this.hold) return;
    this.hold = reason;
    this.tools.metrics.setHeld(this.name, reason !== undefined);
    const { log } = this.tools;
    if (reason === undefined) log.info({ queue: this.name }, 'the queue is no longer held');
    else log.warn({ queue: this.name, reason }, `the queue is held, its tasks wait: ${reason}`);
  }

  #watchBreaker<T>(breaker: Breaker, act: (now: number) => T): T {
    const before = breaker.phase;
    const now = this.tools.clock.monotonic();
    const result = act(now);
    if (breaker.phase === before) return result;
    const { log, metrics } = this.tools;
    metrics.setBreaker(this.name, breaker.phase);
    const fields = { queue: this.name, from: before, to: breaker.phase };
    if (breaker.phase === 'open') log.warn(fields, 'the circuit breaker opened: callbacks fail');
    else log.info(fields, `the circuit breaker is ${breaker.phase.replace('_', ' ')}`);
    return result;
  }
}

/** What was learned about one target says nothing about another. */
function isOtherTarget(before: Queue, now: Queue): boolean {
  if (before.incarnation !== now.incarnation) return true;
  if (before.version === now.version) return false;
  const [old, fresh] = [before.config, now.config];
  return (
    old.callback.url !== fresh.callback.url ||
    JSON.stringify(old.circuit_breaker) !== JSON.stringify(fresh.circuit_breaker)
  );
}
