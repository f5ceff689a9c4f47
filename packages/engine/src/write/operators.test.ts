import { describe, expect, test } from 'vitest';
import { runUntilKilled } from '../../test/killed-process.test-support.js';
import { useScratch } from '../../test/scratch.test-support.js';
import type { JsonObject } from '../value/documents.js';
import { parseUpdate } from './operators.js';

const scratch = useScratch();
const now = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const apply = (document: JsonObject, update: unknown) => parseUpdate(update).apply(document, now);

const cases: [name: string, before: JsonObject, update: object, after: JsonObject][] = [
  ['$set creates what is on the way', {}, { $set: { 'a.b.c': 1 } }, { a: { b: { c: 1 } } }],
  ['$set in an array', { l: [{ q: 1 }] }, { $set: { 'l.0.q': 2 } }, { l: [{ q: 2 }] }],
  ['$set at the end of an array', { l: [1] }, { $set: { 'l.1': 2 } }, { l: [1, 2] }],
  ['$unset', { a: 1, b: { c: 2 } }, { $unset: { a: true, 'b.c': true } }, { b: {} }],
  ['$unset of paths', { a: 1, b: 2 }, { $unset: ['a', 'x.y'] }, { b: 2 }],
  ['$inc', { n: 1 }, { $inc: { n: 2, m: 3, 'a.b': -1 } }, { n: 3, m: 3, a: { b: -1 } }],
  ['$mul', { n: 4 }, { $mul: { n: 2.5, m: 7 } }, { n: 10, m: 0 }],
  ['$min and $max', { a: 5, b: 5 }, { $min: { a: 3, b: 9 }, $max: { c: 1 } }, { a: 3, b: 5, c: 1 }],
  ['$max of texts', { a: 'b' }, { $max: { a: 'c' } }, { a: 'c' }],
  ['$push', { l: [1] }, { $push: { l: 2, m: 'x' } }, { l: [1, 2], m: ['x'] }],
  [
    '$push with each, sort and slice',
    { l: [5, 1] },
    { $push: { l: { each: [3, 2], sort: -1, slice: 3 } } },
    { l: [5, 3, 2] },
  ],
  [
    '$push keeps the last',
    { l: [1, 2] },
    { $push: { l: { each: [3], slice: -2 } } },
    { l: [2, 3] },
  ],
  [
    '$push sorts by fields',
    { l: [{ a: 1, b: 2 }] },
    { $push: { l: { each: [{ a: 1, b: 1 }, { a: 0 }], sort: { a: -1, b: 1 } } } },
    { l: [{ a: 1, b: 1 }, { a: 1, b: 2 }, { a: 0 }] },
  ],
  [
    '$addToSet',
    { l: [{ a: 1 }] },
    { $addToSet: { l: { each: [{ a: 1 }, 2, 2] }, m: 'x' } },
    { l: [{ a: 1 }, 2], m: ['x'] },
  ],
  ['$pull of a value', { l: [1, 2, 1] }, { $pull: { l: 1, m: 2 } }, { l: [2] }],
  ['$pull by a condition', { l: [1, 5, 9] }, { $pull: { l: { gte: 5 } } }, { l: [1] }],
  [
    '$pull of elements by their fields',
    {
      l: [
        { s: 'a', n: 1 },
        { s: 'a', n: 9 },
      ],
    },
    { $pull: { l: { s: 'a', n: { gt: 5 } } } },
    { l: [{ s: 'a', n: 1 }] },
  ],
  [
    '$pull by a field named like an operator',
    { l: [{ type: 'x' }] },
    { $pull: { l: { type: 'x' } } },
    { l: [] },
  ],
  ['a Date', {}, { $set: { at: new Date(0) } }, { at: '1970-01-01T00:00:00.000Z' }],
  ['$rename', { a: { b: 1 } }, { $rename: { 'a.b': 'c.d' } }, { a: {}, c: { d: 1 } }],
  ['$rename of what is missing', { a: 1 }, { $rename: { x: 'y' } }, { a: 1 }],
  [
    'what only removes does nothing below a value without fields',
    { a: null, b: 'x', c: 1 },
    { $unset: ['a.x'], $pull: { 'b.x.y': 1 }, $rename: { 'c.x': 'd' } },
    { a: null, b: 'x', c: 1 },
  ],
  ['$currentDate', {}, { $currentDate: { at: true } }, { at: '2026-01-02T03:04:05.006Z' }],
  ['in the order given', { a: 1 }, { $rename: { a: 'b' }, $set: { c: 1 } }, { b: 1, c: 1 }],
];

test.each(cases)('%s', (_, before, update, after) => {
  const given = structuredClone(before);
  expect(apply(before, update)).toEqual(after);
  expect(before).toEqual(given);
});

describe('refuses', () => {
  test.each([
    [{}, /no operator/],
    [{ $incr: { n: 1 } }, /"\$incr" is not an operator.*did you mean "\$inc"/],
    [{ n: 1 }, /"n" is not an operator/],
    [{ $inc: { n: '1' } }, /"n" must be a number/],
    [{ $inc: 5 }, /must be an object/],
    [{ $set: { a: 1 }, $inc: { a: 1 } }, /"a" is written twice/],
    [{ $set: { 'a.b': 1, a: {} } }, /"a\.b" is inside "a"/],
    [{ $rename: { a: 'a.b' } }, /is inside "a"/],
    [{ $set: { '': 1 } }, /not a path/],
    [{ $set: { 'a..b': 1 } }, /empty part/],
    [{ $set: { $id: 1 } }, /own fields/],
    [{ $set: { '__proto__.x': 1 } }, /not allowed/],
    [{ $push: { l: { each: 1 } } }, /"each" must be an array/],
    [{ $push: { l: { each: [], slize: 1 } } }, /did you mean "slice"/],
    [{ $push: { l: { each: [], sort: 'up' } } }, /"sort" must be/],
    [{ $unset: { a: 1 } }, /must be true/],
    [{ $set: { a: new Map() } }, /"a"/],
    [{ $pull: { l: { gtx: 1, gt: 2 } } }, /unknown operator "gtx"/],
    [{ $pull: { l: {} } }, /empty condition/],
  ])('%j', (update, message) => {
    expect(() => parseUpdate(update)).toThrow(message);
  });

  test.each([
    [{ n: 'x' }, { $inc: { n: 1 } }, /is a text, and \$inc needs a number/],
    [{ n: 1e308 }, { $mul: { n: 1e10 } }, /too large/],
    [{ l: 1 }, { $push: { l: 1 } }, /needs an array/],
    [{ l: 1 }, { $pull: { l: 1 } }, /needs an array/],
    [{ a: 1 }, { $set: { 'a.b': 1 } }, /"a" is a number, which has no fields/],
    [{ l: [] }, { $set: { 'l.x': 1 } }, /number of an element/],
    [{ l: [] }, { $set: { 'l.5': 1 } }, /past its end/],
  ])('%j %j: TYPE_MISMATCH', (before, update, message) => {
    const checked = parseUpdate(update);
    expect(() => checked.apply(before as JsonObject, now)).toThrow(message);
  });
});

test('what an update does not touch is the same object', () => {
  const untouched = { deep: [1] };
  const after = apply({ untouched, n: 1 }, { $inc: { n: 1 } });
  expect(after['untouched']).toBe(untouched);
});

test('$inc: 64 callers lose and repeat nothing when the process is killed', async () => {
  const directory = scratch.directory();
  let answered = 0;
  for (const count of [1, 700, 1_300]) {
    const lines = await runUntilKilled(
      'test/killed-work.test-support.ts',
      'addUntil',
      directory,
      count,
    );
    answered += lines.length;
    const db = await scratch.open({}, directory);
    const n = (await db.collection<{ n: number }>('counters').findByKey('one'))?.data.n ?? 0;
    expect(n).toBeGreaterThanOrEqual(answered);
    // Each caller may have had one more under way.
    expect(n).toBeLessThanOrEqual(answered + 64);
    expect((await db.verify()).problems).toEqual([]);
    answered = n;
    await db.close();
  }
});
