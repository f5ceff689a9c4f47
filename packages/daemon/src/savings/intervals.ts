import type { LocalTime } from './local-time.js';

export type Granularity = 'day' | 'hour';

export interface Interval {
  /** Unix milliseconds; it ends where the next one starts. */
  start: number;
  label: string;
}

/** `savings_buckets_max` of the contract. */
export const maxIntervals = 1_500;

const widthMs: Readonly<Record<Granularity, number>> = { day: 86_400_000, hour: 3_600_000 };

/** The day or the hour of `from`, that of `to`, and all between; the newest if they are too many. */
export function intervalsOf(
  granularity: Granularity,
  { from, to }: { from: number; to: number },
  local: LocalTime,
): Interval[] {
  // A day may have 25 hours; without this limit a range could start in year 1.
  const earliest = Math.max(from, to - (maxIntervals + 2) * widthMs[granularity]);
  const starts = granularity === 'day' ? days(earliest, to, local) : hours(earliest, to, local);
  return starts.slice(-maxIntervals).map((start) => ({
    start,
    label: granularity === 'day' ? local.dayLabel(start) : local.hourLabel(start),
  }));
}

function days(from: number, to: number, local: LocalTime): number[] {
  const starts: number[] = [];
  for (let day = local.dayNumber(from); ; day++) {
    const start = local.startOfDay(day);
    if (start > to) return starts;
    // A zone that crosses the date line leaves out a day.
    if (start !== starts.at(-1)) starts.push(start);
  }
}

function hours(from: number, to: number, local: LocalTime): number[] {
  const starts: number[] = [];
  for (let start = local.startOfHour(from); start <= to; start = local.nextHour(start)) {
    starts.push(start);
  }
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
