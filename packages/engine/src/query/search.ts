import { after } from '../format/encoding.js';
import { GoneNumbers, isGone, TermTable } from '../core/search-segments.js';
import { idBytes, prefixed } from '../format/keys.js';
import { analyzerOf } from '../format/search-entries.js';
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
  termTags,
  Varints,
  type Segment,
} from '../format/search-pages.js';
import { refuse } from '../value/documents.js';
import type { Row } from '../value/path.js';
import type { CheckedSearch } from './query.js';
import type { QueryIndex } from './ranges.js';
import { isOneEdit, minFuzzyLength, parseTerms, phraseTest } from './search-text.js';
import type { SearchTerms, SearchWord } from './search-text.js';
import { overlaid, type QuerySource } from './source.js';

/** A record that a search found, before its filter is tested. */
export interface Ranked {
  /** The 16 bytes of its id, as latin1. */
  readonly id: string;
  readonly score: number;
}

export interface SearchResult {
  /** Best first; of equal ones that with the lower number. */
  readonly ranked: Iterable<Ranked>;
  /** What the text of a record must meet that its postings do not tell. */
  readonly matches: (row: Row) => boolean;
  readonly terms: SearchTerms;
  /** Rows read. */
  readonly rows: number;
}

/** Terms that one prefix or one misspelt word may stand for. */
const maxExpansions = 1_000;

/** The index that serves a search. Refuses INDEX_REQUIRED without one. */
export function searchIndex({ collection }: QuerySource, { fields }: CheckedSearch): QueryIndex {
  const all = collection.indexes.filter(({ compiled }) => compiled.definition.kind === 'search');
  const has = (index: QueryIndex) =>
    fields.every((field) => index.compiled.definition.fields.includes(field));
  const found = all.find((index) => index.state === 'ready' && has(index));
  if (found) return found;
  const problem = all.some(has)
    ? 'The search index is not ready yet; try again.'
    : `"${collection.name}" has no search index on these fields: create one with ` +
      '{ search: ["title", "body"], language: "en" }.';
  throw refuse('INDEX_REQUIRED', problem);
}

// The usual parameters of BM25.
const [saturation, lengthShare] = [1.2, 0.75];

/** Finds and ranks the records whose words match. The caller tests them further. */
export async function search(
  source: QuerySource,
  index: QueryIndex,
  query: CheckedSearch,
): Promise<SearchResult> {
  const { definition, paths } = index.compiled;
  const analyzer = analyzerOf(definition.language);
  const terms = parseTerms(query.text, analyzer);
  const weights = definition.fields.map((field) => {
    if (query.fields.length > 0 && !query.fields.includes(field)) return 0;
    return definition.weights?.[field] ?? 1;
  });
  const reader = new PostingReader(source, index, weights);
  const { records, meanLength } = reader;
  let found: Scored | undefined;
  const excluded: Postings[] = [];
  for (const word of terms.words) {
    const postings = await postingsOf(reader, word, query.fuzzy && !word.isExcluded);
    if (word.isExcluded) {
      excluded.push(postings);
      continue;
    }
    const { size } = postings;
    const rarity = Math.log(1 + (records - size + 0.5) / (size + 0.5));
    const scored = score(postings, rarity, meanLength);
    found = found ? combined(found, scored, query.mode === 'all') : scored;
  }
  const left = excluded.reduce((all, each) => without(all, each), found ?? noneScored);
  const searched = paths.filter((_, i) => weights[i]! > 0);
  const ranked = best(left, (number) => reader.idOf(number));
  return { ranked, matches: phraseTest(terms, searched, analyzer), terms, rows: reader.rows };
}

/** Records by rising number, with the score of the words so far. */
interface Scored {
  readonly numbers: Uint32Array;
  readonly scores: Float64Array;
}

const noneScored: Scored = { numbers: new Uint32Array(0), scores: new Float64Array(0) };

function score({ numbers, counts, lengths, size }: Postings, rarity: number, mean: number): Scored {
  const scores = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    const norm = saturation * (1 - lengthShare + (lengthShare * lengths[i]!) / mean);
    scores[i] = (rarity * counts[i]! * (saturation + 1)) / (counts[i]! + norm);
  }
  return { numbers: numbers.subarray(0, size), scores };
}

/** The records that both have, or with `isAll` false either. */
function combined(a: Scored, b: Scored, isAll: boolean): Scored {
  const most = isAll
    ? Math.min(a.numbers.length, b.numbers.length)
    : a.numbers.length + b.numbers.length;
  const numbers = new Uint32Array(most);
  const scores = new Float64Array(most);
  let [i, j, size] = [0, 0, 0];
  while (i < a.numbers.length || j < b.numbers.length) {
    const [left, right] = [a.numbers[i] ?? Infinity, b.numbers[j] ?? Infinity];
    if (left === right) {
      numbers[size] = left;
      scores[size++] = a.scores[i++]! + b.scores[j++]!;
    } else if (isAll) {
      if (left < right) i++;
      else j++;
    } else if (left < right) {
      numbers[size] = left;
      scores[size++] = a.scores[i++]!;
    } else {
      numbers[size] = right;
      scores[size++] = b.scores[j++]!;
    }
  }
  return { numbers: numbers.subarray(0, size), scores: scores.subarray(0, size) };
}

function without({ numbers, scores }: Scored, excluded: Postings): Scored {
  const gone = new Set(excluded.numbers.subarray(0, excluded.size));
  const left = numbers.filter((number) => !gone.has(number));
  return { numbers: left, scores: scores.filter((_, i) => !gone.has(numbers[i]!)) };
}

/** Takes the best from a heap, as far as the caller reads. */
function* best(
  { numbers, scores }: Scored,
  idOf: (number: number) => string | undefined,
): Iterable<Ranked> {
  const heap = Uint32Array.from(numbers, (_, i) => i);
  let size = heap.length;
  const isBetter = (a: number, b: number) =>
    scores[a]! > scores[b]! || (scores[a] === scores[b] && a < b);
  const sink = (from: number) => {
    const moved = heap[from]!;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && isBetter(heap[child + 1]!, heap[child]!)) child++;
      if (!isBetter(heap[child]!, moved)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = moved;
  };
  for (let i = (size >>> 1) - 1; i >= 0; i--) sink(i);
  while (size > 0) {
    const top = heap[0]!;
    heap[0] = heap[--size]!;
    sink(0);
    const id = idOf(numbers[top]!);
    if (id !== undefined) yield { id, score: scores[top]! };
  }
}

async function postingsOf(
  reader: PostingReader,
  word: SearchWord,
  isFuzzy: boolean,
): Promise<Postings> {
  const { text, stem, isPrefix } = word;
  const postings = new Postings();
  const tags = [termTags.stem, termTags.word];
  if (isPrefix) {
    for (const tag of tags) await reader.walk(tag + text, () => true, postings);
    return postings.merged();
  }
  await reader.read(termTags.stem + stem, postings);
  if (!isFuzzy || text.length < minFuzzyLength) return postings;
  let expansions = 0;
  for (const tag of tags) {
    const firsts = await reader.firstLetters(tag);
    // The first letter is right, or missing, or too much, or another one.
    const others = firsts.flatMap((first) => [first + text.slice(1, 3), first + text.slice(0, 2)]);
    const near = new Map<string, boolean>();
    const isNear = (name: string) => {
      let is = near.get(name);
      if (is !== undefined) return is;
      const term = Buffer.from(name, 'latin1').toString('utf8', 1);
      is = term !== stem && (isOneEdit(term, text) || isOneEdit(term, stem));
      if (is) is = ++expansions <= maxExpansions;
      near.set(name, is);
      return is;
    };
    for (const start of withoutLonger([text[0]!, text.slice(1, 3), ...others])) {
      await reader.walk(tag + start, isNear, postings);
    }
  }
  return postings.merged();
}

/** The starts that no other one of them begins. */
function withoutLonger(starts: readonly string[]): string[] {
  const all = [...new Set(starts)];
  return all.filter((one) => !all.some((other) => other !== one && one.startsWith(other)));
}

/** Postings of a word, by rising number if they are of one term. */
class Postings {
  numbers = new Uint32Array(0);
  /** How often the word occurs, by the weights of the fields. */
  counts = new Float64Array(0);
  /** Words of the record. */
  lengths = new Uint32Array(0);
  size = 0;

  reserve(count: number): void {
    if (this.size + count <= this.numbers.length) return;
    const length = Math.max(64, 2 * this.size) + count;
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
class PostingReader {
  rows = 0;
  readonly records: number;
  readonly meanLength: number;
  readonly #segments: readonly Segment[];
  readonly #gone = new GoneNumbers();
  /** The transaction's own records have numbers above all others. */
  readonly #own = new TermTable();
  readonly #ownIds: string[] = [];
  readonly #firstOwn: number;
  readonly #page = new PageReader();

  constructor(
    private readonly source: QuerySource,
    private readonly index: QueryIndex,
    private readonly weights: readonly number[],
  ) {
    const { view, overlay } = source;
    const directory = decodeDirectory(this.#get(directoryKey));
    this.#segments = directory.segments;
    this.#firstOwn = directory.nextNumber;
    let { records, words } = directory;
    view.entryRows(index.id, goneRange, (key, start, _end, value, valueEnd) => {
      this.#gone.add(key, start + 1, value.subarray(0, valueEnd));
      return false;
    });
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
      this.#own.add(this.#firstOwn + this.#ownIds.length, payload, terms);
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
    for (const segment of this.#segments) {
      await this.#pages(segment, bytes, (page) => {
        const difference = page.comparePrefix(bytes);
        if (difference < 0) return false;
        if (difference > 0 || page.termLength > bytes.length) return true;
        this.#decode(page, to);
        return false;
      });
    }
    this.#addOwn(bytes.toString('latin1'), to);
  }

  /** Adds the postings of the terms that begin with `prefix` and pass the test. */
  async walk(prefix: string, test: (name: string) => boolean, to: Postings): Promise<void> {
    const bytes = Buffer.from(prefix);
    for (const segment of this.#segments) {
      await this.#pages(segment, bytes, (page) => {
        const difference = page.comparePrefix(bytes);
        if (difference === 0 && test(page.name)) this.#decode(page, to);
        return difference > 0;
      });
    }
    const start = bytes.toString('latin1');
    for (const name of this.#own.terms) {
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
        await this.#pages(segment, from, (page) => {
          if (page.comparePrefix(least) < 0) return false;
          if (page.term[0] !== least[0]) return true;
          const letter = letterOf(page.name);
          found.add(letter);
          next = after(Buffer.from(tag + letter));
          return true;
        });
        from = next;
      }
    }
    for (const name of this.#own.terms) if (name.startsWith(tag)) found.add(letterOf(name));
    return [...found];
  }

  /** Calls `visit` with the items of a segment from about a term on, until it returns true. */
  async #pages({ id }: Segment, from: Buffer, visit: (page: PageReader) => boolean): Promise<void> {
    const { view, slice } = this.source;
    const { end } = segmentRange(id);
    const page = this.#page;
    for (let start: Buffer | undefined = pageKey(id, from); start;) {
      let rest: Buffer | undefined;
      view.entryRows(this.index.id, { start, end }, (key, keyStart, keyEnd, value, valueEnd) => {
        this.rows++;
        page.open(value, valueEnd);
        while (page.next()) if (visit(page)) return true;
        if (!slice.spend(valueEnd)) return false;
        rest = Buffer.concat([key.subarray(keyStart, keyEnd), zero]);
        return true;
      });
      start = rest;
      if (start) await slice.pause();
    }
  }

  #decode({ bytes, start, end, first, count }: PageReader, to: Postings): void {
    to.reserve(count);
    const gone = this.#gone.rows.size === 0 ? undefined : this.#gone;
    let [row, bits]: [number, Uint8Array | undefined] = [-1, undefined];
    const from = new Varints(bytes, start);
    for (let number = first; ;) {
      if (gone && Math.floor(number / goneNumbers) !== row) {
        row = Math.floor(number / goneNumbers);
        bits = gone.bitsOf(number);
      }
      this.#posting(from, number, to);
      if (bits && isGone(bits, number) && to.numbers[to.size - 1] === number) to.size--;
      if (from.at >= end) return;
      number += from.next();
    }
  }

  #addOwn(name: string, to: Postings): void {
    this.#own.each(name, (number, bytes, start) => {
      to.reserve(1);
      this.#posting(new Varints(bytes, start), number, to);
    });
  }

  /** Adds a posting, unless the fields of the search do not have the word. */
  #posting(from: Varints, number: number, to: Postings): void {
    const { weights } = this;
    const fields = weights.length;
    const length = from.next();
    let count = 0;
    for (let isMore = true; isMore;) {
      const code = from.next();
      isMore = code % 2 === 1;
      const value = code >>> 1;
      count += (Math.floor(value / fields) + 1) * weights[value % fields]!;
    }
    if (count === 0) return;
    to.numbers[to.size] = number;
    to.counts[to.size] = count;
    to.lengths[to.size++] = length;
  }
}
