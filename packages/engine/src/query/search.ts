import { analyzerOf } from '../format/search-entries.js';
import { termTags } from '../format/search-pages.js';
import { refuse } from '../value/documents.js';
import type { Path, Row } from '../value/path.js';
import { PostingReader, Postings } from './postings.js';
import type { CheckedSearch } from './query.js';
import type { QueryIndex } from './ranges.js';
import { isOneEdit, minFuzzyLength, parseTerms, phraseTest } from './search-text.js';
import type { SearchTerms, SearchWord } from './search-text.js';
import type { QuerySource } from './source.js';

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
  /** The fields that were searched. */
  readonly searched: readonly Path[];
  /** Rows read. */
  readonly rows: number;
  /** Call it when `ranked` is not read any more. */
  readonly release: () => void;
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
  const used: Postings[] = [];
  let found: Scored | undefined;
  const excluded: Postings[] = [];
  for (const word of terms.words) {
    const postings = await postingsOf(reader, word, query.fuzzy && !word.isExcluded, used);
    if (word.isExcluded) {
      excluded.push(postings);
      continue;
    }
    const { size } = postings;
    const rarity = Math.log(1 + (records - size + 0.5) / (size + 0.5));
    const scored = score(postings, rarity, meanLength);
    if (!found) found = scored;
    else found = query.mode === 'all' ? inBoth(found, scored) : inEither(found, scored);
  }
  const left = excluded.reduce((all, each) => without(all, each), found ?? noneScored);
  const searched = paths.filter((_, i) => weights[i]! > 0);
  const ranked = best(left, (number) => reader.idOf(number));
  const matches = phraseTest(terms, searched, analyzer, query);
  const release = () => {
    for (const postings of used) postings.release();
  };
  return { ranked, matches, terms, searched, rows: reader.rows, release };
}

/** Records by rising number, with the score of the words so far. */
interface Scored {
  readonly numbers: Uint32Array;
  readonly scores: Float64Array;
}

const noneScored: Scored = { numbers: new Uint32Array(0), scores: new Float64Array(0) };

/** Replaces the counts by scores. */
function score({ numbers, counts, lengths, size }: Postings, rarity: number, mean: number): Scored {
  for (let i = 0; i < size; i++) {
    const count = counts[i]!;
    const norm = saturation * (1 - lengthShare + (lengthShare * lengths[i]!) / mean);
    counts[i] = (rarity * count * (saturation + 1)) / (count + norm);
  }
  return { numbers: numbers.subarray(0, size), scores: counts.subarray(0, size) };
}

/** The records that both have, in the place of the first. */
function inBoth(a: Scored, b: Scored): Scored {
  const { numbers, scores } = a;
  const others = b.numbers;
  let [i, j, size] = [0, 0, 0];
  while (i < numbers.length && j < others.length) {
    const left = numbers[i]!;
    const right = others[j]!;
    if (left < right) i++;
    else if (left > right) j++;
    else {
      numbers[size] = left;
      scores[size++] = scores[i++]! + b.scores[j++]!;
    }
  }
  return { numbers: numbers.subarray(0, size), scores: scores.subarray(0, size) };
}

/** The records that either has. */
function inEither(a: Scored, b: Scored): Scored {
  const most = a.numbers.length + b.numbers.length;
  const numbers = new Uint32Array(most);
  const scores = new Float64Array(most);
  let [i, j, size] = [0, 0, 0];
  while (i < a.numbers.length || j < b.numbers.length) {
    const [left, right] = [a.numbers[i] ?? Infinity, b.numbers[j] ?? Infinity];
    numbers[size] = Math.min(left, right);
    scores[size++] = (left <= right ? a.scores[i++]! : 0) + (right <= left ? b.scores[j++]! : 0);
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
  let size = numbers.length;
  const heap = new Uint32Array(size);
  for (let i = 0; i < size; i++) heap[i] = i;
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
  used: Postings[],
): Promise<Postings> {
  const { text, stem, isPrefix } = word;
  const postings = Postings.take();
  used.push(postings);
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
