import { StorageUnavailable } from '../port/task-store.js';
import type { Step } from './step.js';

/** Runs a function as one commit; resolves when it is on disk. */
export type Transact = <Result>(run: (step: Step) => Result) => Promise<Result>;

/** The handlers that get work, by queue. */
export type Work = ReadonlyMap<string, ReadonlySet<string>>;

interface Batch<Item, Result> {
  calls: (readonly Item[])[];
  itemCount: number;
  /** Queues and handlers whose listeners have been notified. */
  notified: Map<string, Set<string>>;
  outcome: Promise<Result[][]>;
}

export interface BatcherOptions<Item, Result> {
  transact: Transact;
  maxItems: number;
  run: (step: Step, item: Item) => Result;
  /** Called once per batch and handler, when the writer has the batch in its queue. */
  notify?: (queue: string, handlers: ReadonlySet<string>) => void;
}

/**
 * Group commit: calls that arrive before the writer runs the first of them share one step. A step
 * reads and writes the counters of its queues, which is most of the cost of a call with one task.
 */
export class Batcher<Item, Result> {
  #open: Batch<Item, Result> | undefined;

  constructor(private readonly options: BatcherOptions<Item, Result>) {}

  async add(items: readonly Item[], work: Work = new Map()): Promise<Result[]> {
    if (items.length === 0) return [];
    const batch = this.#batchFor(items.length);
    const index = batch.calls.push(items) - 1;
    batch.itemCount += items.length;
    for (const [queue, handlers] of work) this.#notify(batch, queue, handlers);
    try {
      return (await batch.outcome)[index]!;
    } catch (error) {
      if (batch.calls.length === 1 || error instanceof StorageUnavailable) throw error;
      // One call of the batch failed: run each alone, so that the others succeed.
      const results = this.options.transact((step) => this.#run(step, items));
      for (const [queue, handlers] of work) this.options.notify?.(queue, handlers);
      return results;
    }
  }

  #batchFor(itemCount: number): Batch<Item, Result> {
    const open = this.#open;
    if (open && open.itemCount + itemCount <= this.options.maxItems) return open;
    const calls: (readonly Item[])[] = [];
    const outcome = this.options.transact((step) => {
      // The writer may run this again, so nothing may join the batch from here on.
      if (this.#open === batch) this.#open = undefined;
      return calls.map((items) => this.#run(step, items));
    });
    const batch: Batch<Item, Result> = { calls, itemCount: 0, notified: new Map(), outcome };
    this.#open = batch;
    return batch;
  }

  #notify(batch: Batch<Item, Result>, queue: string, handlers: ReadonlySet<string>): void {
    const notified = batch.notified.get(queue) ?? new Set();
    const more = new Set([...handlers].filter((handler) => !notified.has(handler)));
    if (more.size === 0) return;
    for (const handler of more) notified.add(handler);
    batch.notified.set(queue, notified);
    this.options.notify?.(queue, more);
  }

  #run(step: Step, items: readonly Item[]): Result[] {
    return items.map((item) => this.options.run(step, item));
  }
}
