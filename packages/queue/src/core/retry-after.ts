import { maxRetryAfterMs } from './backoff.js';

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const clockTime = '(?<h>\\d{2}):(?<m>\\d{2}):(?<s>\\d{2})';
const monthName = `(?<month>${months.join('|')})`;

// The three forms of RFC 9110 section 5.6.7.
const httpDates = [
  new RegExp(`^[A-Z][a-z]{2}, (?<day>\\d{2}) ${monthName} (?<year>\\d{4}) ${clockTime} GMT$`),
  new RegExp(`^[A-Z][a-z]{5,8}, (?<day>\\d{2})-${monthName}-(?<year>\\d{2}) ${clockTime} GMT$`),
  new RegExp(`^[A-Z][a-z]{2} ${monthName} (?<day>[ \\d]\\d) ${clockTime} (?<year>\\d{4})$`),
];

/**
 * Parses a `Retry-After` header (seconds or a date) to milliseconds from now, at most an hour.
 * Undefined: it cannot be parsed.
 */
export function retryAfterMs(value: string, now: number): number | undefined {
  const text = value.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, maxRetryAfterMs);
  const at = httpDateOf(text, now);
  if (at === undefined) return undefined;
  return Math.min(Math.max(0, at - now), maxRetryAfterMs);
}

function httpDateOf(text: string, now: number): number | undefined {
  for (const form of httpDates) {
    const parts = form.exec(text)?.groups;
    if (parts) return timeOf(parts, now);
  }
  return undefined;
}

function timeOf(parts: Record<string, string>, now: number): number | undefined {
  const number = (name: string) => Number(parts[name]);
  const [day, h, m, s] = [number('day'), number('h'), number('m'), number('s')] as const;
  const month = months.indexOf(parts['month']!);
  const year = fullYear(parts['year']!, now);
  if (h > 23 || m > 59 || s > 60) return undefined;
  // JavaScript accepts 31 February, which is not a date.
  const midnight = new Date(Date.UTC(year, month, day));
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== day) return undefined;
  return Date.UTC(year, month, day, h, m, s);
}

/** A two-digit year that would be more than 50 years ahead is in the past (RFC 9110). */
function fullYear(text: string, now: number): number {
  if (text.length === 4) return Number(text);
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(text);
  return year > thisYear + 50 ? year - 100 : year;
}
