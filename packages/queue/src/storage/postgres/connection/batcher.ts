import { StorageUnavailable } from '../../port/task-store.js';

interface Call<Item, Answer> {
  items: readonly Item[];
  bytes: number;
  resolve: (answers: Answer[]) => void;
  reject: (error: unknown) => void;
}

export interface BatcherOptions<Item, Answer> {
  /** Handles all items in one commit; a result for each, in order. */
  run: (items: readonly Item[]) => Promise<Answer[]>;
  maxItems: number;
  maxConcurrent: number;
  /** Bytes of items that may share a commit. */
  maxBytes?: number;
  bytesOf?: (item: Item) => number;
}

/**
 * Calls that arrive while a commit runs share the next one: a round trip and an fsync cost the same
 * for one task and for a hundred. The items of one call stay together.
 */
export class Batcher<Item, Answer> {
  #waiting: Call<Item, Answer>[] = [];
  #running = 0;

  constructor(private readonly options: BatcherOptions<Item, Answer>) {}

  add(items: readonly Item[]): Promise<Answer[]> {
    if (items.length === 0) return Promise.resolve([]);
    const { bytesOf } = this.options;
    let bytes = 0;
    if (bytesOf) for (const item of items) bytes += bytesOf(item);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items, bytes, resolve, reject });
      if (this.#waiting.length === 1) setImmediate(() => this.#next());
    });
  }

  #next(): void {
    while (this.#waiting.length > 0 && this.#running < this.options.maxConcurrent) {
      void this.#run(this.#take());
    }
  }

  #take(): Call<Item, Answer>[] {
    const { maxItems, maxBytes = Infinity } = this.options;
    let [count, items, bytes] = [0, 0, 0];
    for (const call of this.#waiting) {
      items += call.items.length;
      bytes += call.bytes;
      if (count > 0 && (items > maxItems || bytes > maxBytes)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #run(calls: readonly Call<Item, Answer>[]): Promise<void> {
    this.#running++;
    try {
      await this.#answer(calls);
    } catch (error) {
      if (calls.length === 1 || error instanceof StorageUnavailable) {
        for (const call of calls) call.reject(error);
      } else {
        // One call failed: run each alone, so that the others succeed.
        for (const call of calls) await this.#answer([call]).catch(call.reject);
      }
    }
    this.#running--;
    this.#next();
  }

  async #answer(calls: readonly Call<Item, Answer>[]): Promise<void> {
    const items = calls.length === 1 ? calls[0]!.items : calls.flatMap((call) => call.items);
    const answers = await this.options.run(items);
    let from = 0;
    for (const { items: own, resolve } of calls) {
      resolve(answers.slice(from, from + own.length));
      from += own.length;
    }
  }
}

/** Splits a list so that no part has a key twice. Keeps the order. */
export function partsWithoutRepeats<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
): Item[][] {
  const parts: Item[][] = [];
  let keys = new Set<string>();
  for (const item of items) {
    const key = keyOf(item);
    if (parts.length === 0 || keys.has(key)) {
      parts.push([]);
      keys = new Set();
    }
    keys.add(key);
    parts.at(-1)!.push(item);
  }
  return parts;
}
