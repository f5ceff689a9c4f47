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
