/* Days and hours in the time zone of this machine, daylight saving changes included. */

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** Local wall-clock time, encoded as if it were UTC. */
export function wallTime(at: number): number {
  return at - new Date(at).getTimezoneOffset() * 60_000;
}

/** `2026-01-15`. */
export function dayLabel(at: number): string {
  return new Date(wallTime(at)).toISOString().slice(0, 10);
}

/** `2026-01-15 09:00`. */
export function hourLabel(at: number): string {
  return new Date(wallTime(at)).toISOString().slice(0, 16).replace('T', ' ');
}

/** Counts days of the calendar; `startOfDay` is its way back. */
export function dayNumber(at: number): number {
  return Math.floor(wallTime(at) / dayMs);
}

/** The first moment of a day: not always midnight, and not always 24 hours after the last. */
export function startOfDay(day: number): number {
  const date = new Date(day * dayMs);
  return new Date(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()).getTime();
}

export type Granularity = 'day' | 'hour';

export interface Interval {
  /** Unix milliseconds; it ends where the next one starts. */
  start: number;
  label: string;
}

/** `savings_buckets_max` of the contract. */
export const maxIntervals = 1_500;

const widthMs: Readonly<Record<Granularity, number>> = { day: dayMs, hour: hourMs };

/** The day or the hour of `from`, that of `to`, and all between; the newest if they are too many. */
export function intervalsOf(
  granularity: Granularity,
  { from, to }: { from: number; to: number },
): Interval[] {
  // A day may have 25 hours; without this limit a range could start in year 1.
  const earliest = Math.max(from, to - (maxIntervals + 2) * widthMs[granularity]);
  const starts = granularity === 'day' ? days(earliest, to) : hours(earliest, to);
  return starts.slice(-maxIntervals).map((start) => ({
    start,
    label: granularity === 'day' ? dayLabel(start) : hourLabel(start),
  }));
}

function days(from: number, to: number): number[] {
  const starts: number[] = [];
  for (let day = dayNumber(from); ; day++) {
    const start = startOfDay(day);
    if (start > to) return starts;
    // A zone that crosses the date line leaves out a day.
    if (start !== starts.at(-1)) starts.push(start);
  }
}

function hours(from: number, to: number): number[] {
  const starts: number[] = [];
  // A zone that moves by half an hour has a short one.
  const sinceStart = (at: number) => wallTime(at) % hourMs;
  for (let at = from - sinceStart(from); at <= to; at += hourMs - sinceStart(at)) starts.push(at);
  return starts;
}

/** The interval of a time. Times before the first or after the last count for those. */
export function indexOf(intervals: readonly Interval[], at: number): number {
  let [low, high] = [0, intervals.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (intervals[middle]!.start <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
