import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nameOf, noTokens, type Detection } from '../transcripts/reader.js';
import { TranscriptHome } from '../../test/support/transcripts.js';

const now = Date.now();

/** Few names and few figures, so that everything meets everything. */
const small = fc.integer({ min: 0, max: 3 });
const detection: fc.Arbitrary<Detection> = fc.record({
  key: small.map((each) => nameOf(String(each))),
  // Some of the trailing week, and some older than is kept to the millisecond.
  at: fc.constantFrom(now - 1_200_000, now - 600_000, now - 1, now - 30 * 86_400_000),
  place: fc.record({
    backend: fc.constantFrom('claude', 'codex'),
    agent: fc.constantFrom('ada', 'grace'),
    cwd: fc.constantFrom('/nowhere/a', '/nowhere/b'),
    model: fc.constantFrom('opus', 'haiku'),
    rank: fc.constantFrom(0 as const, 1 as const),
  }),
  tokens: fc.record({
    input: small,
    output: small,
    cacheRead: small,
    cacheWrite: small.map((each) => each + 3),
    cacheWriteLong: small,
  }),
});

/** A list, and the same with everything twice, in another order and in batches. */
const readings = fc.array(detection, { minLength: 1, maxLength: 10 }).chain((list) => {
  const twice = [...list, ...list];
  const batches = fc
    .tuple(
      fc.shuffledSubarray(twice, { minLength: twice.length }),
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 20, maxLength: 20 }),
    )
    .map(([order, sizes]) => {
      const left = [...order];
      const some = sizes.map((size) => left.splice(0, size));
      return [...some, left].filter((batch) => batch.length > 0);
    });
  return fc.tuple(fc.constant(list), batches);
});

/** Everything that the tally tells. */
function totals({ tally }: TranscriptHome) {
  const week = [...tally.used(now - 7 * 86_400_000, now)];
  return {
    cells: [...tally.cells()]
      .map(({ slot, place, tokens }) => JSON.stringify([slot, tally.place(place), tokens]))
      .sort(),
    week: week
      .map(([place, used]) => JSON.stringify([tally.place(place), used]))
      .filter((each) => !each.includes('"input":0,"output":0'))
      .sort(),
  };
}

test('in any order, any number of times and in any batches the sums are the same', async () => {
  await fc.assert(
    fc.asyncProperty(readings, async ([list, batches]) => {
      const [once, again] = [new TranscriptHome(), new TranscriptHome()];
      try {
        await once.open();
        await once.tally.commit({ detections: list, states: [], removed: [] });
        await again.open();
        for (const detections of batches) {
          await again.tally.commit({ detections, states: [], removed: [] });
        }
        expect(totals(again)).toEqual(totals(once));
        await again.reopen();
        expect(totals(again)).toEqual(totals(once));
      } finally {
        await Promise.all([once.remove(), again.remove()]);
      }
    }),
    { numRuns: 30, seed: 20_260_115 },
  );
});

test('nothing is left of a sum that a correction has emptied', async () => {
  const home = await new TranscriptHome().open();
  try {
    const place = { backend: 'claude', agent: 'a', cwd: '/x', model: 'opus', rank: 0 as const };
    const late = { key: nameOf('m'), at: now, place, tokens: { ...noTokens, input: 5 } };
    await home.tally.commit({ detections: [late], states: [], removed: [] });
    const early = { ...late, at: now - 3_600_000 };
    await home.tally.commit({ detections: [early], states: [], removed: [] });
    expect([...home.tally.cells()]).toHaveLength(1);
    expect(home.tally.used(now - 1_000, now).size).toBe(0);
    const before = totals(home);
    await home.reopen();
    expect(totals(home)).toEqual(before);
  } finally {
    await home.remove();
  }
});
