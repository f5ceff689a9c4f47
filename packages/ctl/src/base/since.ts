import { UsageError } from '@millrace/kit/errors';
import { parseTimestamp } from '@millrace/kit/units';

const unitsMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const twoDaysMs = 172_800_000;

export interface Since {
  /** In the form of the REST API. */
  readonly text: string;
  /** Up to this many hours, the trend is hourly. */
  readonly bucket: 'day' | 'hour';
}

/** Parses `--since`: a form of the REST API, or a date, which starts at local midnight. */
export function parseSince(text: string, now: number): Since {
  const [, count, unit] = /^([1-9]\d{0,5})([mhdw])$/.exec(text) ?? [];
  if (count && unit) return { text, bucket: bucketFor(Number(count) * unitsMs[unit]!) };
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? midnightOf(text) : timeOf(text);
  if (at === undefined) {
    throw new UsageError(
      `--since must be a span such as 24h, 7d or 2w, a date such as 2026-01-31, ` +
        `or a time such as 2026-01-31T08:00:00Z, not "${text}".`,
    );
  }
  return { text: new Date(at).toISOString(), bucket: bucketFor(now - at) };
}

function bucketFor(spanMs: number): Since['bucket'] {
  return spanMs <= twoDaysMs ? 'hour' : 'day';
}

function midnightOf(date: string): number | undefined {
  const at = new Date(`${date}T00:00:00`);
  const [, month, day] = date.split('-').map(Number);
  // A date that does not exist rolls over into the next month.
  return at.getMonth() + 1 === month && at.getDate() === day ? at.getTime() : undefined;
}

function timeOf(text: string): number | undefined {
  try {
    return parseTimestamp(text);
  } catch {
    return undefined;
  }
}
