import { parseTimestamp, UnitError } from '@millrace/kit/units';
import { fail } from './refusals.js';

const unitsMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Where a report starts: a span back from now, such as `7d`, or an RFC 3339 timestamp. */
export function parseSince(text: string, now: number): number {
  const [, count, unit] = /^([1-9]\d{0,5})([mhdw])$/.exec(text) ?? [];
  // Nothing was saved before 1970, and no timestamp can tell of some of the longest spans.
  if (count && unit) return Math.max(0, now - Number(count) * unitsMs[unit]!);
  try {
    return parseTimestamp(text);
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    throw fail(
      'INVALID_REQUEST',
      `since must be a span such as 24h, 7d or 2w, or an RFC 3339 time such as ` +
        `2026-01-01T00:00:00Z, not ${JSON.stringify(text.slice(0, 60))}.`,
    );
  }
}
