/**
 * How many tasks of a queue started when, over the last second or more: pairs of time and count, the
 * oldest first. A plain value, so that it can be kept with the queue's counters.
 */
export type Starts = readonly (readonly [at: number, count: number])[];

/** Moments are told apart to this, and rounded up: never too many start, and the list is short. */
const stepMs = 20;

/** How many more may start at `now` if `perSecond` may in any second; 0: any number. */
export function mayStart(starts: Starts, now: number, perSecond: number): number {
  if (perSecond === 0) return Infinity;
  let started = 0;
  for (const [at, count] of starts) if (isRecent(at, now, perSecond)) started += count;
  return Math.max(0, Math.ceil(perSecond) - started);
}

/** When one more may start if none may at `now`; undefined if these starts leave room by then. */
export function nextStartAt(starts: Starts, now: number, perSecond: number): number | undefined {
  if (mayStart(starts, now, perSecond) > 0) return undefined;
  const oldest = starts.find(([at]) => isRecent(at, now, perSecond));
  return oldest && Math.ceil(oldest[0] + windowOf(perSecond));
}

export function withStarts(starts: Starts, now: number, count: number, perSecond: number): Starts {
  const moment = Math.ceil(now / stepMs) * stepMs;
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

/** What started far in the future did so before the clock was set back, and no longer counts. */
function isRecent(at: number, now: number, perSecond: number): boolean {
  const windowMs = windowOf(perSecond);
  return at > now - windowMs && at <= now + windowMs;
}

/** A rate that is no whole number is a whole number in a longer time: 0.5 a second, 1 in two. */
function windowOf(perSecond: number): number {
  return (1_000 * Math.ceil(perSecond)) / perSecond;
}
