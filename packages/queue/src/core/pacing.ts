import type { TargetHealth } from './outcome.js';
import type { QueueConfig } from './queue.js';

export type BreakerSettings = QueueConfig['circuit_breaker'];
export type BreakerPhase = 'closed' | 'open' | 'half_open';

const probes = 3;
const slotsPerWindow = 10;

interface Slot {
  number: number;
  calls: number;
  bad: number;
}

/**
 * Circuit breaker of a callback target. Closed: calls pass and are counted over a sliding window.
 * Open: no call passes for `open_ms`. Half open: three probes pass; it closes if all succeed and
 * opens again if one fails. Times are monotonic.
 */
export class Breaker {
  #phase: BreakerPhase = 'closed';
  /** Number of phase changes: results of calls from an earlier phase are ignored. */
  #phaseCount = 0;
  #slots: Slot[] = [];
  #openUntil = 0;
  #probesUnderway = 0;
  #probesPassed = 0;

  constructor(readonly settings: BreakerSettings) {}

  get phase(): BreakerPhase {
    return this.#phase;
  }

  /** When an open or half-open breaker lets probes through; undefined if it is closed. */
  get probesAt(): number | undefined {
    return this.#phase === 'closed' ? undefined : this.#openUntil;
  }

  /** How many calls may start now. Turns an open breaker half open after `open_ms`. */
  allowance(now: number): number {
    if (!this.settings.enabled) return Infinity;
    if (this.#phase === 'open' && now >= this.#openUntil) this.#enter('half_open');
    if (this.#phase === 'closed') return Infinity;
    if (this.#phase === 'open') return 0;
    return probes - this.#probesPassed - this.#probesUnderway;
  }

  /** Registers the start of a call. Pass the returned mark to `end`. */
  start(): number {
    if (this.#phase === 'half_open') this.#probesUnderway++;
    return this.#phaseCount;
  }

  /** Registers the end of the call that started with this mark. */
  end(mark: number, health: TargetHealth, now: number): void {
    if (mark !== this.#phaseCount || !this.settings.enabled) return;
    if (this.#phase === 'half_open') this.#endProbe(health, now);
    else if (this.#phase === 'closed' && health !== 'unknown') this.#count(health, now);
  }

  #endProbe(health: TargetHealth, now: number): void {
    this.#probesUnderway--;
    if (health === 'bad') return this.#open(now);
    if (health === 'good' && ++this.#probesPassed === probes) this.#enter('closed');
  }

  #count(health: TargetHealth, now: number): void {
    const slot = this.#slotOf(now);
    slot.calls++;
    if (health === 'bad') slot.bad++;
    let [calls, bad] = [0, 0];
    for (const each of this.#slots) {
      calls += each.calls;
      bad += each.bad;
    }
    const { min_requests: minRequests, failure_ratio: ratio } = this.settings;
    if (calls >= minRequests && bad / calls >= ratio) this.#open(now);
  }

  #slotOf(now: number): Slot {
    const number = Math.floor((now * slotsPerWindow) / this.settings.window_ms);
    const newest = this.#slots.at(-1);
    if (newest?.number === number) return newest;
    const slot = { number, calls: 0, bad: 0 };
    this.#slots = this.#slots.filter((old) => old.number > number - slotsPerWindow);
    this.#slots.push(slot);
    return slot;
  }

  #open(now: number): void {
    this.#enter('open');
    this.#openUntil = now + this.settings.open_ms;
  }

  #enter(phase: BreakerPhase): void {
    this.#phase = phase;
    this.#phaseCount++;
    this.#slots = [];
    this.#probesUnderway = 0;
    this.#probesPassed = 0;
  }
}

const maxHandlers = 1_000;

/** A part of a claim: at most `max` tasks of these handlers, or of all but some. */
export interface ClaimPart {
  max: number;
  handlers?: readonly string[] | undefined;
  excludedHandlers?: readonly string[] | undefined;
}

/** The circuit breakers of a queue, one for each handler: a failing handler delays no other. */
export class Breakers {
  readonly #byHandler = new Map<string, Breaker>();
  /** Handlers whose breaker is not closed. */
  readonly #tripped = new Set<string>();

  constructor(
    readonly settings: BreakerSettings,
    private readonly onChange: (handler: string, from: BreakerPhase, to: BreakerPhase) => void,
  ) {}

  get worst(): BreakerPhase {
    let worst: BreakerPhase = 'closed';
    for (const handler of this.#tripped) {
      if (this.#byHandler.get(handler)!.phase === 'open') return 'open';
      worst = 'half_open';
    }
    return worst;
  }

  all(): { handler: string; phase: BreakerPhase; probesAt: number | undefined }[] {
    return [...this.#byHandler].map(([handler, { phase, probesAt }]) => {
      return { handler, phase, probesAt };
    });
  }

  /** Registers the start of a call. Pass the returned mark to `end`. */
  start(handler: string): number {
    if (!this.settings.enabled) return 0;
    let breaker = this.#byHandler.get(handler);
    if (!breaker) {
      this.#makeRoom();
      this.#byHandler.set(handler, (breaker = new Breaker(this.settings)));
    }
    return breaker.start();
  }

  /** True: the handler may run more now than before. */
  end(handler: string, mark: number, health: TargetHealth, now: number): boolean {
    const breaker = this.#byHandler.get(handler);
    if (!breaker) return false;
    const before = breaker.phase;
    this.#watch(handler, breaker, () => breaker.end(mark, health, now));
    return before === 'half_open';
  }

  /** True: the handler gets nothing now. */
  isBlocked(handler: string, now: number): boolean {
    return this.#tripped.has(handler) && this.#allowance(handler, now) <= 0;
  }

  /** When the next open breaker lets probes through. */
  nextProbeAt(now: number): number | undefined {
    let next = Infinity;
    for (const handler of this.#tripped) {
      const { phase, probesAt = now } = this.#byHandler.get(handler)!;
      if (phase === 'open') next = Math.min(next, probesAt);
    }
    return next === Infinity ? undefined : next;
  }

  /** Splits a claim: probes for each handler that is tried again, and the handlers that work. */
  parts(now: number, handlers?: readonly string[]): ClaimPart[] {
    if (this.#tripped.size === 0) return [{ max: Infinity, handlers }];
    const parts: ClaimPart[] = [];
    for (const handler of this.#tripped) {
      const max = this.#allowance(handler, now);
      const isWanted = !handlers || handlers.includes(handler);
      if (max > 0 && isWanted) parts.push({ max, handlers: [handler] });
    }
    const excludedHandlers = [...this.#tripped];
    const left = handlers?.filter((handler) => !this.#tripped.has(handler));
    if (!left) parts.push({ max: Infinity, excludedHandlers });
    else if (left.length > 0) parts.push({ max: Infinity, handlers: left });
    return parts;
  }

  #allowance(handler: string, now: number): number {
    const breaker = this.#byHandler.get(handler)!;
    return this.#watch(handler, breaker, () => breaker.allowance(now));
  }

  #watch<T>(handler: string, breaker: Breaker, act: () => T): T {
    const before = breaker.phase;
    const result = act();
    if (breaker.phase === before) return result;
    if (breaker.phase === 'closed') this.#tripped.delete(handler);
    else this.#tripped.add(handler);
    this.onChange(handler, before, breaker.phase);
    return result;
  }

  /** Forgets the closed breaker that was created first. */
  #makeRoom(): void {
    if (this.#byHandler.size < maxHandlers) return;
    for (const handler of this.#byHandler.keys()) {
      if (this.#tripped.has(handler)) continue;
      this.#byHandler.delete(handler);
      return;
    }
  }
}

/**
 * Recent starts of a queue's tasks, for the rate limit: pairs of time and count, oldest first. A
 * plain value, so that it can be stored with the queue's counters.
 */
export type Starts = readonly (readonly [at: number, count: number])[];

/** Resolution of the times, rounded up: the limit is never exceeded, and the list is short. */
export const startStepMs = 20;

/** How many more tasks may start at `now` with a limit of `perSecond` (0: no limit). */
export function mayStart(starts: Starts, now: number, perSecond: number): number {
  if (perSecond === 0) return Infinity;
  let started = 0;
  for (const [at, count] of starts) if (isRecent(at, now, perSecond)) started += count;
  return Math.max(0, Math.ceil(perSecond) - started);
}

/** When one more task may start if none may at `now`; undefined if these starts do not block it. */
export function nextStartAt(starts: Starts, now: number, perSecond: number): number | undefined {
  if (mayStart(starts, now, perSecond) > 0) return undefined;
  const oldest = starts.find(([at]) => isRecent(at, now, perSecond));
  return oldest && Math.ceil(oldest[0] + windowOf(perSecond));
}

export function withStarts(starts: Starts, now: number, count: number, perSecond: number): Starts {
  const moment = Math.ceil(now / startStepMs) * startStepMs;
  const recent: [number, number][] = [];
  const add = (at: number, more: number) => {
    const last = recent.at(-1);
    if (last && last[0] === at) last[1] += more;
    else recent.push([at, more]);
  };
  for (const [at, before] of starts) {
    if (isRecent(at, now, perSecond)) add(Math.min(at, moment), before);
  }
  add(moment, count);
  return recent;
}

/** Starts far in the future were recorded before the clock was set back, and do not count. */
function isRecent(at: number, now: number, perSecond: number): boolean {
  const windowMs = windowOf(perSecond);
  return at > now - windowMs && at <= now + windowMs;
}

/** A fractional rate is a whole number over a longer window: 0.5 per second is 1 in two seconds. */
function windowOf(perSecond: number): number {
  return (1_000 * Math.ceil(perSecond)) / perSecond;
}
