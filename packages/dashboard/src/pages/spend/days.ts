/** Two months are as many bars as one can tell apart; a single one would fill the chart. */
const mostDays = 60;
const leastDays = 7;

interface Day {
  time: number;
  /** Null where something was used that has no price. */
  usd: number | null;
}

/** The days up to the last that has an entry, without a gap, each at its start in unix seconds. */
export function dayByDay(entries: readonly { key: string; usd: number | null }[]): Day[] {
  const byTime = new Map(entries.map(({ key, usd }) => [timeOf(localDay(key)), usd]));
  const [first, last] = [entries.at(0)?.key, entries.at(-1)?.key];
  if (first === undefined || last === undefined) return [];
  const days: Day[] = [];
  // Back from the last by the calendar: not every day has 24 hours.
  for (const day = localDay(last); days.length < mostDays; day.setDate(day.getDate() - 1)) {
    if (days.length >= leastDays && timeOf(day) < timeOf(localDay(first))) break;
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
