import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { refresh } from '../base/watching.js';
import type { Flags, Tools } from '../base/tools.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';
import { humanCount, humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { sparkline } from '../render/figures.js';

type TopFlags = QueueFlags & Flags<'interval count'>;

/** Hundreds of requests at once would compete with the work of the server. */
const maxParallelReads = 8;

export async function showTop(
  names: readonly string[],
  flags: TopFlags,
  tools: Tools,
): Promise<void> {
  const api = queueApi(flags, tools);
  const { out, json } = tools.terminal;
  await refresh(flags, { everyMs: 2_000 }, tools, async (frame) => {
    const rows = await readRows(api, names);
    if (json) out.write(`${JSON.stringify(lineOf(rows))}\n`);
    else frame.draw(topScreen(rows, out, frame.rows));
  });
}

export async function readRows(api: QueueApi, names: readonly string[]): Promise<TopRow[]> {
  const wanted =
    names.length > 0 ? names : (await api.call('listQueues')).body.map(({ name }) => name);
  const rows = new Map<string, TopRow>();
  const waiting = [...wanted];
  const readSome = async (): Promise<void> => {
    for (let queue = waiting.shift(); queue !== undefined; queue = waiting.shift()) {
      const query = { since: '10m', step: '10s' };
      const { body } = await api.call('getQueueMetrics', { queue, query });
      rows.set(queue, rowOf(queue, body));
    }
  };
  await Promise.all(Array.from({ length: maxParallelReads }, readSome));
  return wanted.map((queue) => rows.get(queue)!);
}

const stepsPerMinute = 6;

/** The last minute of the history; the step that is under way is left out of rates. */
export function rowOf(queue: string, { step_s, points }: QueueSchema<'QueueMetrics'>): TopRow {
  const finished = points.slice(0, -1);
  const minute = finished.slice(-stepsPerMinute);
  const perSecond = (count: (point: (typeof points)[number]) => number) =>
    minute.reduce((sum, point) => sum + count(point), 0) / (minute.length * step_s);
  const recent = points.slice(-stepsPerMinute - 1);
  const last = points.at(-1)!;
  return {
    queue,
    pending: last.pending,
    inFlight: last.in_flight,
    submittedPerSecond: perSecond(({ submitted }) => submitted),
    endedPerSecond: perSecond(({ succeeded, dead }) => succeeded + dead),
    failedPerSecond: perSecond(({ failed }) => failed),
    waitMs: recent.findLast(({ wait_ms: wait }) => wait.p50 !== null)?.wait_ms,
    runMs: recent.findLast(({ run_ms: run }) => run.p50 !== null)?.run_ms,
    course: finished.map(({ succeeded, dead }) => (succeeded + dead) / step_s),
  };
}

function lineOf(rows: readonly TopRow[]) {
  return {
    at: new Date(systemClock.now()).toISOString(),
    queues: rows.map((row) => ({
      name: row.queue,
      pending: row.pending,
      in_flight: row.inFlight,
      submitted_per_second: row.submittedPerSecond,
      ended_per_second: row.endedPerSecond,
      failed_per_second: row.failedPerSecond,
      wait_ms: row.waitMs ?? null,
      run_ms: row.runMs ?? null,
    })),
  };
}

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
