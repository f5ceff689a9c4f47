const dayMs = 86_400_000;
const hourMs = 3_600_000;
/** Maximum distance of local midnight from midnight in UTC, in any time zone. */
const [maxBeforeMs, maxAfterMs] = [15 * hourMs, 13 * hourMs];

const maxCached = 10_000;

/** Local days and hours, including daylight saving changes. */
export class LocalTime {
  readonly #cache = new Map<number, number>();
  #format: Intl.DateTimeFormat | undefined;

  /** Default: the zone of this machine. */
  constructor(private readonly zone?: string) {}

  /** Local wall-clock time, encoded as if it were UTC. */
  wall(at: number): number {
    return at + this.#offset(at);
  }

  /** `2026-01-15`. */
  dayLabel(at: number): string {
    return new Date(this.wall(at)).toISOString().slice(0, 10);
  }

  /** `2026-01-15 09:00`. */
  hourLabel(at: number): string {
    return new Date(this.wall(at)).toISOString().slice(0, 16).replace('T', ' ');
  }

  startOfHour(at: number): number {
    return at - (this.wall(at) % hourMs);
  }

  /** The end of the hour that is under way. A zone that moves by half an hour has a short one. */
  nextHour(at: number): number {
    return at + hourMs - (this.wall(at) % hourMs);
  }

  /** Counts days of the calendar; `startOfDay` is its way back. */
  dayNumber(at: number): number {
    return Math.floor(this.wall(at) / dayMs);
  }

  /** The first moment of a day: not always midnight, and not always 24 hours after the last. */
  startOfDay(dayNumber: number): number {
    const midnight = dayNumber * dayMs;
    const [early, late] = [midnight - maxBeforeMs, midnight + maxAfterMs];
    const [before, after] = [this.#offset(early), this.#offset(late)];
    const start = midnight - before;
    if (before === after || this.#offset(start) === before) return start;
    // The clock is set on this day, at midnight or before it.
    const changed = midnight - after;
    return this.#offset(changed) === after ? changed : this.#changeBetween(early, late);
  }

  /** Offset from UTC. */
  #offset(at: number): number {
    const day = Math.floor(at / dayMs);
    const start = this.#offsetAtStartOf(day);
    return start === this.#offsetAtStartOf(day + 1) ? start : this.#exactOffset(at);
  }

  // To ask for the fields of a moment is slow, and no zone sets its clocks twice in a day.
  #offsetAtStartOf(day: number): number {
    const known = this.#cache.get(day);
    if (known !== undefined) return known;
    if (this.#cache.size >= maxCached) this.#cache.clear();
    const offset = this.#exactOffset(day * dayMs);
    this.#cache.set(day, offset);
    return offset;
  }

  #exactOffset(at: number): number {
    const [year, month, day, hour, minute, second] = this.#fields(at);
    const wall = Date.UTC(year!, month! - 1, day, hour, minute, second);
    return wall - Math.floor(at / 1000) * 1000;
  }

  #changeBetween(early: number, late: number): number {
    const before = this.#offset(early);
    let [low, high] = [early, late];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offset(middle) === before) low = middle;
      else high = middle;
    }
    return high;
  }

  #fields(at: number): number[] {
    // Created on first use: Intl takes long to load.
    this.#format ??= fieldsIn(this.zone);
    const parts = this.#format.formatToParts(at);
    const named = Object.fromEntries(parts.map(({ type, value }) => [type, Number(value)]));
    const { year, month, day, hour, minute, second } = named;
    return [year!, month!, day!, hour!, minute!, second!];
  }
}

function fieldsIn(zone: string | undefined): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}

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
