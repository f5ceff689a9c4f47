import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import { parseDuration } from '@millrace/kit/units';
import { auditToWire } from '../core/audit.js';
import {
  addPoint,
  type Buckets,
  emptyPoint,
  Histogram,
  type HistoryPoint,
  historySteps,
  stepAt,
} from '../core/history.js';
import type { Queue, QueueCounts } from '../core/queue.js';
import { timeIn, timeText, toBreaker } from './base/bodies.js';
import { type Principal, type QueueContext, requireGrant, requireQueue } from './base/context.js';
import { type CursorScope, defaultPageSize, staleCursor } from './base/cursors.js';
import { failQuery } from './base/refusal.js';

type Counts = Pick<
  QueueSchema<'Stats'>,
  | 'pending'
  | 'delayed'
  | 'blocked'
  | 'suspended'
  | 'in_flight'
  | 'dlq_depth'
  | 'oldest_pending_age_ms'
>;

/** Counts the tasks of a queue. */
export async function getStats(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'Stats'>> {
  const found = await requireQueue(context, queue);
  const { history } = context;
  const totals = await history.totals(queue);
  return {
    ...(await queueStats(context, found)),
    succeeded_total: totals.succeeded,
    failed_total: totals.failed,
    dead_total: totals.dead,
    rate_per_second: await ratePerSecond(context, queue),
  };
}

const [fine] = historySteps;
const rateWindowS = 60;

async function ratePerSecond({ clock, history }: QueueContext, queue: string): Promise<number> {
  // The step that contains the start of the window counts whole.
  const from = clock.now() - (rateWindowS + fine.stepS) * 1000;
  const rows = await history.read(queue, fine.stepS, from);
  let ended = 0;
  for (const { at, point } of [...rows, ...history.unsaved(queue, from)]) {
    if (at > from) ended += point.succeeded + point.dead;
  }
  return Math.round((ended / rateWindowS) * 1000) / 1000;
}

/** What the stats and the list of queues say of a queue now. */
export async function queueStats({ store, clock, delivery }: QueueContext, queue: Queue) {
  const counts = await store.counts(queue.name, clock.now());
  const { oldestDueAt } = counts;
  const hasNoWorker = !queue.paused && (await delivery.hasNoWorker(queue, oldestDueAt));
  const { handlers } = await delivery.breakersOf(queue.name);
  return {
    ...toStats(counts, clock.now()),
    state: queue.paused ? 'paused' : hasNoWorker ? 'no_worker' : 'running',
    breakers: handlers.slice(0, maxBreakers).map(toBreaker),
  } satisfies Partial<QueueSchema<'Stats'>>;
}

const maxBreakers = 1_000;

function toStats(counts: QueueCounts, now: number): Counts {
  const { pending, delayed, inFlight, dead, oldestDueAt } = counts;
  const { dependencies = 0, timer = 0, signal = 0, tasks = 0 } = counts.waits;
  return {
    pending,
    delayed,
    blocked: dependencies,
    suspended: timer + signal + tasks,
    in_flight: inFlight,
    dlq_depth: dead,
    // Not due yet: 0.
    oldest_pending_age_ms: oldestDueAt === null ? 0 : Math.max(0, now - oldestDueAt),
  };
}

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

/** The workers of a queue that were seen in the last ten minutes. */
export async function listWorkers(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'WorkerList'>> {
  await requireQueue(context, queue);
  const workers = await context.delivery.workers(queue);
  return {
    workers: workers.map((each) => ({
      worker: each.worker,
      principal: each.principal,
      remote_ip: each.remoteIp,
      last_seen_at: timeText(each.lastSeenAt),
      in_flight: each.inFlight,
      claimed: each.claimed,
      completed: each.completed,
      failed: each.failed,
    })),
  };
}

export interface AuditQuery {
  queue?: string;
  from?: string;
  to?: string;
  limit?: number;
  cursor?: string;
}

/** The acts on queues of which the caller is admin, the newest first. */
export async function listAudit(
  { store, cursors }: QueueContext,
  caller: Principal,
  { queue, from, to, limit = defaultPageSize, cursor = '' }: AuditQuery,
): Promise<QueueSchema<'AuditPage'>> {
  if (queue !== undefined) requireGrant(caller, queue, 'admin');
  const faults: FieldError[] = [];
  const range = {
    from: from === undefined ? undefined : timeIn(from, '/from', faults),
    to: to === undefined ? undefined : timeIn(to, '/to', faults),
  };
  if (faults.length > 0) throw failQuery(faults);
  const scope: CursorScope = { list: 'audit', filter: { queue, ...range } };
  const beforeSeq = cursor === '' ? undefined : seqOf(cursors.open(scope, cursor));
  const records = await store.auditPage({
    ...range,
    queue,
    allowed: (name) => caller.grants.allows(name, 'admin'),
    beforeSeq,
    // One extra record shows whether there is another page.
    limit: limit + 1,
  });
  const page = records.slice(0, limit);
  const last = records.length > limit ? page.at(-1) : undefined;
  return {
    records: page.map(auditToWire),
    next_cursor: last ? cursors.seal(scope, [last.seq]) : '',
  };
}

function seqOf(opened: readonly unknown[] | undefined): number {
  if (!opened) throw staleCursor();
  return opened[0] as number;
}
