import {
  decodeDirectory,
  directoryKey,
  eachPosting,
  encodeDirectory,
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
  type SearchChange,
  type Segment,
} from '../format/search-pages.js';
import { GrowingBytes } from '../value/bytes.js';
import { idBytes, prefixed, prefixKey, prefixLength } from '../format/keys.js';
import type { KeyRange } from '../storage/file/in-place.js';
import type { TableName, TableRow } from '../storage/file/tables.js';

/** Rows as the writer has them. */
export interface IndexRows {
  get(table: TableName, key: Buffer): Buffer | undefined;
  range(table: TableName, range: KeyRange): Iterable<TableRow>;
  set(table: TableName, key: Buffer, value: Buffer | undefined): void;
}

/** Merges that run beside the batches. */
export interface MergeSchedule {
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

/** The rows of one search index. */
export class SearchRows {
  constructor(
    readonly index: number,
    private readonly rows: IndexRows,
  ) {}

  get(key: Buffer): Buffer | undefined {
    return this.rows.get('index', prefixed(this.index, key));
  }

  set(key: Buffer, value: Buffer | undefined): void {
    this.rows.set('index', prefixed(this.index, key), value);
  }

  range({ start, end }: { start: Buffer; end: Buffer }, limit?: number): Iterable<TableRow> {
    const range = { start: prefixed(this.index, start), end: prefixed(this.index, end) };
    return this.rows.range('index', limit === undefined ? range : { ...range, limit });
  }

  get directory(): Directory {
    return decodeDirectory(this.get(directoryKey));
  }

  set directory(directory: Directory) {
    this.set(directoryKey, encodeDirectory(directory));
  }

  /** Removes up to `limit` pages of a segment. Returns whether there may be more. */
  removePages(segment: number, limit: number): boolean {
    const rows = Array.from(this.range(segmentRange(segment), limit));
    for (const { key } of rows) this.rows.set('index', key, undefined);
    return rows.length === limit;
  }
}

/**
 * Writes the changes of a batch to their search indexes: a segment for each, and merges of small
 * ones. Returns the indexes with a larger merge to do.
 */
export function writeSegments(
  rows: IndexRows,
  changes: readonly SearchChange[],
  merges: Pick<MergeSchedule, 'isMerging'>,
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
    const { directory } = own;
    if (!addSegment(own, directory, latest.values())) continue;
    for (;;) {
      const some = dueMerge(directory, (segment) => merges.isMerging(segment, index));
      if (!some) break;
      if (some.reduce((sum, { bytes }) => sum + bytes, 0) > maxInlineBytes) {
        due.push(index);
        break;
      }
      const merge = new Merge(own, directory, some);
      merge.done(merge.step(own, Infinity));
      merge.finish(own, directory);
      for (const { id } of some) own.removePages(id, Infinity);
      directory.unused = directory.unused.filter((id) => !some.some((each) => each.id === id));
    }
    own.directory = directory;
  }
  return due;
}

/** Updates the rows of the records, and writes their terms. Returns whether anything changed. */
function addSegment(
  own: SearchRows,
  directory: Directory,
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
  const writer = new PageWriter(id, (key, page) => own.set(key, page));
  terms.write(writer);
  const last = directory.nextNumber - 1;
  directory.segments.push({ id, first, last, records, gone: 0, bytes: writer.bytes });
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
  readonly #postings = new GrowingBytes(4_096);

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

  write(writer: PageWriter): void {
    for (const term of sortedTerms([...this.#terms.keys()])) {
      this.each(term, (number, bytes, start, end) => {
        writer.add(term, 1, number, number, bytes, start, end);
      });
    }
    writer.finish();
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
  const from = segments.findLastIndex(isMerging) + 1;
  const free = segments.slice(from);
  const sizeOf = ({ records }: Segment) => Math.floor(Math.log(records) / Math.log(mergedSegments));
  for (const size of new Set(free.map(sizeOf).toSorted((a, b) => a - b))) {
    const start = free.findLastIndex((each) => sizeOf(each) > size) + 1;
    const run = free.slice(start);
    if (run.filter((each) => sizeOf(each) === size).length >= mergedSegments) return run;
  }
  const worn = segments.find((each) => each.gone * goneShare > each.records && !isMerging(each));
  return worn && [worn];
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
    const [start, end] = [goneKey(inputs[0]!.first), goneKey(inputs.at(-1)!.last + goneNumbers)];
    for (const { key, value } of own.range({ start, end })) {
      this.#gone.add(key, prefixLength + 1, value);
    }
  }

  /** Writes at least `maxBytes` of pages, and ends between two terms. Returns what follows. */
  step(own: SearchRows, maxBytes: number): { next: string | undefined; bytes: number } {
    const writer = new PageWriter(this.output, (key, page) => own.set(key, page));
    const start = Buffer.from(this.next!, 'latin1');
    const heads = this.inputs.map(({ id }) => new SegmentWalk(own, id, start));
    const hasGone = this.#gone.rows.size > 0;
    let next: string | undefined;
    for (;;) {
      let term: string | undefined;
      for (const { name } of heads) {
        if (name !== undefined && (term === undefined || name < term)) term = name;
      }
      if (term === undefined) break;
      if (writer.bytes >= maxBytes) {
        next = term;
        break;
      }
      for (const head of heads) {
        for (; head.name === term; head.advance()) {
          if (hasGone) this.#addPresent(writer, term, head.item);
          else addItem(writer, term, head.item);
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

  #addPresent(writer: PageWriter, term: string, item: PageReader): void {
    const { bytes } = item;
    eachPosting(item, (number, start, end) => {
      if (this.#gone.has(number)) return;
      writer.add(term, 1, number, number, bytes, start, end);
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

function addItem(writer: PageWriter, term: string, item: PageReader): void {
  const { count, first, last, bytes, start, end } = item;
  writer.add(term, count, first, last, bytes, start, end);
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
