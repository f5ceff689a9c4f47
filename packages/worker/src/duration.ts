import { ValidationError } from './errors.js';

/** Milliseconds, or text such as `500 ms`, `10 s`, `5 min`, `2 hours` or `7 days`. */
export type Duration = number | string;

const units: readonly (readonly [names: RegExp, ms: number])[] = [
  [/^(?:ms|milliseconds?)$/, 1],
  [/^(?:s|secs?|seconds?)$/, 1_000],
  [/^(?:m|mins?|minutes?)$/, 60_000],
  [/^(?:h|hours?)$/, 3_600_000],
  [/^(?:d|days?)$/, 86_400_000],
  [/^(?:w|weeks?)$/, 604_800_000],
];

/** Far below what would end after the year 9999, the last one of a timestamp. */
const maxMs = 36_500 * 86_400_000;

/** A duration in milliseconds; throws a ValidationError. */
export function durationMs(duration: Duration): number {
  const [, number, name = ''] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(String(duration)) ?? [];
  const unit = units.find(([names]) => names.test(name));
  const ms = typeof duration === 'number' ? duration : Number(number) * (unit?.[1] ?? Number.NaN);
  if (ms > maxMs) throw new ValidationError('A duration is at most 36500 days.');
  if (ms >= 0) return Math.round(ms);
  const shown = JSON.stringify(duration) ?? String(duration);
  throw new ValidationError(
    `A duration is milliseconds or text such as "10 s", "5 min" or "2 days", not ${shown}.`,
  );
}
