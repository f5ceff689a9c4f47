import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rowsIn } from '../memory-tables.test-support.js';
import { mergeRows, PendingWrites } from './overlay.js';
import type { KeyRange } from '../file/in-place.js';
import type { TableRow } from '../file/tables.js';

const keys = fc
  .uint8Array({ minLength: 1, maxLength: 2, max: 3 })
  .map((bytes) => Buffer.from(bytes));
const values = fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes));
const ranges: fc.Arbitrary<KeyRange> = fc
  .record(
    { start: keys, end: keys, reverse: fc.boolean(), limit: fc.integer({ min: 0, max: 6 }) },
    { requiredKeys: [] },
  )
  .map((range) => range as KeyRange);

const actions = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant('put' as const), keys, values) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('remove' as const), keys) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('begin' as const)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('rollback' as const)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('range' as const), ranges) },
);

type Model = Map<string, Buffer | undefined>;

function visible(base: Iterable<[string, Buffer]>, ...layers: Model[]): Map<string, Buffer> {
  const rows = new Map(base);
  for (const layer of layers) {
    for (const [key, value] of layer) {
      if (value) rows.set(key, value);
      else rows.delete(key);
    }
  }
  return rows;
}

const plain = (rows: Iterable<TableRow>) =>
  Array.from(rows, ({ key, value }) => `${key.toString('hex')}=${value.toString('hex')}`);

test('unwritten rows behave as a sorted map with an undo', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(keys, values)),
      fc.array(actions, { maxLength: 60 }),
      (base, steps) => {
        const file = new Map<string, Buffer>(
          base.map(([key, value]) => [key.toString('latin1'), value]),
        );
        const pending = new PendingWrites();
        let model: Model = new Map();
        let saved: Model = new Map();
        pending.begin();
        for (const step of steps) {
          if (step[0] === 'put') {
            pending.set('records', step[1], step[2]);
            model.set(step[1].toString('latin1'), step[2]);
          } else if (step[0] === 'remove') {
            pending.set('records', step[1], undefined);
            model.set(step[1].toString('latin1'), undefined);
          } else if (step[0] === 'begin') {
            pending.begin();
            saved = new Map(model);
          } else if (step[0] === 'rollback') {
            pending.rollback();
            model = new Map(saved);
          } else {
            // A limit belongs to the merged rows, so what lies below is read without one.
            const { limit: _limit, ...unlimited } = step[1];
            const merged = mergeRows(
              [pending.rows('records', step[1])],
              rowsIn(file, unlimited),
              step[1],
            );
            expect(plain(merged)).toEqual(plain(rowsIn(visible(file, model), step[1])));
          }
        }
        for (const [key, value] of model) {
          expect(pending.find('records', key)?.value).toEqual(value);
        }
        pending.writeTo(
          (_table, key, value) => file.set(key.toString('latin1'), value),
          (_table, key) => file.delete(key.toString('latin1')),
        );
        const before = new Map(base.map(([key, value]) => [key.toString('latin1'), value]));
        expect(plain(rowsIn(file, {}))).toEqual(plain(rowsIn(visible(before, model), {})));
      },
    ),
    { numRuns: 300 },
  );
});

test('two layers lie over the file, the newer one first', () => {
  const layer = fc.array(fc.tuple(keys, fc.option(values, { nil: undefined })));
  fc.assert(
    fc.property(
      fc.array(fc.tuple(keys, values)),
      layer,
      layer,
      ranges,
      (base, older, newer, range) => {
        const file = new Map(base.map(([key, value]) => [key.toString('latin1'), value]));
        const build = (rows: [Buffer, Buffer | undefined][]) => {
          const pending = new PendingWrites();
          for (const [key, value] of rows) pending.set('records', key, value);
          return pending;
        };
        const models = [older, newer].map(
          (rows): Model => new Map(rows.map(([key, value]) => [key.toString('latin1'), value])),
        );
        const { limit: _limit, ...unlimited } = range;
        const merged = mergeRows(
          [build(newer).rows('records', range), build(older).rows('records', range)],
          rowsIn(file, unlimited),
          range,
        );
        expect(plain(merged)).toEqual(plain(rowsIn(visible(file, ...models), range)));
      },
    ),
    { numRuns: 300 },
  );
});

test('a merge that is left early lets go of the file', () => {
  let isOpen = true;
  function* file() {
    try {
      for (let i = 0; i < 10; i++) yield { key: Buffer.of(i), value: Buffer.of(1) };
    } finally {
      isOpen = false;
    }
  }
  for (const row of mergeRows([[]], file(), {})) {
    if (row.key[0] === 2) break;
  }
  expect(isOpen).toBe(false);
});
