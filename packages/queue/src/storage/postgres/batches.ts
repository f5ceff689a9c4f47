import { StorageUnavailable } from '../port/task-store.js';

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

/**
 * Arrays in PostgreSQL's binary format. The driver would send each value as escaped text, which was
 * most of the cost of a batch.
 */

interface Kind {
  /** The type of an element. */
  readonly oid: number;
  readonly bytes: 2 | 4 | 8;
}

const textOid = 25;
const smallint: Kind = { oid: 21, bytes: 2 };
const integer: Kind = { oid: 23, bytes: 4 };
const bigint: Kind = { oid: 20, bytes: 8 };
const headBytes = 20;
const lengthBytes = 4;
const nullLength = -1;
const twoTo32 = 2 ** 32;

export function textArray(list: readonly (string | null)[]): Buffer {
  let bytes = headBytes + list.length * lengthBytes;
  for (const text of list) if (text !== null) bytes += Buffer.byteLength(text);
  const buffer = Buffer.allocUnsafe(bytes);
  let hasNull = false;
  let at = headBytes;
  for (const text of list) {
    if (text === null) {
      hasNull = true;
      at = buffer.writeInt32BE(nullLength, at);
      continue;
    }
    const length = buffer.write(text, at + lengthBytes);
    at = buffer.writeInt32BE(length, at) + length;
  }
  writeHead(buffer, textOid, list.length, hasNull);
  return buffer;
}

export const smallintArray = (list: readonly (number | null)[]) => numberArray(list, smallint);
export const integerArray = (list: readonly (number | null)[]) => numberArray(list, integer);
/** Safe integers only. */
export const bigintArray = (list: readonly (number | null)[]) => numberArray(list, bigint);

function numberArray(list: readonly (number | null)[], { oid, bytes }: Kind): Buffer {
  const buffer = Buffer.allocUnsafe(headBytes + list.length * (lengthBytes + bytes));
  let hasNull = false;
  let at = headBytes;
  for (const value of list) {
    if (value === null) {
      hasNull = true;
      at = buffer.writeInt32BE(nullLength, at);
      continue;
    }
    at = buffer.writeInt32BE(bytes, at);
    if (bytes === 2) at = buffer.writeInt16BE(value, at);
    else if (bytes === 4) at = buffer.writeInt32BE(value, at);
    else at = writeBigint(buffer, value, at);
  }
  writeHead(buffer, oid, list.length, hasNull);
  return buffer.subarray(0, at);
}

function writeBigint(buffer: Buffer, value: number, at: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no whole number`);
  const high = Math.floor(value / twoTo32);
  buffer.writeInt32BE(high, at);
  return buffer.writeUInt32BE(value - high * twoTo32, at + lengthBytes);
}

/** One dimension with lower bound 1. */
function writeHead(buffer: Buffer, oid: number, count: number, hasNull: boolean): void {
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(hasNull ? 1 : 0, 4);
  buffer.writeInt32BE(oid, 8);
  buffer.writeInt32BE(count, 12);
  buffer.writeInt32BE(1, 16);
}
