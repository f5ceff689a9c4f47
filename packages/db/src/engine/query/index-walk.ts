import { after } from '../index/encoding.js';
import { idBytes } from '../storage/keys.js';
import type { IndexAccess } from './plan.js';
import type { IndexRange } from './ranges.js';
import type { Visit, Walk, WalkSource } from './walk.js';

export interface IndexWalkOptions {
  /** From high to low. */
  reverse?: boolean | undefined;
  /** Read backwards, records with the same values still come by growing id. */
  idsGrow?: boolean | undefined;
  /** Begin behind this place, in the direction of travel. */
  resume?: IndexPlace | undefined;
}

export interface IndexPlace {
  /** The encoded values, or as much of them as is known. */
  values: Uint8Array;
  id: string;
  /** `values` is only their beginning. */
  cut: boolean;
}

const firstChunk = 32;
const mostChunk = 1024;
const zero = Buffer.from([0]);

/**
 * Records in the order of an index. Entries are read a chunk at a time, and nothing stays open
 * between chunks, so that the walk can rest at any place.
 */
export class IndexWalk implements Walk {
  readonly inPlace = false;
  rows = 0;
  /** In the direction of travel; the first is where the walk is. */
  readonly #ranges: IndexRange[];
  readonly #seen: Set<string> | undefined;
  readonly #reverse: boolean;
  readonly #idsGrow: boolean;
  /** Entries with the same values, to be read forwards within a walk backwards. */
  #group: IndexRange | undefined;
  /** The last entry of the chunk before, where a walk backwards begins again. */
  #lastKey: Buffer | undefined;
  #chunk: string[] = [];
  #next = 0;
  #chunkLength = firstChunk;

  constructor(
    private readonly source: WalkSource,
    private readonly access: IndexAccess,
    options: IndexWalkOptions = {},
  ) {
    this.#reverse = options.reverse ?? false;
    this.#idsGrow = this.#reverse && (options.idsGrow ?? false);
    this.#ranges = this.#reverse ? access.ranges.toReversed() : [...access.ranges];
    this.#seen = access.index.multi ? new Set() : undefined;
    if (options.resume) this.#resume(options.resume);
  }

  run(visit: Visit): boolean {
    const { view, collection, now, hidden, slice } = this.source;
    for (;;) {
      while (this.#next < this.#chunk.length) {
        const id = this.#chunk[this.#next++]!;
        if (hidden?.has(id)) continue;
        const image = view.record(collection, id);
        if (!image || image.isExpired(now)) continue;
        const stop = visit(image);
        if (slice.spend(image.end) || stop) return false;
      }
      if (!this.#fill()) return true;
    }
  }

  /** The ids of the next entries, none twice; `undefined` when there are no more. */
  nextIds(): readonly string[] | undefined {
    return this.#fill() ? this.#chunk : undefined;
  }

  #fill(): boolean {
    this.#chunk = [];
    this.#next = 0;
    while (this.#chunk.length === 0) {
      if (this.#group) this.#group = this.#forwards(this.#group);
      else {
        const range = this.#ranges[0];
        if (!range) return false;
        const rest = this.#idsGrow
          ? this.#byGroups(range)
          : this.#reverse
            ? this.#backwards(range)
            : this.#forwards(range);
        if (rest) this.#ranges[0] = rest;
        else this.#ranges.shift();
      }
    }
    this.#chunkLength = Math.min(this.#chunkLength * 2, mostChunk);
    return true;
  }

  #add(id: string): void {
    this.rows++;
    if (this.#seen?.has(id)) return;
    this.#seen?.add(id);
    this.#chunk.push(id);
  }

  /** Reads a chunk of the range; returns what is left of it. */
  #forwards(range: IndexRange): IndexRange | undefined {
    const { index } = this.access;
    let left = this.#chunkLength;
    for (const { values, id } of this.source.view.entries(index.id, range)) {
      this.#add(id);
      if (--left === 0) return { start: keyOf(values, id, zero), end: range.end };
    }
    return undefined;
  }

  #backwards(range: IndexRange): IndexRange | undefined {
    let left = this.#chunkLength;
    for (const { values, id } of this.#entriesBackwards(range)) {
      const key = keyOf(values, id);
      if (this.#lastKey?.equals(key)) continue;
      this.#add(id);
      if (--left === 0) {
        this.#lastKey = key;
        return { start: range.start, end: key };
      }
    }
    return undefined;
  }

  /**
   * Backwards by value and forwards by id. The group that the chunk ends in is left for the next
   * one; when it alone fills the chunk, it is read forwards where it stands.
   */
  #byGroups(range: IndexRange): IndexRange | undefined {
    const groups: { values: Buffer; ids: string[] }[] = [];
    let left = this.#chunkLength;
    for (const { values, id } of this.#entriesBackwards(range)) {
      const group = groups.at(-1);
      if (group?.values.equals(values)) group.ids.push(id);
      else groups.push({ values: Buffer.from(values), ids: [id] });
      if (--left === 0) break;
    }
    let rest: IndexRange | undefined;
    if (left === 0) {
      const { values } = groups.pop()!;
      rest = { start: range.start, end: after(values) };
      if (groups.length === 0) {
        this.#group = { start: values, end: after(values) };
        rest = { start: range.start, end: values };
      }
    }
    for (const { ids } of groups) for (let i = ids.length - 1; i >= 0; i--) this.#add(ids[i]!);
    return rest && Buffer.compare(rest.start, rest.end) < 0 ? rest : undefined;
  }

  #entriesBackwards({ start, end }: IndexRange) {
    const range = { start: end, end: start, reverse: true };
    return this.source.view.entries(this.access.index.id, range);
  }

  #resume({ values, id, cut }: IndexPlace): void {
    if (!this.#reverse) {
      this.#clip(cut ? values : keyOf(values, id, zero), undefined);
    } else if (cut) this.#clip(undefined, after(values));
    else if (this.#idsGrow) {
      this.#clip(undefined, values);
      this.#group = { start: keyOf(values, id, zero), end: after(values) };
    } else {
      this.#lastKey = keyOf(values, id);
      this.#clip(undefined, this.#lastKey);
    }
  }

  #clip(low: Uint8Array | undefined, high: Uint8Array | undefined): void {
    const clipped = this.#ranges
      .map(({ start, end }) => ({
        start: low && Buffer.compare(low, start) > 0 ? low : start,
        end: high && Buffer.compare(high, end) < 0 ? high : end,
      }))
      .filter(({ start, end }) => Buffer.compare(start, end) < 0);
    this.#ranges.splice(0, this.#ranges.length, ...clipped);
  }
}

function keyOf(values: Uint8Array, id: string, tail?: Uint8Array): Buffer {
  return Buffer.concat(tail ? [values, idBytes(id), tail] : [values, idBytes(id)]);
}
