import { formatTimestamp, humanAge } from '@millrace/kit/units';
import type { Sheet } from './table.js';

/** A time in a table: `2m ago`, or with `--utc` as an RFC 3339 time. `-` if it is unknown. */
export function timeText(at: number, now: number, sheet: Pick<Sheet, 'utc'>): string {
  if (sheet.utc && Number.isFinite(at)) return formatTimestamp(at);
  return humanAge(at, now);
}
