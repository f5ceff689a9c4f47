import { expect, test } from 'vitest';
import { planSteps } from './plan.js';

const plan = {
  index: '',
  rows_scanned: 5_000,
  rows_returned: 12,
  full_scan: true,
  sorted_in_memory: true,
  elapsed_ms: 3,
};

const people = { collection: 'people', records: 5_000, couldUseIndex: true };

test('planSteps: a full scan that drops rows is costly at each step', () => {
  const steps = planSteps(plan, people);
  expect(steps.map(({ title, note, isCostly }) => [title, note, isCostly])).toEqual([
    ['First page', '12 rows returned', false],
    ['Sort in memory', 'every matching row is read before the first is returned', true],
    ['Filter', '4,988 of 5,000 rows dropped', true],
    ['Full scan of people', '5,000 of 5,000 rows scanned', true],
  ]);
});

test('planSteps: reading everything in order costs what it must', () => {
  const page = { ...plan, rows_scanned: 201, rows_returned: 200, sorted_in_memory: false };
  const unfiltered = { ...people, couldUseIndex: false };
  expect(planSteps(page, unfiltered).map(({ title, isCostly }) => [title, isCostly])).toEqual([
    ['First page', false],
    ['All of people by id', false],
  ]);
});

test('planSteps: an index is named', () => {
  const byIndex = { ...plan, full_scan: false, index: 'age', sorted_in_memory: false };
  expect(planSteps(byIndex, people).at(-1)).toEqual({
    title: 'index age',
    note: '5,000 rows scanned',
    isCostly: false,
  });
});
