/** What the engine is held to. `of` names the peer that a ratio refers to. */
export const targets = [
  { measure: 'writes/plain/1', title: 'single writes, 1 caller', of: 'sqlite', ratio: 0.6 },
  { measure: 'writes/plain/1', title: 'single writes, 1 caller', of: 'lmdb', ratio: 1.5 },
  { measure: 'writes/plain/64', title: 'single writes, 64 callers', of: 'lmdb', ratio: 0.9 },
  { measure: 'writes/indexed/64', title: 'with three indexes', of: 'lmdb', ratio: 1 },
  { measure: 'bulk', title: 'bulk load', of: 'lmdb', ratio: 0.8 },
  { measure: 'pointReads', title: 'synchronous reads by id', of: 'sqlite', ratio: 1 },
  { measure: 'filter', title: 'full filter, records/s', atLeast: 500_000 },
  { measure: 'aggregate', title: 'aggregate, records/s', atLeast: 400_000 },
  { measure: 'queue', title: 'queue-like work', of: 'lmdb', ratio: 0.625 },
  { measure: 'loop/plain', title: 'event loop p99 at 512 callers, ms', below: 8 },
  { measure: 'loop/indexed', title: 'the same with three indexes, ms', below: 8 },
  { measure: 'heap', title: 'JS heap with the large database open, MB', below: 150 },
  { measure: 'open', title: 'opening the large database, ms', below: 200 },
];

/** One row per target: what is asked, what was measured, met or missed. */
export function judge(results) {
  return targets.map((target) => {
    const asked = askedOf(target);
    const found = foundOf(target, results);
    if (found === undefined) return { target: target.title, asked, measured: '-', verdict: '-' };
    const met = isMet(target, found);
    return {
      target: target.title,
      asked,
      measured: found >= 1_000 ? Math.round(found).toLocaleString('en') : Number(found.toFixed(2)),
      verdict: met ? 'met' : 'MISSED',
    };
  });
}

function askedOf({ of, ratio, atLeast, below }) {
  if (of) return ratio === 1 ? `ahead of ${of}` : `>= ${ratio} of ${of}`;
  return below === undefined ? `>= ${atLeast.toLocaleString('en')}` : `< ${below}`;
}

function foundOf({ measure, of }, results) {
  return of ? results.ratio(measure, of) : results.median(measure, 'millrace');
}

function isMet({ of, ratio, atLeast, below }, found) {
  if (below !== undefined) return found < below;
  return of ? found >= ratio : found >= atLeast;
}
