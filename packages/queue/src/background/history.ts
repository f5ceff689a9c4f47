import type { Clock } from '@millrace/kit/clock';
import {
  addPoint,
  addTotals,
  emptyPoint,
  historySteps,
  noTotals,
  stepAt,
  type HistoryPoint,
  type HistoryRow,
  type HistoryTotals,
} from '../core/history.js';
import { Histogram } from '../core/histogram.js';
import type { QueueCounts } from '../core/queue.js';
import type { HistoryWrite, TaskStore } from '../storage/port/task-store.js';

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
    if (this.#unfinished) await store.writeHistory(this.#unfinished);
    this.#unfinished = undefined;
    const before = isLast ? Infinity : stepAt(clock.now(), fine.stepS);
    const gauges = await this.#readGauges(before);
    const write = this.#takeBefore(before, gauges);
    if (write.rows.length > 0) {
      this.#unfinished = write;
      await store.writeHistory(write);
      this.#unfinished = undefined;
    }
    return fineMs - (clock.now() % fineMs);
  }

  /** Points of this server that are not stored yet, from a time on. */
  unsaved(queue: string, from: number): { at: number; point: HistoryPoint }[] {
    const own = [...(this.#queues.get(queue)?.points ?? [])].map(([at, point]) => ({ at, point }));
    const rows = this.#unfinished?.rows ?? [];
    const unfinished = rows.filter((row) => row.queue === queue && row.stepS === fine.stepS);
    return [...unfinished, ...own].filter(({ at }) => at >= from);
  }

  unsavedTotals(queue: string): HistoryTotals {
    return this.unsaved(queue, 0).reduce((sum, { point }) => addTotals(sum, point), noTotals);
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
    const totals: HistoryWrite['totals'][number][] = [];
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
    const prune = historySteps.map(({ stepS, retentionMs }) => ({
      stepS,
      before: now - retentionMs,
    }));
    return { rows: lastOfEach(rows), totals, prune };
  }
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
