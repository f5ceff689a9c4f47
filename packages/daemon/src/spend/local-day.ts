/** The local date of a moment, `2026-01-15`. */
export type DayOf = (time: number) => string;

/** Dates in a time zone; default: that of the machine. */
export function daysIn(timeZone?: string): DayOf {
  if (timeZone === undefined) return machineDay;
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return (time) => format.format(time);
}

/** The hour of the local day of a moment, 0 to 23. */
export function hoursIn(timeZone?: string): (time: number) => number {
  if (timeZone === undefined) return (time) => new Date(time).getHours();
  const format = new Intl.DateTimeFormat('en-US', { timeZone, hour: 'numeric', hourCycle: 'h23' });
  return (time) => Number(format.format(time));
}

function machineDay(time: number): string {
  const date = new Date(time);
  const two = (value: number) => String(value).padStart(2, '0');
  const year = String(date.getFullYear()).padStart(4, '0');
  return `${year}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The Monday on or before a date. */
export function mondayOf(day: string): string {
  // As if the date were of UTC, where every day has its 24 hours.
  const noon = Date.parse(`${day}T12:00:00Z`);
  const sinceMonday = (new Date(noon).getUTCDay() + 6) % 7;
  return new Date(noon - sinceMonday * 86_400_000).toISOString().slice(0, 10);
}
