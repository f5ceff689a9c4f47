import type { Json } from '../value/documents.js';
import type { RecordImage } from '../format/record.js';
import { sortInSlices } from './merge-sort.js';
import type { Slice } from '../core/slice.js';
import type { Position, Sorter } from './sort.js';
import type { Block, SortSpace, SpillFile } from '../storage/sort-space.js';
import { Top } from './top.js';

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
