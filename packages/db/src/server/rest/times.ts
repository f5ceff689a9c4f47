const dayMs = 86_400_000;
const two = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'));

// Most records of a page are from a few days, and the date part is the slow one to format.
let cachedDay = Number.NaN;
let cachedText = '';

/** RFC 3339 in UTC with milliseconds like `Date.toISOString`, but several times faster. */
export function timeText(time: number): string {
  const day = Math.floor(time / dayMs);
  if (day !== cachedDay) {
    cachedText = new Date(day * dayMs).toISOString().slice(0, -13);
    cachedDay = day;
  }
  const ofDay = time - day * dayMs;
  const seconds = Math.floor(ofDay / 1000);
  const ms = Math.floor(ofDay - seconds * 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const clock = `${two[hours]}:${two[minutes % 60]}:${two[seconds % 60]}`;
  return `${cachedText}${clock}.${ms < 100 ? `0${two[ms] ?? ms}` : ms}Z`;
}
