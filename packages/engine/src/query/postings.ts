import { GoneNumbers, isGone, TermTable } from '../core/search-segments.js';
import { after } from '../format/encoding.js';
import { idBytes, prefixed } from '../format/keys.js';
import {
  decodeDirectory,
  directoryKey,
  goneNumbers,
  goneRange,
  numberKey,
  PageReader,
  pageKey,
  recordRowKey,
  segmentRange,
  Varints,
  type Segment,
} from '../format/search-pages.js';
import type { QueryIndex } from './ranges.js';
import { overlaid, type QuerySource } from './source.js';

// Large arrays are expensive to make, and a search needs several: 2 MiB for each spare.
const maxSpares = 4;
const maxSparePostings = 128 * 1024;
const spares: Postings[] = [];

/** Postings of a word, by rising number if they are of one term. */
export class Postings {
  numbers = new Uint32Array(0);
  /** How often the word occurs, by the weights of the fields. */
  counts = new Float64Array(0);
  /** Words of the record. */
  lengths = new Uint32Array(0);
  size = 0;

  /** Postings to fill; `release` gives their memory to later searches. */
  static take(): Postings {
    return spares.pop() ?? new Postings();
  }

  release(): void {
    if (spares.length >= maxSpares || this.numbers.length > maxSparePostings) return;
    this.size = 0;
    spares.push(this);
  }

  reserve(count: number): void {
    if (this.size + count <= this.numbers.length) return;
    const length = Math.max(256, 2 * this.size) + count;
    this.numbers = copied(new Uint32Array(length), this.numbers);
    this.counts = copied(new Float64Array(length), this.counts);
    this.lengths = copied(new Uint32Array(length), this.lengths);
  }

  /** Those of several terms, as if they were one. */
  merged(): this {
    const { numbers, counts, lengths, size } = this;
    const order = Uint32Array.from({ length: size }, (_, i) => i);
    order.sort((a, b) => numbers[a]! - numbers[b]!);
    const [n, c, l] = [numbers.slice(0, size), counts.slice(0, size), lengths.slice(0, size)];
    this.size = 0;
    for (const i of order) {
      const last = this.size - 1;
      if (last >= 0 && numbers[last] === n[i]) {
        counts[last]! += c[i]!;
        continue;
      }
      numbers[this.size] = n[i]!;
      counts[this.size] = c[i]!;
      lengths[this.size++] = l[i]!;
    }
    return this;
  }
}

function copied<Numbers extends Uint32Array | Float64Array>(to: Numbers, from: Numbers): Numbers {
  to.set(from);
  return to;
}

const zero = Buffer.of(0);

/** Reads postings of a search index, and those of a transaction's own records. */
export class PostingReader {
  rows = 0;
  readonly records: number;
  readonly meanLength: number;
  readonly #segments: readonly Segment[];
  readonly #gone = new GoneNumbers();
  /** The transaction's own records have numbers above all others. */
  #own: TermTable | undefined;
  readonly #ownIds: string[] = [];
  readonly #firstOwn: number;
  readonly #page = new PageReader();
  /** What a code of one byte adds to the count of a posting. */
  readonly #codeCounts = new Float64Array(0x80);

  constructor(
    private readonly source: QuerySource,
    private readonly index: QueryIndex,
    private readonly weights: readonly number[],
  ) {
    for (let code = 0; code < 0x80; code++) this.#codeCounts[code] = this.#countOf(code);
    const { view, overlay } = source;
    const directory = decodeDirectory(this.#get(directoryKey));
    this.#segments = directory.segments;
    this.#firstOwn = directory.nextNumber;
    let { records, words } = directory;
    if (directory.segments.some(({ gone }) => gone > 0)) {
      view.entryRows(index.id, goneRange, (key, start, _end, value, valueEnd) => {
        this.#gone.add(key, start + 1, value.subarray(0, valueEnd));
        return false;
      });
    }
    for (const id of overlay?.keys() ?? []) {
      const row = this.#get(recordRowKey(idBytes(id)));
      if (!row) continue;
      this.#gone.set(row.readUInt32BE(0));
      records--;
      words -= row.readUInt32BE(4);
    }
    for (const image of overlaid(source)) {
      const { payload, terms } = index.compiled.entriesOf(image);
      if (!payload || !terms) continue;
      records++;
      words += terms.words;
      (this.#own ??= new TermTable()).add(this.#firstOwn + this.#ownIds.length, payload, terms);
      this.#ownIds.push(idBytes(image.id).toString('latin1'));
    }
    this.records = records;
    this.meanLength = records === 0 ? 1 : words / records;
  }

  #get(key: Buffer): Buffer | undefined {
    this.rows++;
    return this.source.view.get('index', prefixed(this.index.id, key));
  }

  /** The id of a record, as latin1. */
  idOf(number: number): string | undefined {
    if (number >= this.#firstOwn) return this.#ownIds[number - this.#firstOwn];
    return this.#get(numberKey(number))?.toString('latin1');
  }

  /** Adds the postings of one term. */
  async read(name: string, to: Postings): Promise<void> {
    const bytes = Buffer.from(name);
    await this.#pages(this.#segments, bytes, (page) => {
      if (!page.seek(bytes)) return true;
      do this.#decode(page, to);
      while (page.nextOfTerm());
      return !page.isAtEnd;
    });
    this.#addOwn(bytes.toString('latin1'), to);
  }

  /** Adds the postings of the terms that begin with `prefix` and pass the test. */
  async walk(prefix: string, test: (name: string) => boolean, to: Postings): Promise<void> {
    const bytes = Buffer.from(prefix);
    await this.#pages(this.#segments, bytes, (page) => {
      while (page.next()) {
        const difference = page.comparePrefix(bytes);
        if (difference > 0) return true;
        if (difference === 0 && test(page.name)) this.#decode(page, to);
      }
      return false;
    });
    const start = bytes.toString('latin1');
    for (const name of this.#own?.terms ?? []) {
      if (name.startsWith(start) && test(name)) this.#addOwn(name, to);
    }
  }

  /** The letters that terms begin with. */
  async firstLetters(tag: string): Promise<string[]> {
    const found = new Set<string>();
    const letterOf = (name: string) => {
      const text = Buffer.from(name, 'latin1').toString('utf8', 1);
      return String.fromCodePoint(text.codePointAt(0)!);
    };
    for (const segment of this.#segments) {
      for (let from: Buffer | undefined = Buffer.from(tag); from;) {
        let next: Buffer | undefined;
        const least = from;
        await this.#pages([segment], from, (page) => {
          do if (!page.next()) return false;
          while (page.comparePrefix(least) < 0);
          if (page.term[0] !== least[0]) return true;
          const letter = letterOf(page.name);
          found.add(letter);
          next = after(Buffer.from(tag + letter));
          return true;
        });
        from = next;
      }
    }
    for (const name of this.#own?.terms ?? []) if (name.startsWith(tag)) found.add(letterOf(name));
    return [...found];
  }

  /** Calls `visit` with the pages of each segment from about a term on, until it returns true. */
  async #pages(
    segments: readonly Segment[],
    from: Buffer,
    visit: (page: PageReader) => boolean,
  ): Promise<void> {
    const { view, slice } = this.source;
    const page = this.#page;
    for (const { id } of segments) {
      const { end } = segmentRange(id);
      for (let start: Buffer | undefined = pageKey(id, from); start;) {
        let rest: Buffer | undefined;
        view.entryRows(this.index.id, { start, end }, (key, keyStart, keyEnd, value, valueEnd) => {
          this.rows++;
          if (visit(page.open(value, valueEnd))) return true;
          if (!slice.spend(valueEnd)) return false;
          rest = Buffer.concat([key.subarray(keyStart, keyEnd), zero]);
          return true;
        });
        start = rest;
        if (start) await slice.pause();
      }
    }
  }

  /** Adds the postings of an item, but for those of records that are gone. */
  #decode({ bytes, start, end, first, last, count }: PageReader, to: Postings): void {
    to.reserve(count);
    const { numbers, counts, lengths } = to;
    const codeCounts = this.#codeCounts;
    const before = to.size;
    let { size } = to;
    let number = first;
    // The loop of a search: most numbers have one byte, and a call for each would double its time.
    for (let at = start; ;) {
      let length = bytes[at++]!;
      if (length >= 0x80) {
        length = longVarint(bytes, at - 1);
        at = nextAt;
      }
      let sum = 0;
      for (let isMore = true; isMore;) {
        const code = bytes[at++]!;
        isMore = (code & 1) === 1;
        if (code < 0x80) sum += codeCounts[code]!;
        else {
          sum += this.#countOf(longVarint(bytes, at - 1));
          at = nextAt;
        }
      }
      // Without a count, the fields of the search do not have the word.
      if (sum > 0) {
        numbers[size] = number;
        counts[size] = sum;
        lengths[size++] = length;
      }
      if (at >= end) break;
      const step = bytes[at++]!;
      if (step < 0x80) number += step;
      else {
        number += longVarint(bytes, at - 1);
        at = nextAt;
      }
    }
    to.size = size;
    if (this.#gone.hasRows(first, last)) this.#dropGone(to, before);
  }

  /** Removes the postings from `from` on whose numbers are gone. */
  #dropGone(postings: Postings, from: number): void {
    const { numbers, counts, lengths, size } = postings;
    postings.size = from;
    let [row, bits]: [number, Uint8Array | undefined] = [-1, undefined];
    for (let i = from; i < size; i++) {
      const number = numbers[i]!;
      if (Math.floor(number / goneNumbers) !== row) {
        row = Math.floor(number / goneNumbers);
        bits = this.#gone.bitsOf(number);
      }
      if (bits && isGone(bits, number)) continue;
      numbers[postings.size] = number;
      counts[postings.size] = counts[i]!;
      lengths[postings.size++] = lengths[i]!;
    }
  }

  #addOwn(name: string, to: Postings): void {
    this.#own?.each(name, (number, bytes, start) => {
      to.reserve(1);
      const from = new Varints(bytes, start);
      const length = from.next();
      let count = 0;
      for (let isMore = true; isMore;) {
        const code = from.next();
        isMore = code % 2 === 1;
        count += this.#countOf(code);
      }
      if (count === 0) return;
      to.numbers[to.size] = number;
      to.counts[to.size] = count;
      to.lengths[to.size++] = length;
    });
  }

  /** How often a code says that the word occurs, by the weight of its field. */
  #countOf(code: number): number {
    const { weights } = this;
    const value = Math.floor(code / 2);
    return (Math.floor(value / weights.length) + 1) * weights[value % weights.length]!;
  }
}

/** Where the number that `longVarint` read ends. */
let nextAt = 0;

/** Reads a number of two bytes or more. */
function longVarint(bytes: Uint8Array, at: number): number {
  let value = bytes[at]! & 0x7f;
  let unit = 0x80;
  for (let next = at + 1; ; next++) {
    const byte = bytes[next]!;
    value += (byte & 0x7f) * unit;
    unit *= 0x80;
    if (byte >= 0x80) continue;
    nextAt = next + 1;
    return value;
  }
}
