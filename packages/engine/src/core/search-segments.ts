import {
  decodeDirectory,
  directoryKey,
  eachPosting,
  goneKey,
  goneNumbers,
  numberKey,
  PageReader,
  pageKey,
  PageWriter,
  type PayloadTerms,
  recordRowKey,
  segmentRange,
  type Directory,
  type Postings,
  type PostingVisit,
  type SearchChange,
  type Segment,
} from '../format/search-pages.js';
import {
  mergedItems,
  SmallWriter,
  type SmallSegment,
  type Tail,
  type Tails,
} from './search-tail.js';
import { SearchRows, type IndexRows } from './search-rows.js';
import { GrowingBytes } from '../value/bytes.js';
import { idBytes, prefixed, prefixKey } from '../format/keys.js';
import type { TableRow } from '../storage/file/tables.js';

/** Merges that run beside the batches. */
export interface MergeSchedule {
  readonly tails: Tails;
  isMerging(segment: Segment, index: number): boolean;
  wake(index: number): void;
  /** Resolves when no merge is due. */
  idle(): Promise<void>;
}

/** Segments of about one size that are merged; a lower number makes writes slower. */
const mergedSegments = 8;
/** Smaller merges are part of the batch that makes them due. */
const maxInlineBytes = 64 * 1024;
/** A segment is rewritten when more than one of this many records is gone. */
const goneShare = 3;

/**
 * Writes the changes of a batch to their search indexes: a segment for each, and merges of small
 * ones. Returns the indexes with a larger merge to do.
 */
export function writeSegments(
  rows: IndexRows,
  changes: readonly SearchChange[],
  merges: Pick<MergeSchedule, 'isMerging' | 'tails'>,
): number[] {
  const indexes = new Map<number, Map<string, SearchChange>>();
  for (const change of changes) {
    let latest = indexes.get(change.index);
    if (!latest) indexes.set(change.index, (latest = new Map()));
    if (!change.isBuild || !latest.has(change.id)) latest.set(change.id, change);
  }
  const due: number[] = [];
  for (const [index, latest] of indexes) {
    const own = new SearchRows(index, rows);
    const tail = merges.tails.take(own);
    const { directory } = tail;
    if (!addSegment(own, tail, latest.values())) continue;
    for (;;) {
      const some = dueMerge(directory, (segment) => merges.isMerging(segment, index));
      if (!some) break;
      if (some.reduce((sum, { bytes }) => sum + bytes, 0) > maxInlineBytes) {
        due.push(index);
        break;
      }
      mergeNow(own, tail, some);
    }
    merges.tails.store(own, tail);
  }
  return due;
}

/** Merges small segments within a batch. */
function mergeNow(own: SearchRows, { directory, segments }: Tail, some: readonly Segment[]): void {
  const merge = new Merge(own, directory, some);
  const known = some.flatMap(({ id }) => segments.get(id) ?? []);
  if (known.length < some.length) merge.done(merge.step(own, Infinity));
  else {
    const small = merge.join(own, known);
    if (small) segments.set(merge.output, small);
  }
  merge.finish(own, directory);
  for (const { id } of some) {
    const keys = segments.get(id)?.keys;
    if (!keys) own.removePages(id, Infinity);
    else for (const key of keys) own.set(key, undefined);
    segments.delete(id);
  }
  // An output without records has no pages either, and nothing would remove it from the list.
  const isWritten = directory.segments.some(({ id }) => id === merge.output);
  directory.unused = directory.unused.filter(
    (id) => !some.some((each) => each.id === id) && (isWritten || id !== merge.output),
  );
}

/** Updates the rows of the records, and writes their terms. Returns whether anything changed. */
function addSegment(
  own: SearchRows,
  { directory, segments }: Tail,
  changes: Iterable<SearchChange>,
): boolean {
  const first = directory.nextNumber;
  const recordsBefore = directory.records;
  const terms = new TermTable();
  for (const { id, payload, terms: found, isBuild } of changes) {
    const idRow = idBytes(id);
    const recordRow = recordRowKey(idRow);
    const before = own.get(recordRow);
    if (before && isBuild) continue;
    if (before) removeNumber(own, directory, before);
    if (!payload || !found) {
      if (before) own.set(recordRow, undefined);
      continue;
    }
    const number = directory.nextNumber++;
    const { words } = found;
    terms.add(number, payload, found);
    const row = Buffer.allocUnsafe(8);
    row.writeUInt32BE(number, 0);
    row.writeUInt32BE(words, 4);
    own.set(recordRow, row);
    own.set(numberKey(number), idRow);
    directory.records++;
    directory.words += words;
  }
  const records = directory.nextNumber - first;
  if (records === 0) return directory.records !== recordsBefore;
  const id = directory.nextSegment++;
  const writer = new SmallWriter(own, id);
  terms.write(writer);
  const bytes = writer.finish();
  if (writer.small) segments.set(id, writer.small);
  const last = directory.nextNumber - 1;
  directory.segments.push({ id, first, last, records, gone: 0, bytes });
  return true;
}

/** Notes that the number of a record is gone, until a merge drops its postings. */
function removeNumber(own: SearchRows, directory: Directory, row: Buffer): void {
  const number = row.readUInt32BE(0);
  own.set(numberKey(number), undefined);
  directory.records--;
  directory.words -= row.readUInt32BE(4);
  const segment = directory.segments.find(({ first, last }) => number >= first && number <= last);
  if (segment) segment.gone++;
  const key = goneKey(number);
  const bits = Buffer.from(own.get(key) ?? Buffer.alloc(goneNumbers / 8));
  setGone(bits, number);
  own.set(key, bits);
}

export function setGone(bits: Uint8Array, number: number): void {
  bits[(number % goneNumbers) >>> 3]! |= 1 << (number & 7);
}

/** Numbers that are gone, from their rows. */
export class GoneNumbers {
  readonly rows = new Map<number, Buffer>();

  add(key: Uint8Array, at: number, bits: Uint8Array): void {
    const row =
      ((key[at]! << 24) | (key[at + 1]! << 16) | (key[at + 2]! << 8) | key[at + 3]!) >>> 0;
    this.rows.set(row, Buffer.from(bits));
  }

  set(number: number): void {
    const row = Math.floor(number / goneNumbers);
    let bits = this.rows.get(row);
    if (!bits) this.rows.set(row, (bits = Buffer.alloc(goneNumbers / 8)));
    setGone(bits, number);
  }

  /** The bits of the row that has this number. */
  bitsOf(number: number): Uint8Array | undefined {
    return this.rows.get(Math.floor(number / goneNumbers));
  }

  /** Whether there is a row for one of these numbers. */
  hasRows(first: number, last: number): boolean {
    if (this.rows.size === 0) return false;
    for (let row = Math.floor(first / goneNumbers); row <= last / goneNumbers; row++) {
      if (this.rows.has(row)) return true;
    }
    return false;
  }

  has(number: number): boolean {
    const bits = this.bitsOf(number);
    return bits !== undefined && isGone(bits, number);
  }
}

export function isGone(bits: Uint8Array, number: number): boolean {
  return ((bits[(number % goneNumbers) >>> 3]! >>> (number & 7)) & 1) === 1;
}

/** The postings of records that are not in a segment yet, by term. */
export class TermTable {
  /** The first and the last posting of each term, as bytes in latin1. */
  readonly #terms = new Map<string, { first: number; last: number }>();
  // Arrays of numbers: an object for each posting would be most of the garbage.
  readonly #numbers: number[] = [];
  readonly #starts: number[] = [];
  readonly #nexts: number[] = [];
  /** Postings without their numbers, in one place: they are read in the order of the terms. */
  readonly #postings = new GrowingBytes(1_024);

  add(number: number, payload: Buffer, { names, starts }: PayloadTerms): void {
    const postings = this.#postings;
    postings.reserve(payload.length);
    for (let i = 0; i < names.length; i++) {
      const at = this.#numbers.length;
      this.#numbers.push(number);
      this.#starts.push(postings.at + 1);
      this.#nexts.push(-1);
      const start = starts[i]! - 1;
      const end = start + 1 + payload[start]!;
      for (let from = start; from < end; from++) postings.bytes[postings.at++] = payload[from]!;
      const known = this.#terms.get(names[i]!);
      if (!known) this.#terms.set(names[i]!, { first: at, last: at });
      else {
        this.#nexts[known.last] = at;
        known.last = at;
      }
    }
  }

  get terms(): Iterable<string> {
    return this.#terms.keys();
  }

  /** Calls `visit` with the postings of a term: their number, bytes, start and end. */
  each(term: string, visit: (number: number, from: Buffer, start: number, end: number) => void) {
    for (let at = this.#terms.get(term)?.first ?? -1; at >= 0; at = this.#nexts[at]!) {
      const { bytes } = this.#postings;
      const start = this.#starts[at]!;
      visit(this.#numbers[at]!, bytes, start, start + bytes[start - 1]!);
    }
  }

  write(writer: SmallWriter): void {
    for (const name of sortedTerms([...this.#terms.keys()])) {
      this.each(name, (number, bytes, start, end) => {
        writer.add({ name, count: 1, first: number, last: number, bytes, start, end });
      });
    }
  }
}

const comparedUnits = 6;

/** Sorts texts of latin1. Comparing numbers made of their beginnings takes a fifth of the time. */
function sortedTerms(terms: readonly string[]): string[] {
  const starts = new Float64Array(terms.length);
  terms.forEach((term, i) => {
    let start = 0;
    for (let at = 0; at < comparedUnits; at++) start = start * 256 + (term.charCodeAt(at) || 0);
    starts[i] = start;
  });
  const order = terms.map((_, i) => i);
  order.sort((a, b) => starts[a]! - starts[b]! || (terms[a]! < terms[b]! ? -1 : 1));
  return order.map((i) => terms[i]!);
}

/** Adjacent segments to merge: several of one size and smaller ones, or one with many gone. */
export function dueMerge(
  { segments }: Directory,
  isMerging: (segment: Segment) => boolean,
): Segment[] | undefined {
  let [largest, count] = [-1, 0];
  let at = segments.length;
  for (; at > 0 && !isMerging(segments[at - 1]!); at--) {
    const size = sizeOf(segments[at - 1]!);
    if (size > largest) {
      if (count >= mergedSegments) break;
      [largest, count] = [size, 0];
    }
    if (size === largest) count++;
  }
  if (count >= mergedSegments) return segments.slice(at);
  const worn = segments.find((each) => each.gone * goneShare > each.records && !isMerging(each));
  return worn && [worn];
}

/** The logarithm of its records. */
function sizeOf({ records }: Segment): number {
  let size = 0;
  for (let left = records; left >= mergedSegments; left /= mergedSegments) size++;
  return size;
}

/** Merges segments into a new one, in steps, each of which may run in a job of its own. */
export class Merge {
  readonly index: number;
  readonly output: number;
  /** The first term of the next step; undefined at the end. */
  next: string | undefined = '';
  #bytes = 0;
  readonly #gone = new GoneNumbers();
  #goneCount = 0;

  /** Adds the output to the unused segments of the directory, which the caller writes. */
  constructor(
    own: SearchRows,
    directory: Directory,
    readonly inputs: readonly Segment[],
  ) {
    this.index = own.index;
    this.output = directory.nextSegment++;
    directory.unused.push(this.output);
    const { last } = inputs.at(-1)!;
    for (let number = inputs[0]!.first; ; number += goneNumbers) {
      const key = goneKey(Math.min(number, last));
      const bits = own.get(key);
      if (bits) this.#gone.add(key, 1, bits);
      if (number >= last) break;
    }
  }

  /** Writes all of the output from segments in memory. Returns it, if it may be kept there. */
  join(own: SearchRows, segments: readonly SmallSegment[]): SmallSegment | undefined {
    const writer = new SmallWriter(own, this.output);
    const hasGone = this.#gone.rows.size > 0;
    for (const item of mergedItems(segments)) {
      if (!hasGone) writer.add(item);
      else {
        this.#eachPresent(item, (number, start, end) => {
          writer.add({ ...item, count: 1, first: number, last: number, start, end });
        });
      }
    }
    this.done({ next: undefined, bytes: writer.finish() });
    return writer.small;
  }

  /** Writes at least `maxBytes` of pages, and ends between two terms. Returns what follows. */
  step(own: SearchRows, maxBytes: number): { next: string | undefined; bytes: number } {
    const writer = new PageWriter(this.output, (key, page) => own.set(key, page));
    const start = Buffer.from(this.next!, 'latin1');
    const heads = this.inputs.map(({ id }) => new SegmentWalk(own, id, start));
    const hasGone = this.#gone.rows.size > 0;
    let next: string | undefined;
    for (;;) {
      const name = firstOf(heads);
      if (name === undefined) break;
      if (writer.bytes >= maxBytes) {
        next = name;
        break;
      }
      for (const head of heads) {
        for (; head.name === name; head.advance()) {
          const { count, first, last, bytes, start: from, end } = head.item;
          if (!hasGone) writer.add(name, count, first, last, bytes, from, end);
          else {
            this.#eachPresent(head.item, (number, start, end) =>
              writer.add(name, 1, number, number, bytes, start, end),
            );
          }
        }
      }
    }
    writer.finish();
    for (const head of heads) head.close();
    return { next, bytes: writer.bytes };
  }

  /** Whether the index still has the inputs: it may have been dropped. */
  isCurrent(own: SearchRows): boolean {
    const ids = new Set(own.directory.segments.map(({ id }) => id));
    return this.inputs.every(({ id }) => ids.has(id));
  }

  /** Notes that a step is durable. */
  done({ next, bytes }: { next: string | undefined; bytes: number }): void {
    this.next = next;
    this.#bytes += bytes;
  }

  /** Puts the output in the place of the inputs. The caller writes the directory. */
  finish(own: SearchRows, directory: Directory): void {
    const ids = new Set(this.inputs.map(({ id }) => id));
    const { first } = this.inputs[0]!;
    const { last } = this.inputs.at(-1)!;
    const there = directory.segments.filter(({ id }) => ids.has(id));
    this.#clearGone(own, first, last);
    const records = there.reduce((sum, each) => sum + each.records, 0) - this.#goneCount;
    const gone = there.reduce((sum, each) => sum + each.gone, 0) - this.#goneCount;
    const at = directory.segments.findIndex(({ id }) => ids.has(id));
    const merged = { id: this.output, first, last, records, gone, bytes: this.#bytes };
    directory.segments.splice(at, there.length, ...(records > 0 ? [merged] : []));
    directory.unused = [...directory.unused.filter((id) => id !== this.output), ...ids];
    if (records === 0) directory.unused.push(this.output);
  }

  #eachPresent(item: Postings, visit: PostingVisit): void {
    eachPosting(item, (number, start, end) => {
      if (!this.#gone.has(number)) visit(number, start, end);
    });
  }

  /** The numbers that were left out have no postings any more. */
  #clearGone(own: SearchRows, first: number, last: number): void {
    this.#goneCount = 0;
    for (const [row, dropped] of this.#gone.rows) {
      const key = goneKey(row * goneNumbers);
      const bits = own.get(key);
      if (!bits) continue;
      const left = Buffer.from(bits);
      for (let i = 0; i < goneNumbers; i++) {
        const number = row * goneNumbers + i;
        if (number < first || number > last || !isGone(dropped, number)) continue;
        left[i >>> 3]! &= ~(1 << (i & 7));
        this.#goneCount++;
      }
      own.set(key, left.every((byte) => byte === 0) ? undefined : left);
    }
  }
}

/** The lowest term. */
function firstOf(heads: readonly SegmentWalk[]): string | undefined {
  let first: string | undefined;
  for (const { name } of heads) {
    if (name !== undefined && (first === undefined || name < first)) first = name;
  }
  return first;
}

/** Walks over the items of a segment, from a term on. */
class SegmentWalk {
  readonly item = new PageReader();
  /** The term of the item; undefined at the end. */
  name: string | undefined;
  readonly #pages: Iterator<TableRow>;

  constructor(own: SearchRows, segment: number, from: Buffer) {
    const { end } = segmentRange(segment);
    this.#pages = own.range({ start: pageKey(segment, from), end })[Symbol.iterator]();
    const start = from.toString('latin1');
    do this.advance();
    while (this.name !== undefined && this.name < start);
  }

  advance(): void {
    while (!this.item.next()) {
      const page = this.#pages.next();
      if (page.done) {
        this.name = undefined;
        return;
      }
      this.item.open(page.value.value, page.value.value.length);
    }
    this.name = this.item.name;
  }

  close(): void {
    this.#pages.return?.();
  }
}

const maxNumber = 2 ** 31;

/** Whether an index has rows of the first layout, an entry for each word, or few numbers left. */
export function mustRebuild(index: number, rows: Pick<IndexRows, 'get' | 'range'>): boolean {
  const row = rows.get('index', prefixed(index, directoryKey));
  if (row) {
    const { nextNumber, nextSegment } = decodeDirectory(row);
    return Math.max(nextNumber, nextSegment) > maxNumber;
  }
  const start = prefixed(index, directoryKey);
  for (const _row of rows.range('index', { start, end: prefixKey(index + 1), limit: 1 })) {
    return true;
  }
  return false;
}
