import { expect, test } from 'vitest';
import { eachPosting, PageReader, PageWriter } from './search-pages.js';

/** Sorted terms with shared beginnings, one longer than a varint of one byte, and their numbers. */
const terms = new Map<string, number[]>();
for (const stem of ['@a', '@ab', '@b', `@${'long'.repeat(50)}`, '@w1', '@w12', '@w2', 'Aword']) {
  for (const end of ['', 'a', 'ab', 'b']) {
    // The postings of some terms fill several items and pages.
    const count = end === 'a' ? 3_000 : 2;
    terms.set(
      stem + end,
      Array.from({ length: count }, (_, i) => i * 3 + end.length),
    );
  }
}

function pagesOf(): Buffer[] {
  const pages: Buffer[] = [];
  const writer = new PageWriter(1, (_key, page) => pages.push(page));
  const posting = Buffer.of(66, 0);
  for (const term of [...terms.keys()].toSorted()) {
    for (const number of terms.get(term)!) writer.add(term, 1, number, number, posting, 0, 2);
  }
  writer.finish();
  return pages;
}

test('search pages: seek finds the items of a term, and none of a term that is not there', () => {
  const pages = pagesOf();
  expect(pages.length).toBeGreaterThan(terms.size / 4);
  const numbersOf = (term: string) => {
    const found: number[] = [];
    for (const page of pages) {
      const reader = new PageReader().open(page, page.length);
      if (!reader.seek(Buffer.from(term))) continue;
      do eachPosting(reader, (number) => found.push(number));
      while (reader.nextOfTerm());
    }
    return found;
  };
  for (const [term, numbers] of terms) {
    expect(numbersOf(term)).toEqual(numbers);
    for (const absent of [`${term}0`, `${term}zz`, term.slice(0, -1)]) {
      if (!terms.has(absent)) expect(numbersOf(absent)).toEqual([]);
    }
  }
});
