import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';
import { durationStats } from './durations.js';
import { workOf, type Session } from './session.js';
import { coEditedFiles, parallelCandidates } from './file-overlap.js';

type Insights = DaemonSchema<'Insights'>;

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
): Insights {
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
): Insights['busiest_hours'] {
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

function errorRates(ended: readonly Session[]): Insights['error_rates'] {
  type Row = Insights['error_rates'][number];
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
