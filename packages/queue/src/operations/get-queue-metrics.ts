import type { QueueSchema } from '@millrace/contract/queue';
import { parseDuration } from '@millrace/kit/units';
import { addPoint, emptyPoint, historySteps, stepAt, type HistoryPoint } from '../core/history.js';
import { Histogram, type Buckets } from '../core/histogram.js';
import type { QueueContext } from './base/context.js';
import { timeText } from './base/envelope.js';
import { requireQueue } from './base/find.js';
import { failQuery } from './base/refusal.js';

export interface MetricsRequest {
  queue: string;
  since?: string | undefined;
  step?: string | undefined;
}

type Point = QueueSchema<'QueueMetricsPoint'>;

/** The history of a queue in steps without gaps. */
export async function getQueueMetrics(
  context: QueueContext,
  { queue, since = '1h', step }: MetricsRequest,
): Promise<QueueSchema<'QueueMetrics'>> {
  const sinceMs = parseDuration(since);
  const { stepS } = stepFor(sinceMs, step);
  await requireQueue(context, queue);
  const { store, clock, history } = context;
  const stepMs = stepS * 1000;
  const last = stepAt(clock.now(), stepS);
  const from = last - (Math.ceil(sinceMs / stepMs) - 1) * stepMs;
  const [rows, counts] = [await history.read(queue, stepS, from), store.counts(queue)];
  const { pending, inFlight } = await counts;
  const sums = new Map<number, HistoryPoint>();
  for (const { at, point } of [...rows, ...history.unsaved(queue, from)]) {
    const start = stepAt(at, stepS);
    const sum = sums.get(start) ?? emptyPoint();
    addPoint(sum, point);
    sums.set(start, sum);
  }
  // Without a row nothing has changed since the one before.
  let gauges: Gauges = { pending: null, inFlight: null };
  const before = rows.find(({ at }) => at < from);
  if (before) gauges = before.point;
  const points: Point[] = [];
  for (let at = from; at <= last; at += stepMs) {
    const sum = sums.get(at) ?? emptyPoint();
    if (sum.pending !== null) gauges = sum;
    if (at === last) gauges = { pending, inFlight };
    points.push(toPoint(at, sum, gauges));
  }
  return { step_s: stepS, points };
}

type Gauges = Pick<HistoryPoint, 'pending' | 'inFlight'>;

function stepFor(sinceMs: number, name: string | undefined) {
  const longest = historySteps.at(-1)!;
  if (sinceMs > longest.retentionMs) {
    throw failQuery([{ pointer: '/since', message: 'must be at most 30d' }]);
  }
  const available = historySteps.filter(({ retentionMs }) => sinceMs <= retentionMs);
  const chosen = name === undefined ? available[0] : available.find((step) => step.name === name);
  if (chosen) return chosen;
  const message = `is not retained for so long; use ${available.map((each) => each.name).join(' or ')}`;
  throw failQuery([{ pointer: '/step', message }]);
}

function toPoint(at: number, sum: HistoryPoint, { pending, inFlight }: Gauges): Point {
  return {
    ts: timeText(at),
    submitted: sum.submitted,
    succeeded: sum.succeeded,
    failed: sum.failed,
    dead: sum.dead,
    cancelled: sum.cancelled,
    pending,
    in_flight: inFlight,
    wait_ms: percentiles(sum.wait),
    run_ms: percentiles(sum.run),
  };
}

function percentiles(buckets: Buckets): QueueSchema<'Percentiles'> {
  return {
    p50: Histogram.percentile(buckets, 0.5),
    p95: Histogram.percentile(buckets, 0.95),
    p99: Histogram.percentile(buckets, 0.99),
  };
}
