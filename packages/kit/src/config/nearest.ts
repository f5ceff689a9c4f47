/** The candidate closest to `word`, or `undefined` when none is close. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  // One edit in a short word, two or three in a long one.
  let bestDistance = Math.min(3, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(plain(word), plain(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** The end of a message about an unknown word: `; did you mean "x"?`, or nothing. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const meant = nearest(word, candidates);
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
}

// `tokensFile` and `tokens-file` count as `tokens_file`.
function plain(word: string): string {
  return word.replaceAll(/[-_.]/g, '').toLowerCase();
}

/** Damerau-Levenshtein distance. */
export function editDistance(from: string, to: string): number {
  let twoBack: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = from[i - 1] === to[j - 1] ? 0 : 1;
      let cost = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + change);
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) cost = Math.min(cost, twoBack[j - 2]! + 1);
      row.push(cost);
    }
    [twoBack, previous] = [previous, row];
  }
  return previous[to.length]!;
}
