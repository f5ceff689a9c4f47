import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { formatTimestamp } from '@millrace/kit/units';
import { parseSince } from '../core/since.js';
import type { Spend } from '../spend/spend.js';
import {
  withOwnSessions,
  coEditedFiles,
  parallelCandidates,
  workOf,
  sessionsOf,
  type Session,
} from './own-sessions.js';

export interface InsightsParts {
  clock: Clock;
  spend: Pick<Spend, 'tally'>;
}

/** Patterns in the history of sessions, from their transcripts and from the daemon itself. */
export class Insights {
  constructor(private readonly parts: InsightsParts) {}

  /** Sessions started at `since` or later; `own` are those of the daemon. */
  async read(
    since: string | undefined,
    own: () => Promise<readonly DaemonSchema<'Session'>[]>,
  ): Promise<InsightsReport> {
    const { clock, spend } = this.parts;
    const from = since === undefined ? undefined : parseSince(since, clock.now());
    const tally = await spend.tally();
    const now = clock.now();
    const sessions = withOwnSessions(sessionsOf(tally), await own(), now);
    return mineInsights(sessions, { since: from, now, hourOf: (at) => new Date(at).getHours() });
  }
}

type InsightsReport = DaemonSchema<'Insights'>;

export interface MineOptions {
  since: number | undefined;
  now: number;
  /** The hour of the local day, 0 to 23. */
  hourOf: (time: number) => number;
}

/** A session without messages for this long counts as ended. */
const silenceMs = 3_600_000;

/** Finds patterns in session history. Deterministic for the same history and time. */
export function mineInsights(
  sessions: readonly Session[],
  { since, now, hourOf }: MineOptions,
): InsightsReport {
  const selected = sessions
    .filter(({ firstAt }) => since === undefined || firstAt >= since)
    .toSorted((a, b) => a.firstAt - b.firstAt || (a.id < b.id ? -1 : 1));
  const ended = selected.filter(({ lastAt, hasEnded }) => hasEnded ?? lastAt <= now - silenceMs);
  const timed = ended.filter(({ isTimed }) => isTimed !== false);
  const byTotal = (keyOf: (session: Session) => string) =>
    [...grouped(timed, keyOf)]
      .map(([key, group]) => durationStats(key, group.map(workOf)))
      .sort((a, b) => b.total_ms - a.total_ms || (a.key < b.key ? -1 : 1));
  return {
    since: since === undefined ? null : formatTimestamp(since),
    generated_at: formatTimestamp(now),
    sessions: selected.length,
    durations: {
      overall: durationStats('all', timed.map(workOf)),
      by_backend: byTotal(({ backend }) => backend),
      by_repo: byTotal(({ repo }) => repo),
    },
    busiest_hours: busiestHours(selected, hourOf),
    error_rates: errorRates(ended),
    co_edited_files: coEditedFiles(selected),
    parallel_candidates: parallelCandidates(ended),
  };
}

function busiestHours(
  sessions: readonly Session[],
  hourOf: MineOptions['hourOf'],
): InsightsReport['busiest_hours'] {
  const hours = new Map<number, { busyMs: number; sessions: Set<Session> }>();
  for (const session of sessions) {
    for (const { from, to } of session.stretches) {
      const hour = hourOf(from);
      const sum = hours.get(hour) ?? { busyMs: 0, sessions: new Set() };
      sum.busyMs += to - from;
      sum.sessions.add(session);
      hours.set(hour, sum);
    }
  }
  return [...hours]
    .map(([hour, sum]) => ({ hour, sessions: sum.sessions.size, busy_ms: sum.busyMs }))
    .sort((a, b) => b.busy_ms - a.busy_ms || a.hour - b.hour);
}

function errorRates(ended: readonly Session[]): InsightsReport['error_rates'] {
  type Row = InsightsReport['error_rates'][number];
  const rowOf = (by: Row['by'], key: string, group: readonly Session[]): Row => {
    const errors = group.filter(({ endsInFailure }) => endsInFailure).length;
    const rate = group.length === 0 ? null : errors / group.length;
    return { by, key, sessions: group.length, errors, rate };
  };
  const rest = (['backend', 'repo', 'model'] as const).flatMap((by) =>
    [...grouped(ended, (session) => session[by])].map(([key, group]) => rowOf(by, key, group)),
  );
  rest.sort(
    (a, b) =>
      (b.rate ?? 0) - (a.rate ?? 0) ||
      b.sessions - a.sessions ||
      (`${a.by} ${a.key}` < `${b.by} ${b.key}` ? -1 : 1),
  );
  return [rowOf('all', 'all', ended), ...rest];
}

function grouped(
  sessions: readonly Session[],
  keyOf: (session: Session) => string,
): Map<string, Session[]> {
  const groups = new Map<string, Session[]>();
  for (const session of sessions) {
    const key = keyOf(session);
    const group = groups.get(key);
    if (group) group.push(session);
    else groups.set(key, [session]);
  }
  return groups;
}

type DurationStats = DaemonSchema<'DurationStats'>;

export function durationStats(key: string, durations: readonly number[]): DurationStats {
  const sorted = durations.toSorted((a, b) => a - b);
  return {
    key,
    sessions: sorted.length,
    p50_ms: rankOf(sorted, 0.5),
    p90_ms: rankOf(sorted, 0.9),
    max_ms: sorted.at(-1) ?? null,
    total_ms: sorted.reduce((sum, each) => sum + each, 0),
  };
}

/** Nearest-rank percentile: always one of the durations. */
function rankOf(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}
