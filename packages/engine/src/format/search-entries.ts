import { createRequire } from 'node:module';
import { refuse } from '../value/documents.js';
import { forEachValue, type Path, type Row } from '../value/path.js';

/*
 * The entries of a search index, in the order of their bytes:
 *
 *   01 | length u32                                  one for each record: its number of words
 *   40 | stem utf-8 | 00 | field u8 | count u8 | length u16
 *   41 | word utf-8 | 00 | field u8 | count u8 | length u16    where the word is not its stem
 *
 * They are ordinary entries: `index u32` comes before and the id behind. A posting has what BM25
 * needs of its record, so that a search reads nothing else until its hits are ranked.
 */
export const postingTags = { length: 0x01, stem: 0x40, word: 0x41 } as const;
export const postingTailLength = 4;

/** A longer text is indexed by its beginning. */
const maxTextLength = 1024 * 1024;
const maxWordLength = 64;
const maxCount = 0xff;
const maxLength = 0xffff;

const languages = {
  ar: 'arabic',
  bg: 'bulgarian',
  da: 'danish',
  de: 'german',
  el: 'greek',
  en: 'english',
  es: 'spanish',
  fi: 'finnish',
  fr: 'french',
  ga: 'irish',
  hi: 'indian',
  hu: 'hungarian',
  hy: 'armenian',
  id: 'indonesian',
  it: 'italian',
  lt: 'lithuanian',
  ne: 'nepali',
  nl: 'dutch',
  no: 'norwegian',
  pt: 'portuguese',
  ro: 'romanian',
  ru: 'russian',
  sr: 'serbian',
  sv: 'swedish',
  ta: 'tamil',
  tr: 'turkish',
  uk: 'ukrainian',
} as const;

/** A word of a text, and where it is. */
export interface Word {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** Splits text into words and reduces them to stems, in one language. */
export interface Analyzer {
  words(text: string): Iterable<Word>;
  /** The stem of a word; undefined for a stop word. */
  stem(word: string): string | undefined;
}

const require = createRequire(import.meta.url);
const analyzers = new Map<string, Analyzer>();
const maxCachedStems = 50_000;

/** Stemmers are loaded on first use: few databases have more than one language. */
export function analyzerOf(language = 'none'): Analyzer {
  const known = analyzers.get(language);
  if (known) return known;
  const name = Object.hasOwn(languages, language)
    ? languages[language as keyof typeof languages]
    : undefined;
  if (name === undefined && language !== 'none') {
    const names = [...Object.keys(languages), 'none'].join(', ');
    throw refuse('BAD_REQUEST', `The language "${language}" is not one of ${names}.`);
  }
  const analyzer = {
    words: wordsOf,
    stem: name === undefined ? (word: string) => word : stems(name),
  };
  analyzers.set(language, analyzer);
  return analyzer;
}

function stems(name: string): Analyzer['stem'] {
  const { stemmer } = require(`@orama/stemmers/${name}`) as { stemmer: (word: string) => string };
  const { stopwords } = require(`@orama/stopwords/${name}`) as { stopwords: readonly string[] };
  const stopped = new Set(stopwords.flatMap((each) => [...wordsOf(each)].map(({ text }) => text)));
  const cached = new Map<string, string>();
  return (word) => {
    if (stopped.has(word)) return undefined;
    let stem = cached.get(word);
    if (stem === undefined) {
      stem = stemmer(word) || word;
      if (cached.size >= maxCachedStems) cached.clear();
      cached.set(word, stem);
    }
    return stem;
  };
}

/** Words are runs of letters, marks and digits, in lower case of NFC. */
function* wordsOf(text: string): Iterable<Word> {
  for (const match of text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    const word = match[0].normalize('NFC').toLowerCase();
    const { index: start } = match;
    yield { text: word.slice(0, maxWordLength), start, end: start + match[0].length };
  }
}

/** The texts of a field: itself, or those in arrays. */
export function textsAt(path: Path, row: Row, use: (text: string) => void): void {
  forEachValue(path, row, (value) => {
    if (typeof value === 'string') use(value);
    else if (Array.isArray(value))
      for (const item of value) if (typeof item === 'string') use(item);
  });
}

interface Counts {
  /** How often each stem or word occurs in a field. */
  readonly stems: Map<string, number>;
  readonly words: Map<string, number>;
}

/** Makes the entries of records in a search index. */
export function searchEntries(
  { language }: { language?: string | undefined },
  paths: readonly Path[],
) {
  const analyzer = analyzerOf(language);
  return (row: Row) => {
    let left = maxTextLength;
    let length = 0;
    let cut = false;
    const fields = paths.map((path): Counts => {
      const counts: Counts = { stems: new Map(), words: new Map() };
      textsAt(path, row, (text) => {
        if (text.length > left) cut = true;
        for (const { text: word } of analyzer.words(text.slice(0, left))) {
          const stem = analyzer.stem(word);
          if (stem === undefined) continue;
          length++;
          counts.stems.set(stem, (counts.stems.get(stem) ?? 0) + 1);
          if (stem !== word) counts.words.set(word, (counts.words.get(word) ?? 0) + 1);
        }
        left = Math.max(0, left - text.length);
      });
      return counts;
    });
    const values: Uint8Array[] = length === 0 ? [] : postings(fields, length);
    const unique: Uint8Array[] = [];
    return { values, multi: true, cut, constrained: false, unique };
  };
}

function postings(fields: readonly Counts[], length: number): Uint8Array[] {
  const head: Buffer = Buffer.alloc(5);
  head[0] = postingTags.length;
  head.writeUInt32BE(length, 1);
  const values = [head];
  fields.forEach(({ stems: ofStems, words }, field) => {
    const add = (tag: number, counts: ReadonlyMap<string, number>) => {
      for (const [term, count] of counts) values.push(posting(tag, term, field, count, length));
    };
    add(postingTags.stem, ofStems);
    add(postingTags.word, words);
  });
  return values;
}

function posting(tag: number, term: string, field: number, count: number, length: number): Buffer {
  const head = termKey(tag, term);
  const bytes = Buffer.allocUnsafe(head.length + postingTailLength);
  head.copy(bytes);
  bytes[head.length] = field;
  bytes[head.length + 1] = Math.min(count, maxCount);
  bytes.writeUInt16BE(Math.min(length, maxLength), head.length + 2);
  return bytes;
}

/** What the entries of a term begin with; `isPrefix`: of all terms that begin with it. */
export function termKey(tag: number, term: string, isPrefix = false): Buffer {
  const text = Buffer.from(term);
  return Buffer.concat([Buffer.of(tag), text, ...(isPrefix ? [] : [Buffer.of(0)])]);
}
