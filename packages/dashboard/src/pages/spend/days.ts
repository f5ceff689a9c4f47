/** Limits of the number of bars: more are not readable, a single one would fill the chart. */
const maxDays = 60;
const minDays = 7;

interface Day {
  time: number;
  /** Null when a backend without a price was used. */
  usd: number | null;
}

/** All days up to the last entry, including empty ones, as unix seconds of their start. */
export function dayByDay(entries: readonly { key: string; usd: number | null }[]): Day[] {
  const byTime = new Map(entries.map(({ key, usd }) => [timeOf(localDay(key)), usd]));
  const [first, last] = [entries.at(0)?.key, entries.at(-1)?.key];
  if (first === undefined || last === undefined) return [];
  const days: Day[] = [];
  // Steps by calendar day: not every day has 24 hours.
  for (const day = localDay(last); days.length < maxDays; day.setDate(day.getDate() - 1)) {
    if (days.length >= minDays && timeOf(day) < timeOf(localDay(first))) break;
    const usd = byTime.get(timeOf(day));
    days.unshift({ time: timeOf(day), usd: usd === undefined ? 0 : usd });
  }
  return days;
}

/** The start of a local day such as `2026-01-15`. */
function localDay(day: string): Date {
  const [year = 1970, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date);
}

function timeOf(date: Date): number {
  return date.getTime() / 1000;
}
