import type { Task } from '../../queue/api.js';

type Attempt = Task['attempts'][number];

export interface TimelineBar {
  attempt: Attempt;
  /** Percent of the width. */
  left: number;
  width: number;
}

export interface Timeline {
  bars: TimelineBar[];
  /** Labels in equal, round steps from the submit on. */
  ticks: { left: number; afterMs: number }[];
}

const maxTicks = 4;
const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000];
const steps = [
  ...[1, 2, 5].flatMap((count) => [count, count * 10, count * 100]).toSorted((a, b) => a - b),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 30].map((count) => count * day),
];

/** Places the attempts on an axis from the submit to the last thing known. */
export function timelineOf(
  { created_at, attempts, next_attempt_at, status }: Task,
  now: number,
): Timeline {
  const start = Math.min(
    Date.parse(created_at),
    ...attempts.map(({ started_at }) => Date.parse(started_at)),
  );
  const ends = attempts.map(({ started_at, duration_ms }) => Date.parse(started_at) + duration_ms);
  if (status === 'IN_FLIGHT') ends.push(now);
  if (status === 'PENDING' && next_attempt_at) ends.push(Date.parse(next_attempt_at));
  const spanMs = Math.max(1, ...ends.map((end) => end - start));
  const percent = (ms: number) => Math.min(100, Math.max(0, (ms / spanMs) * 100));
  return {
    bars: attempts.map((attempt) => ({
      attempt,
      left: percent(Date.parse(attempt.started_at) - start),
      width: percent(attempt.duration_ms),
    })),
    ticks: ticksOf(spanMs).map((afterMs) => ({ left: percent(afterMs), afterMs })),
  };
}

function ticksOf(spanMs: number): number[] {
  const step = steps.find((one) => spanMs / one <= maxTicks) ?? spanMs / maxTicks;
  return Array.from({ length: Math.floor(spanMs / step) + 1 }, (_, index) => index * step);
}
