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

  /** When an open breaker lets probes through; undefined in other phases. */
  get opensAt(): number | undefined {
    return this.#phase === 'open' ? this.#openUntil : undefined;
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
