import { GrowingBytes } from '../value/bytes.js';
import { idLength, prefixLength } from './keys.js';

/*
 * The rows of a search index. `index u32` comes before each key:
 *
 *   00                                       -> directory
 *   01 | id 16                               -> number u32 | words u32
 *   02 | number u32                          -> id 16
 *   03 | number u32 / 2048                   -> bits of numbers that are gone but have postings
 *   05 | segment u32 | term | 00 | first u32 -> page
 *
 * Each record gets a number when it is written. The records of a batch become a segment: pages of
 * terms in the order of their bytes. A term has items, each with some of its postings:
 *
 *   shared length | rest length | rest of the term | count | first number | last - first | length
 *   then per posting, rising by number: number - previous (not of the first) | words | counts
 *
 * The key of a page is that of its last item, so that a lookup is one range from its term on. A
 * segment never changes: segments are merged, and have no number in common. See 0060.
 */
const rowTags = { directory: 0, record: 1, number: 2, gone: 3, page: 5 } as const;

/** What terms begin with: stems, and words that are not their stem. */
export const termTags = { stem: '@', word: 'A' } as const;

/** A page and its header fill one page of the file. */
export const maxPageBytes = 4_080;
/** Postings in one item, so that two fit into a page. */
const maxItemBytes = 1_700;
/** Numbers in one row of bits. */
export const goneNumbers = 2_048;

export const directoryKey = Buffer.of(rowTags.directory);
export const goneRange = { start: Buffer.of(rowTags.gone), end: Buffer.of(rowTags.gone + 1) };

export function recordRowKey(id: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(rowTags.record), id]);
}

export function numberKey(number: number): Buffer {
  return tagged(rowTags.number, number);
}

export function goneKey(number: number): Buffer {
  return tagged(rowTags.gone, Math.floor(number / goneNumbers));
}

/** The lowest key of a page that may have the term. */
export function pageKey(segment: number, term: Uint8Array, first = 0): Buffer {
  const key = Buffer.alloc(5 + term.length + 5);
  key[0] = rowTags.page;
  key.writeUInt32BE(segment, 1);
  key.set(term, 5);
  key.writeUInt32BE(first, 5 + term.length + 1);
  return key;
}

export function segmentRange(segment: number) {
  return { start: tagged(rowTags.page, segment), end: tagged(rowTags.page, segment + 1) };
}

/** What a row is, by its key without prefix. */
export function rowKind(key: Buffer): { kind: keyof typeof rowTags; segment: number } | undefined {
  const tag = key[prefixLength];
  const length = key.length - prefixLength - 1;
  const has = (kind: keyof typeof rowTags, is: boolean, segment = 0) =>
    tag === rowTags[kind] && is ? { kind, segment } : undefined;
  return (
    has('directory', length === 0) ??
    has('record', length === idLength) ??
    has('number', length === 4) ??
    has('gone', length === 4) ??
    has('page', length > 9, length > 9 ? key.readUInt32BE(prefixLength + 1) : 0)
  );
}

function tagged(tag: number, number: number): Buffer {
  const key = Buffer.allocUnsafe(5);
  key[0] = tag;
  key.writeUInt32BE(number, 1);
  return key;
}

/** The words of a record in a search index, after a job. */
export interface SearchChange {
  index: number;
  id: string;
  /** As `searchEntries` makes them; undefined: the record is not in the index. */
  payload: Buffer | undefined;
  terms: PayloadTerms | undefined;
  /** By a build of the index: a record that was written meanwhile is in it. */
  isBuild: boolean;
}

/** Some records of an index, with the pages of their terms. */
export interface Segment {
  id: number;
  /** Its lowest and its highest number. */
  first: number;
  last: number;
  /** Records, and how many of them are gone. */
  records: number;
  gone: number;
  bytes: number;
}

/** What a search index consists of. */
export interface Directory {
  nextNumber: number;
  nextSegment: number;
  /** Records, and their words. */
  records: number;
  words: number;
  /** By rising numbers. */
  segments: Segment[];
  /** Segments whose pages are not read: not complete yet, or to be removed. */
  unused: number[];
}

const directoryBytes = new GrowingBytes(1_024);

export function encodeDirectory(directory: Directory): Buffer {
  const to = directoryBytes;
  to.at = 0;
  const { nextNumber, nextSegment, records, words, segments, unused } = directory;
  for (const each of [nextNumber, nextSegment, records, words, segments.length]) to.varint(each);
  for (const segment of segments) {
    to.varint(segment.id);
    to.varint(segment.first);
    to.varint(segment.last);
    to.varint(segment.records);
    to.varint(segment.gone);
    to.varint(segment.bytes);
  }
  for (const each of unused) to.varint(each);
  return to.copy();
}

export function decodeDirectory(bytes: Buffer | undefined): Directory {
  const from = new Varints(bytes ?? Buffer.alloc(5), 0);
  const [nextNumber, nextSegment, records, words] = from.several(4);
  const segments: Segment[] = [];
  for (let left = from.next(); left > 0; left--) {
    const [id, first, last, size, gone, length] = from.several(6);
    const segment = { id: id!, first: first!, last: last!, records: size!, gone: gone! };
    segments.push({ ...segment, bytes: length! });
  }
  const unused: number[] = [];
  while (bytes && from.at < bytes.length) unused.push(from.next());
  return {
    nextNumber: nextNumber!,
    nextSegment: nextSegment!,
    records: records!,
    words: words!,
    segments,
    unused,
  };
}

/** Reads integers of `GrowingBytes.varint`. */
export class Varints {
  constructor(
    public bytes: Uint8Array,
    public at: number,
  ) {}

  next(): number {
    const { bytes } = this;
    let byte = bytes[this.at++]!;
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let unit = 0x80;
    do {
      byte = bytes[this.at++]!;
      value += (byte & 0x7f) * unit;
      unit *= 0x80;
    } while (byte >= 0x80);
    return value;
  }

  several(count: number): number[] {
    const numbers: number[] = [];
    for (let i = 0; i < count; i++) numbers.push(this.next());
    return numbers;
  }
}

/** Fields in which a term is, each with how often. */
export type FieldCounts = number[];

/** The terms in a payload, as bytes in latin1, and where their postings start. */
export interface PayloadTerms {
  words: number;
  names: string[];
  starts: number[];
}

/** Writes the length of a posting and the posting, without its number. Returns where that starts. */
export function writePosting(
  to: GrowingBytes,
  words: number,
  counts: FieldCounts,
  fields: number,
): number {
  const start = to.at;
  to.varint(0);
  to.varint(words);
  for (let i = 0; i < counts.length; i += 2) {
    const isLast = i + 2 === counts.length;
    to.varint(((counts[i + 1]! - 1) * fields + counts[i]!) * 2 + (isLast ? 0 : 1));
  }
  const length = to.at - start - 1;
  // Sixteen fields of nine bytes fit into one byte.
  to.bytes[start] = length;
  return start + 1;
}

/**
 * Calls `visit` with the terms of a record, as bytes in latin1, and where their postings start, one
 * byte after their length. Returns its number of words.
 */
export function eachTerm(payload: Buffer, visit: (term: string, start: number) => void): number {
  const from = new Varints(payload, 0);
  const words = from.next();
  while (from.at < payload.length) {
    const length = from.next();
    const term = payload.toString('latin1', from.at, from.at + length);
    from.at += length;
    const posting = from.next();
    visit(term, from.at);
    from.at += posting;
  }
  return words;
}

/** Reads the items of a page in place. */
export class PageReader {
  /** The term in its first bytes. */
  readonly term = Buffer.alloc(512);
  termLength = 0;
  count = 0;
  first = 0;
  last = 0;
  /** Where the postings start and end. */
  start = 0;
  end = 0;
  bytes: Buffer = this.term;
  readonly #from = new Varints(this.term, 0);
  #pageEnd = 0;

  open(page: Buffer, end: number): this {
    this.bytes = this.#from.bytes = page as Buffer<ArrayBuffer>;
    this.end = 0;
    this.#pageEnd = end;
    return this;
  }

  /** Moves to the next item; false at the end. */
  next(): boolean {
    if (this.end >= this.#pageEnd) return false;
    const from = this.#from;
    const { bytes, term } = this;
    from.at = this.end;
    const shared = from.next();
    const rest = from.next();
    for (let i = 0; i < rest; i++) term[shared + i] = bytes[from.at + i]!;
    from.at += rest;
    this.termLength = shared + rest;
    this.#readCounts();
    return true;
  }

  #readCounts(): void {
    const from = this.#from;
    this.count = from.next();
    this.first = from.next();
    this.last = this.first + from.next();
    const length = from.next();
    this.start = from.at;
    this.end = this.start + length;
  }

  /** Moves to the first item of this term; false when the page has none. */
  seek(term: Uint8Array): boolean {
    const from = this.#from;
    const { bytes } = this;
    // How many bytes the items so far have in common with the term: what they share with one
    // another need not be compared.
    let common = 0;
    while (this.end < this.#pageEnd) {
      from.at = this.end;
      const shared = from.next();
      const rest = from.next();
      const start = from.at;
      from.at += rest;
      this.#readCounts();
      if (shared > common) continue;
      if (shared < common) return false;
      const length = shared + rest;
      while (common < length && common < term.length) {
        if (bytes[start + common - shared] !== term[common]) break;
        common++;
      }
      if (common === term.length) {
        if (length > common) return false;
        this.term.set(term);
        this.termLength = length;
        return true;
      }
      if (common < length && bytes[start + common - shared]! > term[common]!) return false;
    }
    return false;
  }

  /** Moves to the next item if it is of the same term. */
  nextOfTerm(): boolean {
    if (this.isAtEnd) return false;
    this.#from.at = this.end;
    return this.#from.next() === this.termLength && this.#from.next() === 0 && this.next();
  }

  /** Whether the page has no further item. */
  get isAtEnd(): boolean {
    return this.end >= this.#pageEnd;
  }

  /** Below zero when the term sorts before these bytes, zero when it begins with them. */
  comparePrefix(prefix: Uint8Array): number {
    const { term, termLength } = this;
    for (let i = 0; i < prefix.length; i++) {
      if (i >= termLength) return -1;
      const difference = term[i]! - prefix[i]!;
      if (difference !== 0) return difference;
    }
    return 0;
  }

  get name(): string {
    return this.term.toString('latin1', 0, this.termLength);
  }
}

/** Receives a posting: its number, the words of its record, and its bytes after the number. */
export type PostingVisit = (number: number, start: number, end: number) => void;

/** Postings of one term by rising number: `start` is after the number of the first. */
export interface Postings {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly first: number;
}

export function eachPosting({ bytes, start, end, first }: Postings, visit: PostingVisit): void {
  const from = new Varints(bytes, start);
  for (let number = first; ;) {
    const begin = from.at;
    from.next();
    while (from.next() % 2 === 1);
    visit(number, begin, from.at);
    if (from.at >= end) return;
    number += from.next();
  }
}

/** Of writers that are done: most write one page, and new buffers were a tenth of their time. */
const freePages: GrowingBytes[] = [];

/** Writes the pages of a segment: terms in order, and their postings by number. */
export class PageWriter {
  readonly #page = freePages.pop() ?? new GrowingBytes(maxPageBytes);
  readonly #postings = freePages.pop() ?? new GrowingBytes(maxPageBytes);
  #term = '';
  #count = 0;
  #first = 0;
  #last = 0;
  /** The last item of the page. */
  #lastTerm = '';
  #lastFirst = 0;
  bytes = 0;

  constructor(
    private readonly segment: number,
    private readonly put: (key: Buffer, page: Buffer) => void,
  ) {}

  /** Adds one or more postings: `bytes` begins after the number of the first. */
  add(
    term: string,
    count: number,
    first: number,
    last: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    const postings = this.#postings;
    if (this.#count > 0) {
      if (term !== this.#term || postings.at + end - start > maxItemBytes) this.#endItem();
      else postings.varint(first - this.#last);
    }
    if (this.#count === 0) {
      this.#term = term;
      this.#first = first;
    }
    postings.append(bytes, start, end);
    this.#count += count;
    this.#last = last;
  }

  finish(): void {
    if (this.#count > 0) this.#endItem();
    if (this.#page.at > 0) this.#endPage();
    freePages.push(this.#page, this.#postings);
  }

  #endItem(): void {
    const term = this.#term;
    const postings = this.#postings;
    // The numbers before the postings take at most 40 bytes.
    if (this.#page.at > 0 && this.#page.at + term.length + 40 + postings.at > maxPageBytes) {
      this.#endPage();
    }
    const page = this.#page;
    let shared = 0;
    if (page.at > 0) {
      const last = this.#lastTerm;
      while (shared < term.length && term.charCodeAt(shared) === last.charCodeAt(shared)) shared++;
    }
    page.varint(shared);
    page.varint(term.length - shared);
    page.latin1(term, shared);
    page.varint(this.#count);
    page.varint(this.#first);
    page.varint(this.#last - this.#first);
    page.varint(postings.at);
    page.append(postings.bytes, 0, postings.at);
    this.#lastTerm = term;
    this.#lastFirst = this.#first;
    this.#count = postings.at = 0;
  }

  #endPage(): void {
    const key = pageKey(this.segment, Buffer.from(this.#lastTerm, 'latin1'), this.#lastFirst);
    this.put(key, this.#page.copy());
    this.bytes += this.#page.at;
    this.#page.at = 0;
  }
}
