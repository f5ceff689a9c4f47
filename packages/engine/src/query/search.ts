import { after } from '../format/encoding.js';
import { idLength, readId, writeId } from '../format/keys.js';
import { analyzerOf, postingTags, postingTailLength, termKey } from '../format/search-entries.js';
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
  /** Best first; of equal ones the lower id. */
  readonly ranked: Ranked[];
  /** What the text of a record must meet that its entries do not tell. */
  readonly matches: (row: Row) => boolean;
  readonly terms: SearchTerms;
  /** Entries read. */
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
  const reader = new PostingReader(source, index);
  const weights = definition.fields.map((field) => {
    if (query.fields.length > 0 && !query.fields.includes(field)) return 0;
    return definition.weights?.[field] ?? 1;
  });
  const stats = await statsOf(reader, index);
  const excluded = new Set<string>();
  let scores: Map<string, number> | undefined;
  for (const word of terms.words) {
    const hits = await postingsOf(reader, word, query.fuzzy && !word.isExcluded, weights);
    if (word.isExcluded) {
      for (const id of hits.keys()) excluded.add(id);
      continue;
    }
    const rarity = Math.log(1 + (stats.count - hits.size + 0.5) / (hits.size + 0.5));
    const scored = new Map<string, number>();
    for (const [id, { count, length }] of hits) {
      const before = scores?.get(id);
      if (query.mode === 'all' && scores && before === undefined) continue;
      const norm = saturation * (1 - lengthShare + (lengthShare * length) / stats.meanLength);
      const score = (rarity * count * (saturation + 1)) / (count + norm);
      scored.set(id, (before ?? 0) + score);
    }
    if (query.mode === 'any' && scores) {
      for (const [id, score] of scores) if (!scored.has(id)) scored.set(id, score);
    }
    scores = scored;
  }
  const ranked: Ranked[] = [];
  for (const [id, score] of scores ?? []) if (!excluded.has(id)) ranked.push({ id, score });
  ranked.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  const searched = paths.filter((_, i) => weights[i]! > 0);
  return { ranked, matches: phraseTest(terms, searched, analyzer), terms, rows: reader.rows };
}

interface Hit {
  /** How often the word occurs, by the weights of the fields. */
  count: number;
  /** Words of the record. */
  length: number;
}

type Hits = Map<string, Hit>;

async function postingsOf(
  reader: PostingReader,
  word: SearchWord,
  isFuzzy: boolean,
  weights: readonly number[],
): Promise<Hits> {
  const hits: Hits = new Map();
  const use = (bytes: Uint8Array, idAt: number) => {
    const tail = idAt - postingTailLength;
    const weight = weights[bytes[tail]!]!;
    if (weight === 0) return;
    const id = latin1(bytes, idAt);
    const count = bytes[tail + 1]! * weight;
    const before = hits.get(id);
    if (before) before.count += count;
    else hits.set(id, { count, length: (bytes[tail + 2]! << 8) | bytes[tail + 3]! });
  };
  if (word.isPrefix) {
    for (const tag of [postingTags.stem, postingTags.word]) {
      await reader.read(termKey(tag, word.text, true), use);
    }
    return hits;
  }
  await reader.read(termKey(postingTags.stem, word.stem), use);
  if (!isFuzzy || word.text.length < minFuzzyLength) return hits;
  for (const [tag, term] of await nearTerms(reader, word))
    await reader.read(termKey(tag, term), use);
  return hits;
}

/** The indexed words that differ from a word by a single edit. */
async function nearTerms(reader: PostingReader, word: SearchWord): Promise<[number, string][]> {
  const { text, stem } = word;
  const found: [number, string][] = [];
  for (const tag of [postingTags.stem, postingTags.word]) {
    const firsts: string[] = [];
    await reader.terms(tag, '', 1, (first) => void firsts.push(first));
    // The first letter is right, or missing, or too much, or another one.
    const others = firsts.flatMap((first) => [first + text.slice(1, 3), first + text.slice(0, 2)]);
    for (const start of withoutLonger([text[0]!, text.slice(1, 3), ...others])) {
      await reader.terms(tag, start, Infinity, (term) => {
        if (term === stem || found.length >= maxExpansions) return;
        if (isOneEdit(term, text) || isOneEdit(term, stem)) found.push([tag, term]);
      });
    }
  }
  return found;
}

/** The starts that no other one of them begins. */
function withoutLonger(starts: readonly string[]): string[] {
  const all = [...new Set(starts)];
  return all.filter((one) => !all.some((other) => other !== one && one.startsWith(other)));
}

interface Stats {
  count: number;
  meanLength: number;
}

interface CachedStats extends Stats {
  seq: number;
}

const cachedStats = new WeakMap<object, CachedStats>();
/** Ranking hardly changes with a few records: stats may be this share of their number behind. */
const staleShare = 0.1;
const alwaysFresh = 2_000;

async function statsOf(reader: PostingReader, { compiled }: QueryIndex): Promise<Stats> {
  const { seq } = reader;
  const cached = cachedStats.get(compiled);
  if (cached) {
    const behind = Math.abs(seq - cached.seq);
    if (behind === 0 && !reader.hasOwn) return cached;
    if (cached.count > alwaysFresh && behind < cached.count * staleShare) return cached;
  }
  let [count, total] = [0, 0];
  await reader.read(Buffer.of(postingTags.length), (bytes, idAt) => {
    count++;
    total +=
      ((bytes[idAt - 4]! << 24) |
        (bytes[idAt - 3]! << 16) |
        (bytes[idAt - 2]! << 8) |
        bytes[idAt - 1]!) >>>
      0;
  });
  const stats = { seq, count, meanLength: count === 0 ? 1 : total / count };
  if (!reader.hasOwn) cachedStats.set(compiled, stats);
  return stats;
}

const zero = Buffer.of(0);

/** Reads entries of a search index, and those of a transaction's own records. */
class PostingReader {
  rows = 0;
  readonly seq: number;
  readonly hasOwn: boolean;
  /** Values and id of the entries of own records. */
  readonly #own: Buffer[] = [];

  constructor(
    private readonly source: QuerySource,
    private readonly index: QueryIndex,
  ) {
    this.seq = source.view.seq;
    this.hasOwn = (source.overlay?.size ?? 0) > 0;
    for (const image of overlaid(source)) {
      const id = Buffer.alloc(idLength);
      writeId(image.id, id, 0);
      const { values } = index.compiled.entriesOf(image);
      for (const value of values) this.#own.push(Buffer.concat([value, id]));
    }
  }

  /** Calls `use` with every entry that begins with `prefix`, with pauses. */
  async read(prefix: Buffer, use: (bytes: Uint8Array, idAt: number) => void): Promise<void> {
    const { view, slice, overlay } = this.source;
    const end = after(prefix);
    for (let from: Uint8Array | undefined = prefix; from;) {
      let rest: Uint8Array | undefined;
      view.entries(this.index.id, { start: from, end }, (bytes, start, idAt) => {
        this.rows++;
        if (!this.hasOwn || !overlay!.has(readId(bytes, idAt))) use(bytes, idAt);
        if (!slice.spend(0)) return false;
        rest = Buffer.concat([bytes.subarray(start, idAt + idLength), zero]);
        return true;
      });
      from = rest;
      if (from) await slice.pause();
    }
    for (const own of this.#own) {
      if (own.subarray(0, prefix.length).equals(prefix)) use(own, own.length - idLength);
    }
  }

  /** Calls `visit` with the first letters of every term that begins with `start`, once each. */
  async terms(
    tag: number,
    start: string,
    letters: number,
    visit: (term: string) => void,
  ): Promise<void> {
    const { view, slice } = this.source;
    const prefix = termKey(tag, start, true);
    const end = after(prefix);
    const part = (term: string) =>
      letters === 1 ? String.fromCodePoint(term.codePointAt(0)!) : term;
    for (let from: Uint8Array | undefined = prefix; from;) {
      let next: Uint8Array | undefined;
      view.entries(this.index.id, { start: from, end }, (bytes, valuesAt, idAt) => {
        this.rows++;
        const entry = Buffer.from(bytes.subarray(valuesAt + 1, idAt - postingTailLength - 1));
        const term = part(entry.toString());
        visit(term);
        next = after(termKey(tag, term, letters === 1));
        return true;
      });
      from = next;
      if (slice.spend(0)) await slice.pause();
    }
    for (const own of this.#own) {
      if (!own.subarray(0, prefix.length).equals(prefix)) continue;
      visit(part(own.toString('utf8', 1, own.length - idLength - postingTailLength - 1)));
    }
  }
}

function latin1(bytes: Uint8Array, at: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, idLength).toString('latin1');
}
