import { parseTimestamp, UnitError } from '@millrace/kit/units';
import { fail } from './api.js';

const unitsMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Where a report starts: a span back from now, such as `7d`, or an RFC 3339 timestamp. */
export function parseSince(text: string, now: number): number {
  const [, count, unit] = /^([1-9]\d{0,5})([mhdw])$/.exec(text) ?? [];
  // Very long spans would be before the epoch.
  if (count && unit) return Math.max(0, now - Number(count) * unitsMs[unit]!);
  try {
    return parseTimestamp(text);
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    throw fail(
      'INVALID_REQUEST',
      `since must be a duration such as 24h, 7d or 2w, or an RFC 3339 timestamp such as ` +
        `2026-01-01T00:00:00Z, not ${JSON.stringify(text.slice(0, 60))}.`,
    );
  }
}
