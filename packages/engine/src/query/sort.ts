import type { Json } from '../value/documents.js';
import { compareValues } from '../value/order.js';
import { sortValue, type Path, type Row } from '../value/path.js';
import type { Slice } from '../core/slice.js';
import type { RecordImage } from '../format/record.js';
import type { Block, SortSpace, SpillFile } from '../storage/sort-space.js';

export type { OrderBy } from '../value/plain-query.js';

interface SortKey {
  readonly path: Path;
  readonly desc: boolean;
}

/** A validated order: the keys, then the id, which makes it total. */
export interface SortOrder {
  readonly keys: readonly SortKey[];
  readonly idDesc: boolean;
}

/** The position of a record in an order. A missing field is `undefined`. */
export interface Position {
  keys: (Json | undefined)[];
  id: string;
}

/** Drops steps that cannot change the order: repeated ones, and all after the id. */
export function toSortOrder(steps: readonly SortKey[]): SortOrder {
  const keys: SortKey[] = [];
  for (const step of steps) {
    if (step.path.text === '$id') return { keys, idDesc: step.desc };
    if (!keys.some((key) => settles(key, step))) keys.push(step);
  }
  return { keys, idDesc: false };
}

/**
 * Whether records that are equal in the first step are equal in the second. The same path in the
 * other direction is different if it may have several values: ascending compares the smallest,
 * descending the largest.
 */
function settles(first: SortKey, second: SortKey): boolean {
  if (first.path.text !== second.path.text) return false;
  return first.desc === second.desc || first.path.segments.length <= 1;
}

/** Reads and compares positions; one for each query. */
export class Sorter {
  readonly #reads: ((row: Row) => Json | undefined)[];
  readonly #desc: boolean[];

  constructor(readonly order: SortOrder) {
    this.#reads = order.keys.map((key) => sortValue(key.path, key.desc));
    this.#desc = order.keys.map((key) => key.desc);
  }

  positionOf(row: Row): Position {
    return { keys: this.#reads.map((read) => read(row)), id: row.id };
  }

  compare = (a: Position, b: Position): number => {
    for (let i = 0; i < this.#desc.length; i++) {
      const order = compareValues(a.keys[i], b.keys[i]);
      if (order !== 0) return this.#desc[i] ? -order : order;
    }
    return this.#compareIds(a.id, b.id);
  };

  /** As `compare`, without creating a position for the record. */
  compareRow(row: Row, position: Position): number {
    for (let i = 0; i < this.#desc.length; i++) {
      const order = compareValues(this.#reads[i]!(row), position.keys[i]);
      if (order !== 0) return this.#desc[i] ? -order : order;
    }
    return this.#compareIds(row.id, position.id);
  }

  #compareIds(a: string, b: string): number {
    if (a === b) return 0;
    return a < b !== this.order.idDesc ? -1 : 1;
  }
}

// A few milliseconds of sorting.
const defaultChunkLength = 4096;

/** Sorts as `Array.sort` does, with pauses. Returns the sorted array. */
export async function sortInSlices<Item>(
  items: Item[],
  compare: (a: Item, b: Item) => number,
  slice: Slice,
  chunkLength = defaultChunkLength,
): Promise<Item[]> {
  const steps = sortSteps(items, compare, chunkLength);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (slice.due()) await slice.pause();
  }
}

/** A merge sort that can pause after each step of some milliseconds. Returns the sorted array. */
export function* sortSteps<Item>(
  items: Item[],
  compare: (a: Item, b: Item) => number,
  chunkLength = defaultChunkLength,
): Generator<void, Item[], void> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += chunkLength) {
    runs.push(items.slice(at, at + chunkLength).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      merged.push(yield* mergeSteps(runs[i]!, runs[i + 1] ?? [], compare, chunkLength));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeSteps<Item>(
  left: Item[],
  right: Item[],
  compare: (a: Item, b: Item) => number,
  chunkLength: number,
): Generator<void, Item[], void> {
  if (right.length === 0) return left;
  const length = left.length + right.length;
  const merged: Item[] = [];
  let [i, j] = [0, 0];
  while (merged.length < length) {
    const stop = Math.min(merged.length + chunkLength, length);
    while (merged.length < stop) {
      const takeLeft = j >= right.length || (i < left.length && compare(left[i]!, right[j]!) <= 0);
      merged.push(takeLeft ? left[i++]! : right[j++]!);
    }
    yield;
  }
  return merged;
}

/** The first `capacity` of all offered items, in a heap with the last of them on top. */
export class Top<Item> {
  readonly #heap: Item[] = [];

  constructor(
    private readonly capacity: number,
    private readonly compare: (a: Item, b: Item) => number,
  ) {}

  /** A new item must come before this one to be kept; `undefined` while there is room. */
  get last(): Item | undefined {
    return this.#heap.length < this.capacity ? undefined : this.#heap[0];
  }

  /** Keeps an item. Check `last` first. */
  add(item: Item): void {
    const heap = this.#heap;
    if (heap.length < this.capacity) {
      heap.push(item);
      this.#rise(heap.length - 1);
    } else if (this.capacity > 0) {
      heap[0] = item;
      this.#sink();
    }
  }

  /** All items, unordered. */
  items(): Item[] {
    return this.#heap;
  }

  #rise(from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.compare(heap[at]!, heap[parent]!) <= 0) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) return;
      const right = left + 1;
      const larger =
        right < heap.length && this.compare(heap[right]!, heap[left]!) > 0 ? right : left;
      if (this.compare(heap[larger]!, heap[at]!) <= 0) return;
      this.#swap(at, larger);
      at = larger;
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b]!, heap[a]!];
  }
}

// Above this, keeping all and sorting once is as fast.
const maxTop = 100_000;
// A position with its list and its id.
const positionBytes = 160;
const valueBytes = 32;
// A text of a decoded document may keep a shared string of up to this size in memory.
const maxSharedBytes = 4_096;
const blockBytes = 64 * 1024;
/** Number of sorted runs merged at a time. It limits the blocks in memory during a merge. */
const mergeWidth = 16;

type Run = readonly Block[];

interface SizedPosition extends Position {
  /** Estimated memory. */
  readonly bytes: number;
}

/**
 * Sorts the positions of records in bounded memory. For a page only the first `capacity` are kept.
 * What exceeds the memory is written to a temporary file in sorted runs, which are merged when the
 * result is read.
 */
export class PositionSort {
  #top: Top<SizedPosition> | undefined;
  #all: SizedPosition[] = [];
  #bytes = 0;
  /** Positions from here on are not among the first `capacity`. */
  #bound: Position | undefined;
  #file: SpillFile | undefined;
  /** Runs, by the number of times they were merged. */
  readonly #levels: Run[][] = [];
  readonly #leave: () => void;

  constructor(
    private readonly sorter: Sorter,
    private readonly capacity: number,
    private readonly space: SortSpace,
    private readonly slice: Slice,
  ) {
    this.#leave = space.enter();
    if (capacity <= maxTop) this.#top = new Top<SizedPosition>(capacity, sorter.compare);
  }

  /** True when the memory is used up: call `spill` before the next one. */
  add(image: RecordImage): boolean {
    const { sorter } = this;
    const last = this.#top?.last ?? this.#bound;
    if (last && sorter.compareRow(image, last) >= 0) return false;
    const { keys, id } = sorter.positionOf(image);
    const position = { keys, id, bytes: sizeOf(keys, image.end) };
    this.#bytes += position.bytes - (this.#top?.last?.bytes ?? 0);
    if (this.#top) this.#top.add(position);
    else this.#all.push(position);
    return this.#bytes > this.space.share;
  }

  /** Moves what is in memory to the temporary file. */
  async spill(): Promise<void> {
    this.#bound = this.#top?.last ?? this.#bound;
    const sorted = await this.#sortMemory();
    if (sorted.length === 0) return;
    await this.#addRun(0, sorted.values());
  }

  /** All positions in order. */
  async sorted(): Promise<Iterator<Position>> {
    if (!this.#file) return (await this.#sortMemory()).values();
    await this.spill();
    return this.#merged(this.#levels.flat());
  }

  close(): void {
    this.#leave();
    this.#file?.close();
  }

  async #sortMemory(): Promise<SizedPosition[]> {
    const items = this.#top?.items() ?? this.#all;
    this.#top = undefined;
    this.#all = [];
    this.#bytes = 0;
    return sortInSlices(items, this.sorter.compare, this.slice);
  }

  async #addRun(level: number, positions: Iterator<SizedPosition>): Promise<void> {
    const runs = (this.#levels[level] ??= []);
    runs.push(await this.#write(positions));
    if (runs.length < mergeWidth) return;
    this.#levels[level] = [];
    await this.#addRun(level + 1, this.#merged(runs));
  }

  async #write(positions: Iterator<SizedPosition>): Promise<Run> {
    const file = (this.#file ??= this.space.openFile());
    const run: Block[] = [];
    let block: SizedPosition[] = [];
    let bytes = 0;
    let left = this.capacity;
    for (let next = positions.next(); !next.done && left > 0; next = positions.next(), left--) {
      block.push(next.value);
      bytes += next.value.bytes;
      if (bytes < blockBytes) continue;
      run.push(file.write(block));
      block = [];
      bytes = 0;
      if (this.slice.due()) await this.slice.pause();
    }
    if (block.length > 0) run.push(file.write(block));
    return run;
  }

  /** Merges several sorted runs, read block by block. */
  #merged(runs: readonly Run[]): Iterator<SizedPosition> {
    if (runs.length <= 1) return this.#read(runs[0] ?? []);
    const half = runs.length >> 1;
    return mergeTwo(
      this.#merged(runs.slice(0, half)),
      this.#merged(runs.slice(half)),
      this.sorter.compare,
    );
  }

  *#read(run: Run): Generator<SizedPosition, void, void> {
    for (const block of run) yield* this.#file!.read(block) as SizedPosition[];
  }
}

function* mergeTwo<Item>(
  left: Iterator<Item>,
  right: Iterator<Item>,
  compare: (a: Item, b: Item) => number,
): Generator<Item, void, void> {
  let [a, b] = [left.next(), right.next()];
  while (!a.done || !b.done) {
    if (b.done || (!a.done && compare(a.value, b.value) <= 0)) {
      yield a.value as Item;
      a = left.next();
    } else {
      yield b.value;
      b = right.next();
    }
  }
}

/** Estimated memory of a position; `documentBytes`: the size of its record. */
function sizeOf(keys: Position['keys'], documentBytes: number): number {
  let bytes = positionBytes;
  let isPlain = true;
  for (const key of keys) {
    if (typeof key === 'string' || typeof key === 'object') isPlain = false;
    bytes += valueSize(key);
  }
  return isPlain ? bytes : bytes + Math.min(documentBytes, maxSharedBytes);
}

function valueSize(value: Json | undefined): number {
  if (typeof value === 'string') return valueBytes + 2 * value.length;
  if (typeof value !== 'object' || value === null) return valueBytes;
  let bytes = valueBytes;
  for (const part of Object.values(value)) bytes += valueBytes + valueSize(part);
  return bytes;
}
