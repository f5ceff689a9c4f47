import { Cron } from 'croner';
import { Zone } from './time-zone.js';

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
