import type { QueueSchema } from '@millrace/contract/queue';
import { monotonicUlids } from '@millrace/kit/ulid';
import { Cron } from 'croner';
import { createHash } from 'node:crypto';

/** A schedule as written, with the field names of the contract and all defaults filled in. */
export type ScheduleDefinition = Required<
  Pick<
    QueueSchema<'ScheduleInput'>,
    'timezone' | 'overlap' | 'catch_up' | 'jitter_ms' | 'description' | 'task'
  >
> &
  Pick<QueueSchema<'ScheduleInput'>, 'cron' | 'every_ms'>;

/** Times are Unix milliseconds; null: not set. */
export interface ScheduleState {
  /** 1 for a new schedule, one more each time it is written. */
  version: number;
  paused: boolean;
  /** Intervals count from here. */
  anchor: number;
  /** Null while paused. */
  nextRunAt: number | null;
  lastRunAt: number | null;
  lastTaskId: string | null;
  /** The last tasks that may run again: not known to have succeeded or to be deleted. */
  openIds: readonly string[];
  /** Who wrote the schedule; the submitter of its tasks. */
  by: string;
  /** Size of the definition as JSON; absent before 0.2.0. */
  bytes?: number;
}

export interface ScheduleKey {
  queue: string;
  /** Of the queue. Clients do not know it, so they cannot use up the ids of runs. */
  incarnation: string;
  name: string;
}

export interface Run {
  /** Of the task. */
  id: string;
  /** When the schedule asked for it. */
  at: number;
  dueAt: number;
}

const maxCaughtUp = 100;
const maxOpenIds = 100;

export function newScheduleState(
  definition: ScheduleDefinition,
  before: { definition: ScheduleDefinition; state: ScheduleState } | undefined,
  { now, by }: { now: number; by: string },
): ScheduleState {
  const { state } = before ?? {};
  const version = (state?.version ?? 0) + 1;
  if (before && state && hasSameTiming(definition, before.definition)) {
    return { ...state, version, by };
  }
  const paused = state?.paused ?? false;
  const nextRunAt = paused ? null : nextRun(definition, now, now);
  return {
    version,
    paused,
    anchor: now,
    nextRunAt,
    lastRunAt: state?.lastRunAt ?? null,
    lastTaskId: state?.lastTaskId ?? null,
    openIds: state?.openIds ?? [],
    by,
  };
}

/** Runs that were missed during a pause are not caught up. */
export function withPause(
  definition: ScheduleDefinition,
  state: ScheduleState,
  paused: boolean,
  now: number,
): ScheduleState {
  if (paused === state.paused) return state;
  return { ...state, paused, nextRunAt: paused ? null : nextRun(definition, now, state.anchor) };
}

/** The state after these runs; at most the last 100 tasks are remembered. */
export function withRuns(state: ScheduleState, runs: readonly Run[]): ScheduleState {
  const last = runs.at(-1);
  if (!last) return state;
  const openIds = [...state.openIds, ...runs.map(({ id }) => id)].slice(-maxOpenIds);
  return { ...state, lastRunAt: last.at, lastTaskId: last.id, openIds };
}

export interface RunPlan {
  /** Those to make now, in order. */
  runs: Run[];
  nextRunAt: number | null;
}

export interface PlanTimes {
  now: number;
  /** A time before this was missed. */
  onTimeSince: number;
}

/** What a schedule whose time has come asks for. */
export function planRuns(
  key: ScheduleKey,
  definition: ScheduleDefinition,
  state: ScheduleState,
  { now, onTimeSince }: PlanTimes,
): RunPlan {
  const occurrences = occurrencesOf(timingOf(definition, state.anchor));
  const from = state.nextRunAt;
  if (from === null || from > now) return { runs: [], nextRunAt: from };
  const runs = caughtUp(occurrences, definition, { from, now, onTimeSince }).map((at) => {
    const id = runId(key, at);
    return { id, at, dueAt: at + jitter(id, definition.jitter_ms) };
  });
  return { runs, nextRunAt: occurrences.next(now) ?? null };
}

function caughtUp(
  occurrences: Occurrences,
  { catch_up: policy }: ScheduleDefinition,
  { from, now, onTimeSince }: PlanTimes & { from: number },
): number[] {
  const max = policy === 'all' ? maxCaughtUp : 1;
  const passed = lastOccurrences(occurrences, { from, to: now, max });
  return policy === 'none' ? passed.filter((at) => at >= onTimeSince) : passed;
}

/** The same for every server, so that none makes the task of a run twice. */
export function runId({ queue, incarnation, name }: ScheduleKey, at: number): string {
  const text = JSON.stringify([queue, incarnation, name, at]);
  const hash = createHash('sha256').update(text).digest();
  return monotonicUlids((bytes) => bytes.set(hash.subarray(0, bytes.length)))(at);
}

/** Derived from the id, so that every server computes the same. */
function jitter(id: string, jitterMs: number): number {
  const hash = createHash('sha256').update(id).digest();
  return Math.floor((hash.readUInt32BE(0) / 2 ** 32) * (jitterMs + 1));
}

interface TimingFields {
  cron?: string | undefined;
  every_ms?: number | undefined;
  timezone: string;
}

/** Null: the expression never matches. Throws a TypeError or RangeError for an invalid one. */
export function nextRun(definition: TimingFields, after: number, anchor: number): number | null {
  return occurrencesOf(timingOf(definition, anchor)).next(after) ?? null;
}

function timingOf({ cron, every_ms: everyMs, timezone }: TimingFields, anchor: number): Timing {
  return cron === undefined ? { everyMs: everyMs!, anchor } : { cron, timezone };
}

function hasSameTiming(one: ScheduleDefinition, other: ScheduleDefinition): boolean {
  return (
    one.cron === other.cron && one.every_ms === other.every_ms && one.timezone === other.timezone
  );
}

/** When a schedule runs: a cron expression in a time zone, or a fixed interval from a start. */
export type Timing =
  { cron: string; timezone: string } | { everyMs: number; /** Not a run itself. */ anchor: number };

/** The instants at which a schedule runs. */
export interface Occurrences {
  /** The first one after a time; undefined: there is none. */
  next(after: number): number | undefined;
}

/** Throws a TypeError that says what is wrong with the expression. */
export function occurrencesOf(timing: Timing): Occurrences {
  if ('everyMs' in timing) return everyInterval(timing.everyMs, timing.anchor);
  return cronOccurrences(timing.cron, new Zone(timing.timezone));
}

function everyInterval(everyMs: number, anchor: number): Occurrences {
  return {
    next: (after) => anchor + Math.max(1, Math.floor((after - anchor) / everyMs) + 1) * everyMs,
  };
}

/**
 * The expression is evaluated on wall-clock time, which croner sees as UTC, and each result is then
 * converted to an instant. A time in the gap of a clock change becomes the end of the gap; a
 * doubled time becomes its first occurrence. croner's own zones skip some times in a gap and run
 * doubled times twice.
 */
function cronOccurrences(expression: string, zone: Zone): Occurrences {
  const cron = parseCron(expression);
  const search = (after: number): number | undefined => {
    let wall = zone.wallTime(after);
    for (;;) {
      const found = cron.nextRun(new Date(wall));
      if (!found) return undefined;
      wall = found.getTime();
      const instant = zone.instant(wall);
      // Not later: the time is doubled and ran at its first occurrence.
      if (instant > after) return instant;
    }
  };
  // An expression that never comes true, such as a 13th that is the last Friday, is searched for
  // 0.2 s: once, not for each call.
  let last: { after: number; next: number | undefined } | undefined;
  return {
    next: (after) => {
      const isKnown = last && after >= last.after && after < (last.next ?? Infinity);
      if (!isKnown) last = { after, next: search(after) };
      return last!.next;
    },
  };
}

const fieldCounts = new Set([5, 6]);

function parseCron(expression: string): Cron {
  const fields = expression.trim().split(/\s+/);
  // croner also accepts dates and years, which end.
  if (!fieldCounts.has(fields.length) && !/^@[a-z]+$/i.test(expression)) {
    throw new TypeError('must have 5 fields (minute hour day month weekday), or 6 with seconds');
  }
  try {
    return new Cron(expression, { timezone: 'UTC', paused: true, mode: '5-or-6-parts' });
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : '';
    throw new TypeError(`is not a cron expression: ${message}`, { cause: error });
  }
}

const firstWindowMs = 60_000;
const windowGrowth = 4;

/** The last occurrences from `from` to `to`, both inclusive, oldest first; at most `max`. */
export function lastOccurrences(
  occurrences: Occurrences,
  { from, to, max }: { from: number; to: number; max: number },
): number[] {
  const first = occurrences.next(from - 1);
  if (first === undefined || first > to) return [];
  // Searches back in growing windows: after a long outage there may be millions.
  for (let windowMs = firstWindowMs; ; windowMs *= windowGrowth) {
    const start = Math.max(from, to - windowMs);
    const found: number[] = [];
    let at = occurrences.next(start - 1);
    for (; at !== undefined && at <= to; at = occurrences.next(at)) found.push(at);
    if (found.length >= max || start === from) return found.slice(-max);
  }
}

const dayMs = 86_400_000;

/** Converts between instants and the wall-clock time of an IANA time zone. */
export class Zone {
  readonly #format: Intl.DateTimeFormat;

  /** Throws a RangeError for an unknown zone. */
  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** What a clock on the wall shows, as if it were UTC. */
  wallTime(instant: number): number {
    const parts: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(instant)) parts[type] = Number(value);
    const { year, month, day, hour, minute, second } = parts as Record<PartName, number>;
    const ms = ((instant % 1000) + 1000) % 1000;
    return Date.UTC(year, month - 1, day, hour, minute, second, ms);
  }

  /**
   * The instant at which a clock on the wall first shows this time; if it never does because the
   * clock is set forward, the first instant after the gap.
   */
  instant(wall: number): number {
    // No zone changes its offset twice within two days.
    const before = this.#offset(wall - dayMs);
    const after = this.#offset(wall + dayMs);
    const candidates = [wall - before, wall - after].filter((at) => this.wallTime(at) === wall);
    if (candidates.length > 0) return Math.min(...candidates);
    let low = wall - Math.max(before, after);
    let high = wall - Math.min(before, after);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.wallTime(middle) < wall) low = middle;
      else high = middle;
    }
    return high;
  }

  #offset(instant: number): number {
    return this.wallTime(instant) - instant;
  }
}

type PartName = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second';
