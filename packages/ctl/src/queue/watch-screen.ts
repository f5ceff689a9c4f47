import type { Value } from '@millrace/contract/lists';
import * as queueLists from '@millrace/contract/lists/queue';
import { humanCount } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { cellOf } from '../base/list-text.js';
import { sparkline } from '../render/sparkline.js';

/** One sample of one queue. */
export interface Sample {
  readonly name: string;
  readonly pending: number;
  readonly inFlight: number;
  readonly dead: number;
  readonly oldestMs: number;
  /** Undefined: unknown to a caller who is not its admin. */
  readonly paused: boolean | undefined;
  /** Callbacks since the server started; undefined without metrics. */
  readonly callbacks: number | undefined;
}

export interface Watched extends Sample {
  /** Per second; undefined for the first sample. */
  readonly rate: number | undefined;
  /** Rates of callbacks, or sizes of the backlog, newest last. */
  readonly course: readonly number[];
}

const narrowBars = 8;
const wideBars = 40;
const wideColumns = 120;
/** Maximum number of samples remembered. */
export const maxSamples = wideBars;

/** The table of queues, with at most `maxRows` rows. */
export function watchScreen(watched: readonly Watched[], sheet: Sheet, maxRows: number): string {
  if (watched.length === 0) return asTyped(`${queueLists.queues.empty}\n`);
  const isMeasured = watched.some(({ callbacks }) => callbacks !== undefined);
  const width = sheet.columns >= wideColumns ? wideBars : narrowBars;
  const titles = [
    'QUEUE',
    'STATE',
    'PENDING',
    'IN FLIGHT',
    'DLQ',
    'OLDEST',
    isMeasured ? 'CALLS/S' : 'Δ PENDING/S',
    isMeasured ? 'CALLS' : 'BACKLOG',
  ];
  const cell = (value: Value) => cellOf(value, 0, sheet);
  const rows = watched
    .slice(0, maxRows)
    .map((queue): Cell[] => [
      queue.name,
      queue.paused === undefined ? '' : cell(queueLists.queueState(queue.paused)),
      queue.pending,
      queue.inFlight,
      queue.dead,
      cell({ ms: queue.oldestMs, none: '-' }),
      rateText(queue.rate, isMeasured),
      sparkline(queue.course, width),
    ]);
  const hidden = watched.length - rows.length;
  const more = hidden > 0 ? `and ${hidden} more: name the queues you want to see\n` : '';
  const columns = titles.map((title) => ({ title }));
  return renderTable(columns, rows, sheet) + more;
}

function rateText(rate: number | undefined, isMeasured: boolean): string {
  if (rate === undefined) return '-';
  const shown = Math.abs(rate) < 10 ? Math.round(rate * 10) / 10 : Math.round(rate);
  const text = Math.abs(shown) < 10 ? String(shown) : humanCount(shown);
  return !isMeasured && shown > 0 ? `+${text}` : text;
}
