import type { Clock } from '@millrace/kit/clock';
import {
  isSampled,
  readTraceparent,
  type Span,
  spanIdOf,
  traceIdOf,
  type Tracer,
} from '@millrace/kit/tracing';
import { headerOf, traceOf } from '../core/callback-headers.js';
import {
  addPoint,
  addTotals,
  emptyPoint,
  Histogram,
  type HistoryPoint,
  type HistoryRow,
  historyRowKey,
  historySteps,
  type HistoryTotals,
  noTotals,
  stepAt,
} from '../core/history.js';
import type { QueueCounts } from '../core/queue.js';
import type { Task } from '../core/task.js';
import type {
  InsertResult,
  NewTask,
  RowBatch,
  RowPut,
  Settlement,
  SettleResult,
  TaskStore,
} from '../storage/port/task-store.js';

export interface TaskObserverOptions {
  history: History;
  clock: Clock;
  /** Absent: no spans are recorded. */
  tracer?: Tracer | undefined;
}

/** Due times of delayed tasks that are remembered for their waiting time. */
const maxDelayed = 10_000;

/**
 * Counts what happens to tasks for the history of their queues and records their spans. Whoever
 * changes the status of tasks in the store calls it with the results.
 */
export class TaskObserver {
  readonly #delayed = new Map<string, number>();

  constructor(private readonly options: TaskObserverOptions) {}

  /** The tasks as they are stored: with tracing, each is part of a trace. */
  inTrace(tasks: readonly NewTask[]): readonly NewTask[] {
    return this.options.tracer ? tasks.map(withTrace) : tasks;
  }

  /** A client submitted these tasks at `now`. */
  submitted(tasks: readonly NewTask[], results: readonly InsertResult[], now: number): void {
    const { tracer, clock } = this.options;
    this.scheduled(tasks, results, now);
    if (!tracer) return;
    const endMs = clock.now();
    tasks.forEach((task, i) => {
      // A repeated submit stores nothing; the first one has the span.
      if (results[i]!.kind !== 'stored' || !isRecorded(task.headers)) return;
      const span = submitSpan(task, now, endMs);
      if (span) tracer.record(span);
    });
  }

  /** A schedule stored these tasks at `now`. */
  scheduled(tasks: readonly NewTask[], results: readonly InsertResult[], now: number): void {
    results.forEach(({ kind }, i) => {
      if (kind !== 'stored') return;
      const { id, queue, dueAt } = tasks[i]!;
      this.options.history.count(queue, 'submitted');
      if (dueAt > now) this.#rememberDelayed(id, dueAt);
    });
  }

  settled(settlements: readonly Settlement[], results: readonly SettleResult[]): void {
    const { tracer } = this.options;
    results.forEach((result, i) => {
      if (result.kind !== 'settled') return;
      const settlement = settlements[i]!;
      this.#count(settlement, result.task);
      if (!tracer || !isRecorded(result.task.headers)) return;
      for (const span of endSpans(settlement, result.task)) tracer.record(span);
    });
  }

  cancelled(queue: string, count: number): void {
    this.options.history.count(queue, 'dead', count);
    this.options.history.count(queue, 'cancelled', count);
  }

  /** A task expired before it was claimed. */
  expired(queue: string): void {
    this.options.history.count(queue, 'dead');
  }

  #count({ attempt, verdict }: Settlement, { id, queue, createdAt }: Settled): void {
    const { history } = this.options;
    if (verdict.kind === 'handed_back' || verdict.kind === 'suspended') return;
    history.ran(queue, attempt.durationMs);
    if (attempt.attempt === 1 && attempt.redrive === 0) {
      history.waited(queue, attempt.startedAt - (this.#delayed.get(id) ?? createdAt));
      this.#delayed.delete(id);
    }
    if (verdict.kind === 'succeeded') return history.count(queue, 'succeeded');
    history.count(queue, 'failed');
    if (verdict.kind === 'dead') history.count(queue, 'dead');
  }

  #rememberDelayed(id: string, dueAt: number): void {
    const delayed = this.#delayed;
    if (delayed.size >= maxDelayed) delayed.delete(delayed.keys().next().value!);
    delayed.set(id, dueAt);
  }
}

type Settled = Extract<SettleResult, { kind: 'settled' }>['task'];

export interface HistoryOptions {
  store: TaskStore;
  clock: Clock;
  /** Identifies this run of the server. */
  instance: string;
}

type Count = 'submitted' | 'succeeded' | 'failed' | 'dead' | 'cancelled';

const [fine, ...coarse] = historySteps;
const fineMs = fine.stepS * 1000;

/** What this server counted of a queue. */
interface Counted {
  /** Steps of ten seconds that are not stored yet, by start. */
  points: Map<number, HistoryPoint>;
  /** The current longer steps, as stored. */
  sums: Map<number, { at: number; point: HistoryPoint }>;
}

/** What one commit stores. */
interface HistoryWrite {
  rows: readonly HistoryRow[];
  totals: readonly ({ queue: string } & HistoryTotals)[];
}

/**
 * Counts what happens in each queue and stores it in steps of ten seconds, one minute and fifteen
 * minutes, with one commit every ten seconds at most. A crash loses the last twenty seconds.
 */
export class History {
  readonly #queues = new Map<string, Counted>();
  /** A write whose result is unknown; its rows are written again. */
  #unfinished: HistoryWrite | undefined;

  constructor(private readonly options: HistoryOptions) {}

  count(queue: string, what: Count, by = 1): void {
    this.#current(queue)[what] += by;
  }

  ran(queue: string, runMs: number): void {
    Histogram.add(this.#current(queue).run, runMs);
  }

  waited(queue: string, waitMs: number): void {
    Histogram.add(this.#current(queue).wait, waitMs);
  }

  /** Stores the steps that are over, or at shutdown all. Returns when to run again. */
  async flush({ isLast = false }: { isLast?: boolean } = {}): Promise<number> {
    const { store, clock } = this.options;
    if (this.#unfinished) await store.writeRows(batchOf(this.#unfinished, clock.now()));
    this.#unfinished = undefined;
    const before = isLast ? Infinity : stepAt(clock.now(), fine.stepS);
    const gauges = await this.#readGauges(before);
    const write = this.#takeBefore(before, gauges);
    if (write.rows.length > 0) {
      this.#unfinished = write;
      await store.writeRows(batchOf(write, clock.now()));
      this.#unfinished = undefined;
    }
    return fineMs - (clock.now() % fineMs);
  }

  /** The stored rows from a time on, oldest first, and the last one before it. */
  async read(queue: string, stepS: number, from: number): Promise<HistoryRow[]> {
    const { store } = this.options;
    const range = { table: 'history', queue } as const;
    const [first, start] = [historyRowKey(stepS, 0), historyRowKey(stepS, from)];
    const earlier = { from: first, before: start, isReverse: true, limit: 1 };
    const rows = [
      ...(await store.listRows({ ...range, ...earlier })),
      ...(await store.listRows({ ...range, from: start, before: historyRowKey(stepS + 1, 0) })),
    ];
    return rows.map(({ key, value }) => {
      const [, at, instance] = key.split(' ');
      return { queue, stepS, at: Number(at), instance: instance!, point: value as HistoryPoint };
    });
  }

  /** Counted since the queue was created, also by other servers. */
  async totals(queue: string): Promise<HistoryTotals> {
    const [stored] = await this.options.store.listRows({ table: 'totals', queue });
    const unsaved = this.unsaved(queue, 0);
    return unsaved.reduce(
      (sum, { point }) => addTotals(sum, point),
      (stored?.value as HistoryTotals | undefined) ?? noTotals,
    );
  }

  /** Points of this server that are not stored yet, from a time on. */
  unsaved(queue: string, from: number): { at: number; point: HistoryPoint }[] {
    const own = [...(this.#queues.get(queue)?.points ?? [])].map(([at, point]) => ({ at, point }));
    const rows = this.#unfinished?.rows ?? [];
    const unfinished = rows.filter((row) => row.queue === queue && row.stepS === fine.stepS);
    return [...unfinished, ...own].filter(({ at }) => at >= from);
  }

  #current(queue: string): HistoryPoint {
    let counted = this.#queues.get(queue);
    if (!counted) this.#queues.set(queue, (counted = { points: new Map(), sums: new Map() }));
    const at = stepAt(this.options.clock.now(), fine.stepS);
    let point = counted.points.get(at);
    if (!point) counted.points.set(at, (point = emptyPoint()));
    return point;
  }

  /** First, so that what is taken is never missing for a reader. */
  async #readGauges(before: number): Promise<Map<string, QueueCounts>> {
    const gauges = new Map<string, QueueCounts>();
    for (const [queue, { points }] of this.#queues) {
      if (![...points.keys()].some((at) => at < before)) continue;
      gauges.set(queue, await this.options.store.counts(queue));
    }
    return gauges;
  }

  #takeBefore(before: number, gauges: ReadonlyMap<string, QueueCounts>): HistoryWrite {
    const { clock, instance } = this.options;
    const now = clock.now();
    const rows: HistoryRow[] = [];
    const totals: ({ queue: string } & HistoryTotals)[] = [];
    for (const [queue, counted] of this.#queues) {
      const over = [...counted.points].filter(([at]) => at < before);
      const counts = gauges.get(queue);
      if (over.length === 0 || !counts) {
        if (isIdle(counted, now)) this.#queues.delete(queue);
        continue;
      }
      const { pending, inFlight } = counts;
      let sum = noTotals;
      for (const [at, point] of over) {
        counted.points.delete(at);
        Object.assign(point, { pending, inFlight });
        sum = addTotals(sum, point);
        rows.push({ queue, stepS: fine.stepS, at, instance, point });
        for (const { stepS } of coarse)
          rows.push({ ...addToSum(counted, stepS, at, point), queue, stepS, instance });
      }
      totals.push({ queue, ...sum });
    }
    return { rows: lastOfEach(rows), totals };
  }
}

/** Also deletes rows of these queues that are too old. */
function batchOf({ rows, totals }: HistoryWrite, now: number): RowBatch {
  const puts: RowPut[] = rows.map(({ queue, stepS, at, instance, point }) => {
    return { table: 'history', queue, key: historyRowKey(stepS, at, instance), value: point };
  });
  for (const { queue, ...more } of totals) {
    const sum = (before: object | undefined) =>
      addTotals((before as HistoryTotals | undefined) ?? noTotals, more);
    puts.push({ table: 'totals', queue, key: '', value: sum });
  }
  const removals = totals.flatMap(({ queue }) =>
    historySteps.map(({ stepS, retentionMs }) => ({
      table: 'history' as const,
      queue,
      from: historyRowKey(stepS, 0),
      before: historyRowKey(stepS, now - retentionMs),
    })),
  );
  return { puts, removals, now };
}

/** Its longer steps are over too: a later point would start new ones. */
function isIdle({ points, sums }: Counted, now: number): boolean {
  if (points.size > 0) return false;
  return [...sums].every(([stepS, { at }]) => at !== stepAt(now, stepS));
}

/** The longer step that contains the point, with the point added. */
function addToSum({ sums }: Counted, stepS: number, at: number, point: HistoryPoint) {
  const start = stepAt(at, stepS);
  let sum = sums.get(stepS);
  if (sum?.at !== start) sums.set(stepS, (sum = { at: start, point: emptyPoint() }));
  addPoint(sum.point, point);
  return { at: start, point: structuredClone(sum.point) };
}

/** A longer step may be in the list several times. */
function lastOfEach(rows: readonly HistoryRow[]): HistoryRow[] {
  return [...new Map(rows.map((row) => [`${row.queue} ${row.stepS} ${row.at}`, row])).values()];
}

/**
 * The spans of a task: `submit`, one `callback` per attempt, and `task` from its submit to its end.
 * Span ids derive from the task and its leases, so that any server can record the end of a span.
 */

/** Respects the submitter's decision not to sample. */
export function isRecorded(headers: Task['headers']): boolean {
  const given = readTraceparent(headerOf(headers, 'traceparent') ?? '');
  return !given || isSampled(given);
}

/** A task without `traceparent` gets one, so that all its attempts share a trace. */
export function withTrace(task: NewTask): NewTask {
  const given = headerOf(task.headers, 'traceparent');
  if (given !== undefined && readTraceparent(given)) return task;
  const traceparent = `00-${traceIdOf(task.id)}-${submitSpanId(task.id)}-01`;
  return { ...task, headers: { ...task.headers, traceparent } };
}

const submitSpanId = (id: string) => spanIdOf(`submit ${id}`);
const taskSpanId = (id: string, redrive: number) => spanIdOf(`task ${id} ${redrive}`);

/** Undefined: the task is not part of a trace. */
export function submitSpan(
  { id, queue, handlerRef, headers }: NewTask,
  startMs: number,
  endMs: number,
): Span | undefined {
  const parent = readTraceparent(headerOf(headers, 'traceparent') ?? '');
  if (!parent) return undefined;
  const spanId = submitSpanId(id);
  return {
    traceId: parent.traceId,
    spanId,
    parentSpanId: parent.spanId === spanId ? undefined : parent.spanId,
    name: `submit ${queue}`,
    kind: 'server',
    startMs,
    endMs,
    attributes: { ...attributesOf(id, queue), 'millrace.handler': handlerRef },
  };
}

/** The spans that end with a settlement of the task. */
export function endSpans({ verdict, attempt, token }: Settlement, task: Task): Span[] {
  const { traceId, traceparent } = traceOf(task.headers, token);
  const { id, queue } = task;
  const shared = { traceId, endMs: attempt.endedAt };
  const failure = attempt.message ?? attempt.errorType ?? attempt.outcome;
  const error = attempt.outcome === 'SUCCEEDED' ? undefined : failure;
  const spanId = readTraceparent(traceparent)!.spanId;
  const callback: Span = {
    ...shared,
    spanId,
    parentSpanId: taskSpanId(id, attempt.redrive),
    name: `callback ${queue}`,
    kind: 'client',
    startMs: attempt.startedAt,
    attributes: {
      ...attributesOf(id, queue),
      'millrace.attempt': attempt.attempt,
      ...(attempt.httpStatus !== null && { 'http.response.status_code': attempt.httpStatus }),
      ...(attempt.url !== null && { 'url.full': attempt.url }),
    },
    error,
  };
  if (verdict.kind !== 'succeeded' && verdict.kind !== 'dead') return [callback];
  const whole: Span = {
    ...shared,
    spanId: taskSpanId(id, attempt.redrive),
    parentSpanId: submitSpanId(id),
    name: `task ${queue}`,
    kind: 'internal',
    startMs: task.createdAt,
    attributes: { ...attributesOf(id, queue), 'millrace.status': task.status },
    error: verdict.kind === 'dead' ? failure : undefined,
  };
  return [callback, whole];
}

function attributesOf(id: string, queue: string): Record<string, string> {
  return { 'millrace.task.id': id, 'millrace.queue': queue };
}
