import { textsAt, type Analyzer, type Word } from '../format/search-entries.js';
import type { Path, Row } from '../value/path.js';
import { bad, type CheckedSearch } from './query.js';

const maxTerms = 64;
/** Shorter words are found only as they are typed. */
export const minFuzzyLength = 5;

/** The parts of a search text. */
export interface SearchTerms {
  readonly words: readonly SearchWord[];
  readonly phrases: readonly (readonly string[])[];
  readonly excludedPhrases: readonly (readonly string[])[];
}

export interface SearchWord {
  /** As it was typed, in lower case. */
  readonly text: string;
  readonly stem: string;
  readonly isPrefix: boolean;
  readonly isExcluded: boolean;
  readonly isInPhrase: boolean;
}

export function parseTerms(text: string, analyzer: Analyzer): SearchTerms {
  const words: SearchWord[] = [];
  const phrases: string[][] = [];
  const excludedPhrases: string[][] = [];
  const add = (part: string, isExcluded: boolean, isPrefix: boolean, isInPhrase = false) => {
    const found = analyzer.words(part).map((word) => word.text);
    found.forEach((word, i) => {
      const isStart = isPrefix && i === found.length - 1;
      const stem = isStart ? word : analyzer.stem(word);
      if (stem === undefined) return;
      words.push({ text: word, stem, isPrefix: isStart, isExcluded, isInPhrase });
    });
    return found;
  };
  for (const [, minus, phrase, plain] of text.matchAll(/(-?)(?:"([^"]*)"?|([^\s"]+))/g)) {
    const isExcluded = minus === '-';
    if (phrase === undefined) {
      add(plain ?? '', isExcluded, (plain ?? '').endsWith('*'));
      continue;
    }
    // A word of an excluded phrase may be there without the others.
    const list = isExcluded
      ? analyzer.words(phrase).map((word) => word.text)
      : add(phrase, false, false, true);
    if (list.length > 0) (isExcluded ? excludedPhrases : phrases).push(list);
  }
  if (words.length + excludedPhrases.length > maxTerms) {
    throw bad('search.text', `has more than ${maxTerms} words`);
  }
  return { words, phrases, excludedPhrases };
}

/** One letter more, less or another, or two letters in the other order. */
export function isOneEdit(a: string, b: string): boolean {
  const [long, short] = a.length >= b.length ? [a, b] : [b, a];
  if (long.length - short.length > 1 || a === b) return false;
  let at = 0;
  while (at < short.length && long[at] === short[at]) at++;
  if (long.length > short.length) return long.slice(at + 1) === short.slice(at);
  if (long.slice(at + 1) === short.slice(at + 1)) return true;
  const isSwapped = long[at] === short[at + 1] && long[at + 1] === short[at];
  return isSwapped && long.slice(at + 2) === short.slice(at + 2);
}

/** Parts of texts with hits in `<mark>`, by field. */
export type Highlights = Record<string, string[]>;

/** Tests the phrases of a search, each within one text of a field; `any` of them or of the words. */
export function phraseTest(
  { words, phrases, excludedPhrases }: SearchTerms,
  paths: readonly Path[],
  analyzer: Analyzer,
  { mode, fuzzy }: CheckedSearch,
): (row: Row) => boolean {
  if (phrases.length === 0 && excludedPhrases.length === 0) return () => true;
  const plain = words.filter(({ isInPhrase }) => !isInPhrase);
  const isHit = hitTest(plain, analyzer, fuzzy);
  return (row) => {
    const texts: string[][] = [];
    for (const path of paths) {
      textsAt(path, row, (text) => texts.push(analyzer.words(text).map((word) => word.text)));
    }
    const has = (phrase: readonly string[]) =>
      texts.some((each) => indexOfPhrase(each, phrase) >= 0);
    if (excludedPhrases.some(has)) return false;
    if (mode === 'all' || phrases.length === 0) return phrases.every(has);
    return phrases.some(has) || texts.some((each) => each.some(isHit));
  };
}

function indexOfPhrase(words: readonly string[], phrase: readonly string[]): number {
  return words.findIndex((_, at) => phrase.every((word, i) => words[at + i] === word));
}

const contextLength = 80;
const maxFragments = 3;

/** Whether a word of a text is one that was searched for. */
function hitTest(
  words: readonly SearchWord[],
  analyzer: Analyzer,
  isFuzzy: boolean,
): (text: string) => boolean {
  const wanted = words.filter(({ isExcluded }) => !isExcluded);
  return (text) => {
    const stem = analyzer.stem(text);
    return wanted.some((word) => {
      if (word.isPrefix) return text.startsWith(word.text);
      if (stem === word.stem) return true;
      if (!isFuzzy || word.text.length < minFuzzyLength) return false;
      const terms = stem === undefined ? [text] : [text, stem];
      return terms.some((term) => isOneEdit(term, word.text) || isOneEdit(term, word.stem));
    });
  };
}

/** The text around the hits of a record. */
export function highlightsOf(
  row: Row,
  paths: readonly Path[],
  { words }: SearchTerms,
  analyzer: Analyzer,
  isFuzzy: boolean,
): Highlights {
  const isHit = hitTest(words, analyzer, isFuzzy);
  const highlights: Highlights = {};
  for (const path of paths) {
    const fragments: string[] = [];
    textsAt(path, row, (text) => {
      if (fragments.length >= maxFragments) return;
      const hits = analyzer.words(text).filter((word) => isHit(word.text));
      fragments.push(...fragmentsOf(text, hits).slice(0, maxFragments - fragments.length));
    });
    if (fragments.length > 0) highlights[path.text] = fragments;
  }
  return highlights;
}

/** Hits that are near one another share a fragment. */
function fragmentsOf(text: string, hits: readonly Word[]): string[] {
  const groups: Word[][] = [];
  for (const hit of hits) {
    const group = groups.at(-1);
    if (group && hit.start - group.at(-1)!.end < contextLength) group.push(hit);
    else groups.push([hit]);
  }
  return groups.map((group) => {
    const start = edge(text, group[0]!.start - contextLength / 2, 1);
    const end = edge(text, group.at(-1)!.end + contextLength / 2, -1);
    let marked = start > 0 ? '…' : '';
    let at = start;
    for (const hit of group) {
      marked += `${text.slice(at, hit.start)}<mark>${text.slice(hit.start, hit.end)}</mark>`;
      at = hit.end;
    }
    return marked + text.slice(at, end) + (end < text.length ? '…' : '');
  });
}

/** The next end of a word from a place on, in a direction; never inside a surrogate pair. */
function edge(text: string, place: number, step: 1 | -1): number {
  if (place <= 0) return 0;
  if (place >= text.length) return text.length;
  for (let i = 0; i < 20; i++) {
    const at = place + i * step;
    if (/\s/.test(text[at] ?? ' ')) return at;
  }
  return /[\uDC00-\uDFFF]/.test(text[place]!) ? place + step : place;
}
