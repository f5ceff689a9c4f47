import {
  decodeDirectory,
  directoryKey,
  encodeDirectory,
  PageWriter,
  type Directory,
} from '../format/search-pages.js';
import type { SearchRows } from './search-rows.js';

/** Some postings of a term, as `PageWriter.add` takes them. */
export interface TermItem {
  readonly name: string;
  readonly count: number;
  readonly first: number;
  readonly last: number;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** A segment as it was written: to merge it reads no pages. */
export interface SmallSegment {
  /** By term, and by rising numbers. */
  readonly items: readonly TermItem[];
  /** Of its pages. */
  readonly keys: readonly Buffer[];
}

/** Larger segments are read from their pages. */
const maxSmallBytes = 16 * 1024;

/** Writes a segment, and notes what it wrote. */
export class SmallWriter {
  readonly #items: TermItem[] = [];
  readonly #keys: Buffer[] = [];
  readonly #writer: PageWriter;

  constructor(own: SearchRows, segment: number) {
    this.#writer = new PageWriter(segment, (key, page) => {
      this.#keys.push(key);
      own.set(key, page);
    });
  }

  add(item: TermItem): void {
    const { name, count, first, last, bytes, start, end } = item;
    this.#writer.add(name, count, first, last, bytes, start, end);
    if (this.#writer.bytes <= maxSmallBytes) this.#items.push(item);
  }

  /** Returns the bytes of the pages. */
  finish(): number {
    this.#writer.finish();
    return this.#writer.bytes;
  }

  /** What it wrote; undefined if that is too much to be kept. */
  get small(): SmallSegment | undefined {
    if (this.#writer.bytes > maxSmallBytes) return undefined;
    return { items: this.#items, keys: this.#keys };
  }
}

type Items = readonly TermItem[];

/** The items of adjacent segments in order; those of one term stay in the order of the segments. */
export function mergedItems(segments: readonly SmallSegment[]): Items {
  let runs: Items[] = segments.map(({ items }) => items);
  while (runs.length > 1) {
    const longer: Items[] = [];
    for (let i = 0; i < runs.length; i += 2) longer.push(joined(runs[i]!, runs[i + 1] ?? []));
    runs = longer;
  }
  return runs[0] ?? [];
}

/** A sort of all takes three times as long: a fifth of the time of an update. */
function joined(a: Items, b: Items): Items {
  const all: TermItem[] = [];
  let j = 0;
  for (const item of a) {
    while (j < b.length && b[j]!.name < item.name) all.push(b[j++]!);
    all.push(item);
  }
  while (j < b.length) all.push(b[j++]!);
  return all;
}

/** An index as the last batch left it. */
export interface Tail {
  readonly directory: Directory;
  /** The small segments that this process wrote. */
  readonly segments: Map<number, SmallSegment>;
}

const maxTails = 16;

/**
 * The tails of the search indexes that were written last, in memory. A tail is used only while the
 * row of the directory is the one that was written with it, so that nothing of a batch that failed
 * is used, nor anything older than a merge.
 */
export class Tails {
  readonly #tails = new Map<number, Tail & { row: Buffer }>();

  /** The caller changes it, and stores it or forgets it. */
  take(own: SearchRows): Tail {
    const row = own.get(directoryKey);
    const tail = this.#tails.get(own.index);
    this.#tails.delete(own.index);
    if (tail && row?.equals(tail.row)) return tail;
    return { directory: decodeDirectory(row), segments: new Map() };
  }

  store(own: SearchRows, tail: Tail): void {
    const row = encodeDirectory(tail.directory);
    own.set(directoryKey, row);
    this.#tails.set(own.index, { ...tail, row });
    if (this.#tails.size > maxTails) this.#tails.delete(this.#tails.keys().next().value!);
  }
}
