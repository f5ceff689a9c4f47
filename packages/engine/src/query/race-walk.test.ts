import { describe, expect, test } from 'vitest';
import { parseFilter } from '../value/filter.js';
import { idOf, MemoryView, sourceOf } from './memory-view.test-support.js';
import { planQuery } from './plan.js';
import { compilePredicate } from '../value/predicate.js';
import { RaceWalk } from './open-walk.js';
import { walkSource } from './source.js';

const all = Array.from({ length: 500 }, (_, n) => ({ id: idOf(n), data: { n: (n * 7) % 500 } }));
const view = new MemoryView(all, [{ fields: ['n'] }]);

function walkOver(above: number, idDesc: boolean, resumeId?: string, headStart?: number) {
  const condition = parseFilter({ field: 'n', op: 'gte', value: above });
  const { access } = planQuery(condition, { keys: [], idDesc }, view.indexes);
  const walk = new RaceWalk(walkSource(sourceOf(view)), access, idDesc, resumeId, headStart);
  return { walk, matches: compilePredicate(condition) };
}

function idsOf(above: number, idDesc: boolean, resumeId?: string, headStart?: number, most = 1000) {
  const { walk, matches } = walkOver(above, idDesc, resumeId, headStart);
  const ids: string[] = [];
  for (let ended = false; !ended && ids.length < most;) {
    ended = walk.run((image) => {
      if (matches(image)) ids.push(image.id);
      return ids.length >= most;
    });
  }
  return { ids, rows: walk.rows };
}

describe.each([0, 10, 64, 200, 4096])('with a head start of %i entries', (headStart) => {
  test.each([0, 1, 250, 490, 600])('finds all from %i on by id, either way', (above) => {
    const expected = all.filter(({ data }) => data.n >= above).map(({ id }) => id);
    expect(idsOf(above, false, undefined, headStart).ids).toEqual(expected);
    expect(idsOf(above, true, undefined, headStart).ids).toEqual(expected.toReversed());
    const behind = expected.filter((id) => id > idOf(123));
    expect(idsOf(above, false, idOf(123), headStart).ids).toEqual(behind);
    const before = expected.filter((id) => id < idOf(123)).toReversed();
    expect(idsOf(above, true, idOf(123), headStart).ids).toEqual(before);
  });
});

test('few matches are found through the index alone', () => {
  expect(idsOf(495, false).rows).toBe(5);
});

test('a page of many matches ends long before the index does', () => {
  const { ids, rows } = idsOf(1, false, undefined, 32, 5);
  expect(ids).toHaveLength(5);
  expect(rows).toBeLessThan(200);
});
