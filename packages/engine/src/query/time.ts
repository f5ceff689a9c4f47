const pattern =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** An RFC 3339 time in milliseconds, with fractions of them; `undefined` if it is invalid. */
export function parseTime(text: string): number | undefined {
  const match = pattern.exec(text);
  if (!match) return undefined;
  const part = (group: number) => Number(match[group] ?? 0);
  const [year, month, day] = [part(1), part(2), part(3)];
  const [hour, minute, second] = [part(4), part(5), part(6)];
  // A leap second counts as the first one of the next minute, as in POSIX time.
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60) {
    return undefined;
  }
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCDate() !== day) return undefined;
  const [offsetHour, offsetMinute] = [part(9), part(10)];
  if (offsetHour > 23 || offsetMinute > 59) return undefined;
  const offset = (offsetHour * 60 + offsetMinute) * (match[8] === '-' ? -1 : 1);
  return date.getTime() + (hour * 60 + minute - offset) * 60_000 + second * 1000 + part(7) * 1000;
}

/** RFC 3339 with milliseconds, in UTC: sorts by time as text. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
