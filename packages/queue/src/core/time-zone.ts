const dayMs = 86_400_000;

/** Converts between instants and the wall-clock time of an IANA time zone. */
export class Zone {
  readonly #format: Intl.DateTimeFormat;

  /** Throws a RangeError for an unknown zone. */
  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** What a clock on the wall shows, as if it were UTC. */
  wallTime(instant: number): number {
    const parts: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(instant)) parts[type] = Number(value);
    const { year, month, day, hour, minute, second } = parts as Record<PartName, number>;
    const ms = ((instant % 1000) + 1000) % 1000;
    return Date.UTC(year, month - 1, day, hour, minute, second, ms);
  }

  /**
   * The instant at which a clock on the wall first shows this time; if it never does because the
   * clock is set forward, the first instant after the gap.
   */
  instant(wall: number): number {
    // No zone changes its offset twice within two days.
    const before = this.#offset(wall - dayMs);
    const after = this.#offset(wall + dayMs);
    const candidates = [wall - before, wall - after].filter((at) => this.wallTime(at) === wall);
    if (candidates.length > 0) return Math.min(...candidates);
    let low = wall - Math.max(before, after);
    let high = wall - Math.min(before, after);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.wallTime(middle) < wall) low = middle;
      else high = middle;
    }
    return high;
  }

  #offset(instant: number): number {
    return this.wallTime(instant) - instant;
  }
}

type PartName = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second';
