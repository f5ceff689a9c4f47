import { createHash } from 'node:crypto';
import { monotonicUlids } from '@millrace/kit/ulid';
import type { QueueSchema } from '@millrace/contract/queue';
import { lastOccurrences, occurrencesOf, type Occurrences, type Timing } from './schedule-times.js';

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
