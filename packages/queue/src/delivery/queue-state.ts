import { backoffMs } from '@millrace/kit/backoff';
import type { Clock, Timer } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import {
  type BreakerPhase,
  Breakers,
  type ClaimPart,
  nextStartAt,
  type Starts,
  withStarts,
} from '../core/pacing.js';
import type { TargetHealth, Verdict } from '../core/outcome.js';
import { never } from '../core/flow.js';
import type { Queue } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import type { ClaimRequest } from '../storage/port/task-store.js';
import { type DeliveryMetrics, QueueSeries } from './delivery-metrics.js';
import { WaitingClaims } from './waiting-claims.js';

export interface QueueStateTools {
  clock: Clock;
  log: Log;
  metrics: DeliveryMetrics;
  /** The end of a task changed the circuit breaker of its handler. */
  breakerChanged: (change: BreakerChange) => void;
}

export interface BreakerChange {
  queue: string;
  handler: string;
  phase: BreakerPhase;
  taskId: string;
}

/** Shortest wait for capacity that other servers use up. */
const minRateWaitMs = 20;
const blockedGroupWaitMs = 200;
/** Average payload up to which the store's preferred batch size is used. */
const smallTaskBytes = 4_096;
/** Payloads that a claim for workers should return at most: more takes store and client too long. */
const maxClaimBytes = 16 * 2 ** 20;
/** The same for a first claim if all payloads are as large as the queue allows. */
const maxFirstClaimBytes = 2 * maxClaimBytes;
const defaultMaxPayloadBytes = 2 ** 20;

/** What this server knows of one queue. Nothing here is durable: the store has the rest. */
export class QueueState {
  /** As last read; undefined before the first claim. */
  queue: Queue | undefined;
  breakers: Breakers | undefined;
  /** Tasks that this server has claimed or is claiming, and has not settled. */
  running = 0;
  /** How many of those are being settled and take up no capacity. */
  settling = 0;
  mayHaveWork = false;
  isClaiming = false;
  /** By the tasks of the last claim. */
  hasSmallTasks = false;
  /** Average payload of the last claims; undefined before the first. */
  #payloadBytes: number | undefined;
  /** `queue` may be outdated, and with it every limit: read it before deciding. */
  isStale = true;
  /** The time of the last claim, as sent to the store. */
  lastClaimAt = -Infinity;
  /** `dispatch_per_second` kept the last claim from taking all that was due. */
  isRateLimited = false;
  /** Recent starts on this server, if the queue has a `dispatch_per_second`. */
  #starts: Starts = [];
  #holdReason: string | undefined;
  #endedTask: string | undefined;
  /** Claims of workers, if this is a pull queue. */
  readonly waiting = new WaitingClaims();
  readonly alarm: Alarm;
  readonly series: QueueSeries;

  constructor(
    readonly name: string,
    private readonly tools: QueueStateTools,
    onDue: () => void,
  ) {
    this.alarm = new Alarm(tools.clock, onDue);
    this.series = new QueueSeries(tools.metrics, name);
  }

  /** Takes over the queue as the store has it now. */
  update(queue: Queue): void {
    const before = this.queue;
    this.queue = queue;
    this.isStale = false;
    if (before && !hasOtherTarget(before, queue)) return;
    for (const { handler } of this.breakers?.all() ?? []) {
      this.tools.metrics.forgetBreaker(this.name, handler);
    }
    this.breakers = new Breakers(queue.config.circuit_breaker, (handler, from, to) =>
      this.#breakerChanged(handler, from, to),
    );
    this.tools.metrics.setBreaker(this.name, 'closed');
  }

  /**
   * As last read, to be claimed from; the store refuses if it has changed. Undefined: it must be
   * read first.
   */
  get activeQueue(): Queue | undefined {
    return this.isStale || this.queue?.paused ? undefined : this.queue;
  }

  /** False: a claim could not take anything now. */
  get canClaim(): boolean {
    if (!this.mayHaveWork || this.isClaiming) return false;
    if (this.isStale) return true;
    if (this.#isPull && !this.waiting.canBeServed) return false;
    return !this.#isFull;
  }

  get #isPull(): boolean {
    return this.queue?.config.callback.protocol === 'pull';
  }

  get #isFull(): boolean {
    const { queue } = this;
    return queue !== undefined && this.running - this.settling >= queue.config.limits.max_in_flight;
  }

  get knowsPayloads(): boolean {
    return this.#payloadBytes !== undefined;
  }

  /** How many tasks a claim for workers can take by the size of their payloads. */
  get maxTasksBySize(): number {
    const maxPayload = this.queue?.config.limits.max_payload_bytes ?? defaultMaxPayloadBytes;
    const bytes = this.#payloadBytes;
    const max = bytes === undefined ? maxFirstClaimBytes / maxPayload : maxClaimBytes / bytes;
    return Math.max(1, Math.floor(max));
  }

  /** The parts of a claim that the circuit breakers allow now. */
  claimParts(handlers?: readonly string[]): ClaimPart[] {
    const now = this.tools.clock.monotonic();
    if (!this.breakers) return [{ max: Infinity, handlers }];
    const parts = this.breakers.parts(now, handlers);
    // Set again each time: the alarm may have rung for something else in between.
    const probeAt = this.breakers.nextProbeAt(now);
    if (probeAt !== undefined) this.alarm.ringIn(probeAt - now);
    return parts;
  }

  isBlocked(handler: string): boolean {
    return this.breakers?.isBlocked(handler, this.tools.clock.monotonic()) ?? false;
  }

  callEnded(
    { id, handlerRef: handler }: { id: string; handlerRef: string },
    mark: number,
    health: TargetHealth,
  ): void {
    const now = this.tools.clock.monotonic();
    this.#endedTask = id;
    const hasClosed = this.breakers?.end(handler, mark, health, now);
    this.#endedTask = undefined;
    if (!hasClosed) return;
    // Tasks of this handler were left out of the last claims.
    this.mayHaveWork = true;
    this.waiting.wake(new Set([handler]));
  }

  /** Takes note of what a claim got. */
  claimed(tasks: readonly Pick<WholeTask, 'payload' | 'flow' | 'attempts'>[], now: number): void {
    this.lastClaimAt = now;
    if (tasks.length === 0) return;
    for (const { flow, attempts } of tasks) {
      const wokenAt = flow?.wokenAt;
      // A retry was not woken.
      if (wokenAt === undefined || wokenAt < (attempts.at(-1)?.endedAt ?? 0)) continue;
      this.series.wakeDelays.observe(Math.max(0, now - wokenAt) / 1000);
    }
    const bytes = tasks.reduce((sum, { payload }) => sum + payload.length, 0);
    this.hasSmallTasks = bytes <= smallTaskBytes * tasks.length;
    // Large tasks between small ones are remembered for a while.
    this.#payloadBytes = Math.max(bytes / tasks.length, (this.#payloadBytes ?? 0) / 2);
    const rate = this.queue?.config.limits.dispatch_per_second ?? 0;
    if (rate > 0) this.#starts = withStarts(this.#starts, now, tasks.length, rate);
  }

  /** Counts the end of an attempt, and sets the timer for a retry. */
  settled(verdict: Verdict, at: number): void {
    if (verdict.kind === 'dead') this.series.dead(verdict.reason).inc();
    if (verdict.kind === 'retry') this.series.retries.inc();
    if ('dueAt' in verdict && verdict.dueAt < never) this.alarm.ringIn(verdict.dueAt - at);
  }

  /** Sets the timer for the next due task. True: there may be something to claim now. */
  plan(dueAt: number | undefined, now: number, isFullScan: boolean): boolean {
    if (dueAt === undefined || dueAt > now) {
      this.isRateLimited = false;
      if (dueAt !== undefined) this.alarm.ringIn(dueAt - now);
      return false;
    }
    if (isFullScan || dueAt > this.lastClaimAt) {
      this.isStale ||= isFullScan;
      return true;
    }
    this.#planBlocked(now);
    return false;
  }

  /** Undefined: the queue is not held. */
  setHold(reason: string | undefined): void {
    if (reason === this.#holdReason) return;
    this.#holdReason = reason;
    this.tools.metrics.setHeld(this.name, reason !== undefined);
    const { log } = this.tools;
    if (reason === undefined) log.info({ queue: this.name }, 'queue no longer held');
    else log.warn({ queue: this.name, reason }, 'queue held');
  }

  /** A task was due at the last claim and was not taken, so a limit of the queue blocks it. */
  #planBlocked(now: number): void {
    const config = this.queue?.config;
    if (!config) return;
    const rate = config.limits.dispatch_per_second;
    if (rate > 0) {
      this.isRateLimited = true;
      const startAt = nextStartAt(this.#starts, now, rate);
      // If other servers used up the rate, this one cannot know when it is free: poll.
      if (startAt === undefined) this.alarm.ringIn(pollMs(rate));
      else this.alarm.ringIn(Math.max(startAt - now, 1));
    } else if (hasGroupLimit(config)) {
      // A task that waits behind its group hides what falls due later in other groups.
      this.alarm.ringIn(blockedGroupWaitMs);
    }
  }

  #breakerChanged(handler: string, from: BreakerPhase, to: BreakerPhase): void {
    const { log, metrics } = this.tools;
    metrics.setBreaker(this.name, this.breakers!.worst);
    metrics.setHandlerBreaker(this.name, handler, to);
    const fields = { queue: this.name, handler_ref: handler, from, to };
    if (to === 'open') log.warn(fields, 'circuit breaker opened');
    else log.info(fields, `circuit breaker ${to.replace('_', ' ')}`);
    if (this.#endedTask === undefined) return;
    const change = { queue: this.name, handler, phase: to, taskId: this.#endedTask };
    this.tools.breakerChanged(change);
  }
}

/** Whether a task may have to wait for others of its group. */
export function hasGroupLimit({ ordering, limits }: Queue['config']): boolean {
  return ordering.mode === 'group' || (limits.max_in_flight_per_group ?? 0) > 0;
}

function pollMs(rate: number): number {
  return Math.max(Math.min(1000 / rate, 1000), minRateWaitMs);
}

/** What was learned about one callback target says nothing about another. */
function hasOtherTarget(before: Queue, now: Queue): boolean {
  if (before.incarnation !== now.incarnation) return true;
  if (before.version === now.version) return false;
  const [old, fresh] = [before.config, now.config];
  return (
    old.callback.url !== fresh.callback.url ||
    JSON.stringify(old.circuit_breaker) !== JSON.stringify(fresh.circuit_breaker)
  );
}

interface Claim {
  limit: number;
  now: number;
  nodeId: string;
  leaseMs: number;
  newToken: () => string;
}

/** A claim from this queue, within the limits and the order of its config. */
export function claimRequest(queue: Queue, claim: Claim): ClaimRequest {
  const { limit, now, nodeId, leaseMs, newToken } = claim;
  const { limits, ordering } = queue.config;
  return {
    queue: queue.name,
    expected: queue,
    limit,
    now,
    nodeId,
    leaseExpiresAt: now + leaseMs,
    newToken,
    maxInFlight: limits.max_in_flight,
    dispatchPerSecond: limits.dispatch_per_second,
    fifoGroups: ordering.mode === 'group',
    maxPerGroup: limits.max_in_flight_per_group,
  };
}

/**
 * Claims the parts of a claim one after the other. What the first ones got is returned even if a
 * later one fails: it is claimed.
 */
export async function claimInParts<T>(
  state: QueueState,
  { limit, handlers }: { limit: number; handlers?: readonly string[] | undefined },
  claim: (part: ClaimPart & { limit: number }) => Promise<readonly T[]>,
): Promise<T[]> {
  const tasks: T[] = [];
  for (const part of state.claimParts(handlers)) {
    const left = Math.min(limit - tasks.length, part.max);
    if (left <= 0) break;
    try {
      tasks.push(...(await claim({ ...part, limit: left })));
    } catch (error) {
      if (tasks.length === 0) throw error;
      state.isStale = true;
      state.mayHaveWork = true;
      break;
    }
  }
  return tasks;
}

/** Unguessable, and new with each claim. */
export function newLeaseToken(random: Random): string {
  return `l1.${Buffer.from(random.bytes(18)).toString('base64url')}`;
}

/** Rings once, at the earliest of the requested times. */
export class Alarm {
  #timer: Timer | undefined;
  #at = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly ring: () => void,
  ) {}

  ringIn(delayMs: number): void {
    const at = this.clock.monotonic() + Math.max(0, delayMs);
    if (at >= this.#at) return;
    this.#timer?.cancel();
    this.#at = at;
    this.#timer = this.clock.after(delayMs, () => {
      this.cancel();
      this.ring();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#at = Infinity;
  }
}

const pause = { initialMs: 50, maxMs: 2_000 };

/** Tracks which store calls fail, logs each outage once, and computes the backoff. */
export class StoreHealth {
  readonly #failing = new Set<string>();

  constructor(
    private readonly log: Log,
    private readonly random: Random,
    private readonly metrics: DeliveryMetrics,
  ) {}

  /** Returns the pause before the next try, after this many failures in a row. */
  failed(call: string, error: unknown, failures: number): number {
    this.metrics.storeFailures.inc({ call });
    if (!this.#failing.has(call)) {
      this.#failing.add(call);
      this.log.warn({ call, err: error, reason: messageOf(error) }, 'store call failed, retrying');
    }
    return backoffMs(pause, failures + 1, this.random.next());
  }

  succeeded(call: string): void {
    if (!this.#failing.delete(call)) return;
    this.log.info({ call }, 'store call succeeded again');
  }
}

/** Everything outside the coordinator that can change what it does next. */
export type DeliveryEvent =
  /**
   * The queue may have new work: a submit, a redrive, a resume, also on another server.
   * `handlers`: those that may have it; absent: any.
   */
  | { kind: 'submitted'; queue: string; handlers?: ReadonlySet<string> | undefined }
  /** The timer of the queue rang: a task falls due, a rate or a breaker allows more. */
  | { kind: 'due'; queue: string }
  /** The config, the pause, the allowlist or a secret of the queue changed. */
  | { kind: 'config_changed'; queue: string }
  /** A handler reported the end of its work. */
  | { kind: 'settled'; queue: string; verdict: Verdict; at: number }
  /** A lease ended before its attempt was settled, and the store has recorded that. */
  | { kind: 'lease_expired'; queue: string; verdict: Verdict; at: number }
  /** An operator cancelled tasks. */
  | { kind: 'cancelled'; queue: string; count: number }
  /** A task expired before it was claimed. */
  | { kind: 'task_expired'; queue: string }
  /**
   * The due times of all queues were read. `isFullScan`: cached state may be outdated, so every
   * queue with due tasks is claimed from.
   */
  | { kind: 'planned'; dueByQueue: ReadonlyMap<string, number>; isFullScan: boolean }
  /** A claim failed; the store is left alone for a while. */
  | { kind: 'store_away'; retryInMs: number }
  | { kind: 'store_back' }
  /** Claim nothing more. */
  | { kind: 'stop' };

export type Emit = (event: DeliveryEvent) => void;
