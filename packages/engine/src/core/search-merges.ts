import type { Segment } from '../format/search-pages.js';
import type { Core } from './core.js';
import { Tails } from './search-tail.js';
import { SearchRows } from './search-rows.js';
import { dueMerge, Merge, type MergeSchedule } from './search-segments.js';

/** Bytes of pages that one job writes, in about a millisecond. */
const stepBytes = 48 * 1024;
/** With more segments, steps are larger: under a bulk load there is one step for each batch. */
const fewSegments = 16;
const pagesPerStep = 200;

/** Merges segments of search indexes between other writes, one merge at a time. */
export class SearchMerges implements MergeSchedule {
  readonly tails = new Tails();
  readonly #due = new Set<number>();
  #running: Promise<void> | undefined;
  #active: Merge | undefined;

  constructor(
    private readonly core: Core,
    private readonly signal: AbortSignal,
  ) {}

  /** Continues what an earlier process left. */
  start(): void {
    for (const { id, definition } of this.core.catalog.indexes()) {
      if (definition.kind === 'search') this.wake(id);
    }
  }

  wake(index: number): void {
    this.#due.add(index);
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      for (const late of this.#due) this.wake(late);
    });
  }

  isMerging({ id }: Segment, index: number): boolean {
    return this.#active?.index === index && this.#active.inputs.some((each) => each.id === id);
  }

  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    for (const index of this.#due) {
      this.#due.delete(index);
      try {
        await this.#removeUnused(index);
        while (await this.#merge(index)) await this.#removeUnused(index);
      } catch (error) {
        if (!this.signal.aborted) this.core.log.error({ index, err: error }, 'search merge failed');
      }
      this.#active = undefined;
    }
  }

  #submit<Result>(index: number, job: (own: SearchRows) => Result): Promise<Result> {
    this.signal.throwIfAborted();
    const { writer } = this.core;
    const rows = new SearchRows(index, {
      get: (table, key) => writer.get(table, key),
      range: (table, range) => writer.range(table, range),
      set: (table, key, value) => {
        if (value) writer.put(table, key, value);
        else writer.remove(table, key);
      },
    });
    return writer.submit(() => job(rows));
  }

  /** Returns whether something was merged. */
  async #merge(index: number): Promise<boolean> {
    const merge = await this.#submit(index, (own) => {
      const { directory } = own;
      const some = dueMerge(directory, () => false);
      // Set within the job: batches after it must not merge the same segments.
      this.#active = some && new Merge(own, directory, some);
      if (some) own.directory = directory;
      return this.#active;
    });
    while (merge?.next !== undefined) {
      const step = await this.#submit(index, (own) => {
        const behind = Math.max(1, own.directory.segments.length - fewSegments);
        return merge.isCurrent(own) ? merge.step(own, stepBytes * behind) : undefined;
      });
      if (!step) return false;
      merge.done(step);
    }
    if (!merge) return false;
    const isDone = await this.#submit(index, (own) => {
      if (!merge.isCurrent(own)) return false;
      const { directory } = own;
      merge.finish(own, directory);
      own.directory = directory;
      this.#active = undefined;
      return true;
    });
    return isDone;
  }

  /** Removes the pages of segments that were merged, and of merges that did not end. */
  async #removeUnused(index: number): Promise<void> {
    for (let isMore = true; isMore;) {
      isMore = await this.#submit(index, (own) => {
        const { directory } = own;
        const [first] = directory.unused;
        if (first === undefined) return false;
        if (!own.removePages(first, pagesPerStep)) {
          directory.unused.shift();
          own.directory = directory;
        }
        return true;
      });
    }
  }
}
