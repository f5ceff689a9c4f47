import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { durationOf, wholeNumber } from '../base/arguments.js';
import { Frame } from '../base/frame.js';
import type { Tools } from '../base/tools.js';
import type { QueueApi } from './api.js';
import { topScreen, type TopRow } from './top-screen.js';
import { rest } from '../base/rest.js';

export interface TopFlags {
  interval?: string;
  count?: string;
}

const defaultIntervalMs = 2_000;
const minIntervalMs = 100;
/** Hundreds of requests at once would compete with the work of the server. */
const maxParallelReads = 8;
/** A server that is being restarted will be back. */
const passing = new Set(['UNAVAILABLE', 'STORAGE_UNAVAILABLE', 'RATE_LIMITED']);

export async function showTop(
  api: QueueApi,
  names: readonly string[],
  flags: TopFlags,
  { terminal, lifecycle }: Tools,
): Promise<void> {
  const { out, json } = terminal;
  const intervalMs = durationOf(flags.interval, '--interval') ?? defaultIntervalMs;
  if (intervalMs < minIntervalMs) throw new UsageError('--interval must be at least 100ms.');
  const refreshes = wholeNumber(flags.count, '--count') ?? (json || out.isScreen ? Infinity : 1);
  const frame = new Frame(out);
  for (let refresh = 1; refresh <= refreshes; refresh++) {
    try {
      const rows = await readRows(api, names);
      if (json) out.write(`${JSON.stringify(lineOf(rows))}\n`);
      else frame.draw(topScreen(rows, out, frame.rows));
    } catch (error) {
      if (refresh === 1 || !(error instanceof Refusal) || !passing.has(error.code)) throw error;
      const { code, detail } = error;
      if (json) terminal.err.write(`${JSON.stringify({ error: { code, message: detail } })}\n`);
      else frame.draw(`${out.paint('bad', 'No response:')} ${detail}\n`);
    }
    if (refresh < refreshes) await rest(intervalMs, lifecycle.interrupted);
  }
}

async function readRows(api: QueueApi, names: readonly string[]): Promise<TopRow[]> {
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
