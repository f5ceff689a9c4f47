import { after } from '../format/encoding.js';
import type { EntryVisit } from '../storage/views.js';
import { idBytes, idLength, readId } from '../format/keys.js';
import type { IndexAccess, Access } from './plan.js';
import type { IndexRange } from './ranges.js';
import { type Visit, type Walk, type WalkSource, ScanWalk } from './walk.js';
import { maxKeyBytes } from '../value/documents.js';
import { isStoredId } from '../value/filter.js';

interface IndexWalkOptions {
  /** Descending. */
  reverse?: boolean | undefined;
  /** In a descending walk, records with the same values are still in ascending order of id. */
  idsGrow?: boolean | undefined;
  /** Expected number of records, if known. */
  wanted?: number | undefined;
  /** Start after this position, in the direction of the walk. */
  resume?: IndexPlace | undefined;
}

export interface IndexPlace {
  /** The encoded values, as far as they are known. */
  values: Uint8Array;
  id: string;
  /** `values` is only a prefix of them. */
  cut: boolean;
}

// A seek costs as much as reading some dozens of entries.
const minChunkLength = 32;
const maxFirstChunk = 256;
const maxChunk = 1024;
const zero = Buffer.from([0]);
const noBytes = Buffer.alloc(0);

/**
 * Records in index order. Entries are read in chunks, and no LMDB cursor stays open between chunks,
 * so that the walk can pause anywhere.
 */
export class IndexWalk implements Walk {
  rows = 0;
  /** In the direction of the walk; the first is the current one. */
  readonly #ranges: IndexRange[];
  readonly #seen: Set<string> | undefined;
  readonly #reverse: boolean;
  readonly #idsGrow: boolean;
  /** Entries with the same values, to be read in ascending order within a descending walk. */
  #group: IndexRange | undefined;
  /** The last entry of the chunk before, where a descending walk continues. */
  #lastKey: Buffer | undefined;
  /** The ids of the chunk, concatenated. */
  #ids = noBytes;
  #count = 0;
  #next = 0;
  #chunkLength: number;

  constructor(
    private readonly source: WalkSource,
    private readonly access: IndexAccess,
    options: IndexWalkOptions = {},
  ) {
    this.#reverse = options.reverse ?? false;
    this.#idsGrow = this.#reverse && (options.idsGrow ?? false);
    this.#ranges = this.#reverse ? access.ranges.toReversed() : [...access.ranges];
    this.#seen = access.index.multi ? new Set() : undefined;
    const wanted = Math.max(options.wanted ?? minChunkLength, minChunkLength);
    this.#chunkLength = Math.min(wanted, maxFirstChunk);
    if (options.resume) this.#resume(options.resume);
  }

  run(visit: Visit): boolean {
    const { view, collection, now, hidden, slice } = this.source;
    for (;;) {
      while (this.#next < this.#count) {
        const at = idLength * this.#next++;
        if (hidden?.has(readId(this.#ids, at))) continue;
        const image = view.recordAt(collection, this.#ids, at);
        if (!image || image.isExpired(now)) continue;
        const stop = visit(image);
        if (slice.spend(image.end) || stop) return false;
      }
      if (!this.#fill()) return true;
    }
  }

  /** The ids of the next entries, without duplicates; `undefined` at the end. */
  nextIds(): readonly string[] | undefined {
    if (!this.#fill()) return undefined;
    return Array.from({ length: this.#count }, (_, i) => readId(this.#ids, idLength * i));
  }

  #fill(): boolean {
    this.#count = this.#next = 0;
    if (this.#ids.length < idLength * this.#chunkLength) {
      this.#ids = Buffer.allocUnsafeSlow(idLength * this.#chunkLength);
    }
    while (this.#count === 0) {
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
    this.#chunkLength = Math.min(this.#chunkLength * 2, maxChunk);
    return true;
  }

  #add(bytes: Uint8Array, idAt: number): void {
    this.rows++;
    if (this.#seen) {
      const id = readId(bytes, idAt);
      if (this.#seen.has(id)) return;
      this.#seen.add(id);
    }
    const to = idLength * this.#count++;
    for (let i = 0; i < idLength; i++) this.#ids[to + i] = bytes[idAt + i]!;
  }

  /** Reads a chunk of the range; returns the rest of the range. */
  #forwards(range: IndexRange): IndexRange | undefined {
    let left = this.#chunkLength;
    let rest: IndexRange | undefined;
    this.source.view.entries(this.access.index.id, range, (bytes, start, idAt) => {
      this.#add(bytes, idAt);
      if (--left > 0) return false;
      rest = { start: Buffer.concat([entryOf(bytes, start, idAt), zero]), end: range.end };
      return true;
    });
    return rest;
  }

  #backwards(range: IndexRange): IndexRange | undefined {
    let left = this.#chunkLength;
    let rest: IndexRange | undefined;
    this.#entriesBackwards(range, (bytes, start, idAt) => {
      if (this.#lastKey?.equals(entryOf(bytes, start, idAt))) return false;
      this.#add(bytes, idAt);
      if (--left > 0) return false;
      this.#lastKey = Buffer.from(entryOf(bytes, start, idAt));
      rest = { start: range.start, end: this.#lastKey };
      return true;
    });
    return rest;
  }

  /**
   * Descending by value and ascending by id. The last group of the chunk is left for the next one;
   * when it alone fills the chunk, it is read in ascending order from its start.
   */
  #byGroups(range: IndexRange): IndexRange | undefined {
    const groups: { values: Buffer; ids: Buffer[] }[] = [];
    let left = this.#chunkLength;
    this.#entriesBackwards(range, (bytes, start, idAt) => {
      const values = bytes.subarray(start, idAt);
      const id = Buffer.from(bytes.subarray(idAt, idAt + idLength));
      const group = groups.at(-1);
      if (group?.values.equals(values)) group.ids.push(id);
      else groups.push({ values: Buffer.from(values), ids: [id] });
      return --left === 0;
    });
    let rest: IndexRange | undefined;
    if (left === 0) {
      const { values } = groups.pop()!;
      rest = { start: range.start, end: after(values) };
      if (groups.length === 0) {
        this.#group = { start: values, end: after(values) };
        rest = { start: range.start, end: values };
      }
    }
    for (const { ids } of groups) for (let i = ids.length - 1; i >= 0; i--) this.#add(ids[i]!, 0);
    return rest && Buffer.compare(rest.start, rest.end) < 0 ? rest : undefined;
  }

  #entriesBackwards({ start, end }: IndexRange, visit: EntryVisit): void {
    const range = { start: end, end: start, reverse: true };
    this.source.view.entries(this.access.index.id, range, visit);
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

/** The values and the id. */
function entryOf(bytes: Uint8Array, start: number, idAt: number): Uint8Array {
  return bytes.subarray(start, idAt + idLength);
}

function keyOf(values: Uint8Array, id: string, tail?: Uint8Array): Buffer {
  return Buffer.concat(tail ? [values, idBytes(id), tail] : [values, idBytes(id)]);
}

/** Collects the ids of an access path without duplicates, a few at a time. */
export class IdCollector {
  readonly ids = new Set<string>();
  readonly #steps: Generator<void, void, void>;
  /** Rows read so far. */
  rows = 0;

  constructor(
    private readonly source: WalkSource,
    access: Access,
  ) {
    this.#steps = this.#collect(access);
  }

  /** True when complete. */
  step(): boolean {
    return this.#steps.next().done ?? false;
  }

  *#collect(access: Access): Generator<void, void, void> {
    switch (access.kind) {
      case 'ids':
        this.rows += access.ids.length;
        for (const id of access.ids) if (isStoredId(id)) this.ids.add(id);
        return;
      case 'keys':
        this.rows += access.keys.length;
        for (const key of access.keys) this.#addKey(key);
        return;
      case 'index': {
        const walk = new IndexWalk(this.source, access);
        const before = this.rows;
        for (let chunk = walk.nextIds(); chunk; chunk = walk.nextIds()) {
          for (const id of chunk) this.ids.add(id);
          this.rows = before + walk.rows;
          yield;
        }
        return;
      }
      case 'scan':
      case 'idRange': {
        const walk = new ScanWalk(this.source, false, access.kind === 'scan' ? undefined : access);
        const before = this.rows;
        const visit = (image: { id: string }) => !this.ids.add(image.id);
        for (let ended = false; !ended;) {
          ended = walk.run(visit);
          this.rows = before + walk.rows;
          yield;
        }
        return;
      }
      case 'union':
        for (const part of access.parts) yield* this.#collect(part);
    }
  }

  #addKey(key: string): void {
    // No record has a longer key, and LMDB refuses such a row.
    if (key.length > maxKeyBytes || Buffer.byteLength(key) > maxKeyBytes) return;
    const id = this.source.view.idOfKey(this.source.collection, key);
    if (id !== undefined) this.ids.add(id);
  }
}
