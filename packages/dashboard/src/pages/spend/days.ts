/** The start of a local day such as `2026-01-15`, in unix seconds. */
export function localMidnight(day: string): number {
  const [year = 1970, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date).getTime() / 1000;
}
