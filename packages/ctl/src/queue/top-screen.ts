import type { QueueSchema } from '@millrace/contract/queue';
import { humanCount, humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { sparkline } from '../render/sparkline.js';

type Percentiles = QueueSchema<'Percentiles'>;

/** One queue over the last minute. */
export interface TopRow {
  readonly queue: string;
  /** Null: unknown. */
  readonly pending: number | null;
  readonly inFlight: number | null;
  readonly submittedPerSecond: number;
  /** Tasks that succeeded or died. */
  readonly endedPerSecond: number;
  readonly failedPerSecond: number;
  /** Of the last step with samples; undefined: there was none. */
  readonly waitMs: Percentiles | undefined;
  readonly runMs: Percentiles | undefined;
  /** Ended tasks per second, newest last. */
  readonly course: readonly number[];
}

const narrowBars = 8;
const wideBars = 40;
const wideColumns = 140;

/** The table of queues, with at most `maxRows` rows. */
export function topScreen(rows: readonly TopRow[], sheet: Sheet, maxRows: number): string {
  if (rows.length === 0)
    return asTyped('No queues yet. Create one with `ctl queue create NAME --pull`.\n');
  const isWide = sheet.columns >= wideColumns;
  const titles = [
    'QUEUE',
    'PENDING',
    'IN FLIGHT',
    ...(isWide ? ['SUBMIT/S'] : []),
    'RATE/S',
    'FAIL/S',
    'WAIT P50',
    ...(isWide ? ['WAIT P99'] : []),
    'RUN P50',
    ...(isWide ? ['RUN P99'] : []),
    'RATE',
  ];
  const cells = rows
    .slice(0, maxRows)
    .map((row): Cell[] => [
      row.queue,
      row.pending ?? '-',
      row.inFlight ?? '-',
      ...(isWide ? [rateText(row.submittedPerSecond)] : []),
      rateText(row.endedPerSecond),
      failureCell(row.failedPerSecond),
      timeText(row.waitMs?.p50),
      ...(isWide ? [timeText(row.waitMs?.p99)] : []),
      timeText(row.runMs?.p50),
      ...(isWide ? [timeText(row.runMs?.p99)] : []),
      sparkline(row.course, isWide ? wideBars : narrowBars),
    ]);
  const hidden = rows.length - cells.length;
  const more = hidden > 0 ? `and ${hidden} more: name the queues you want to see\n` : '';
  const columns = titles.map((title) => ({ title }));
  return renderTable(columns, cells, sheet) + more;
}

function failureCell(perSecond: number): Cell {
  const text = rateText(perSecond);
  return perSecond === 0 ? text : { text, tone: 'bad' };
}

function rateText(perSecond: number): string {
  if (perSecond >= 10) return humanCount(Math.round(perSecond));
  return String(Math.round(perSecond * 10) / 10);
}

function timeText(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? '-' : humanDuration(ms);
}
