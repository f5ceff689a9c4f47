import type { Clock } from '@millrace/kit/clock';
import {
  addPoint,
  addTotals,
  emptyPoint,
  historyRowKey,
  historySteps,
  noTotals,
  stepAt,
  type HistoryPoint,
  type HistoryRow,
  type HistoryTotals,
} from '../core/history.js';
import { Histogram } from '../core/histogram.js';
import type { QueueCounts } from '../core/queue.js';
import type { RowBatch, RowPut, TaskStore } from '../storage/port/task-store.js';

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
