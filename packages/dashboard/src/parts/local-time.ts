/** Converts the local time of an input, such as `2026-03-02T10:15`, to a UTC timestamp. */
export function timestampOf(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}

/** Whether the year of a local time is whole: while it is typed, 2026 is first 2, 20 and 202. */
export const isWholeLocal = (local: string): boolean => /^[1-9]\d{3}-/.test(local);

/** Converts a timestamp to the local time of a `datetime-local` input. */
export function localOf(timestamp: string | undefined): string {
  if (timestamp === undefined) return '';
  const at = new Date(timestamp);
  const two = (value: number) => String(value).padStart(2, '0');
  const year = String(at.getFullYear()).padStart(4, '0');
  const day = `${year}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`;
}
