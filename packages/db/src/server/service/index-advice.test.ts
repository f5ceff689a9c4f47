import { expect, test } from 'vitest';
import type { CollectionInfo } from '@millrace/engine/core/core';
import { checkFind } from '@millrace/engine/query/query';
import { compileIndex, type IndexDefinition } from '@millrace/engine/format/entries';
import { SlowQueryLog } from './index-advice.js';

const scan = {
  index: '',
  rowsScanned: 1_000,
  rowsReturned: 2,
  fullScan: true,
  sortedInMemory: false,
  elapsedMs: 300,
};

function collection(name: string, indexes: string[][] = []): CollectionInfo {
  const infos = indexes.map((fields) => ({
    definition: { fields },
    compiled: compileIndex({ fields }),
  }));
  return { id: 1, name, indexes: infos } as unknown as CollectionInfo;
}

function record(log: SlowQueryLog, query: object, plan = scan, name = 'people'): void {
  const { condition, order } = checkFind(query);
  log.record({ collection: name, condition, order, plan, shape: 'shape', endedAt: 7 });
}

const eq = (field: string) => ({ field, op: 'eq', value: 1 });
const gt = (field: string) => ({ field, op: 'gt', value: 1 });

test('advice: equal fields first, then the order or a range, with counts', () => {
  const log = new SlowQueryLog();
  record(log, { filter: { and: [gt('age'), eq('city')] } });
  record(log, { filter: { and: [eq('city'), gt('age')] } }, { ...scan, elapsedMs: 500 });
  record(log, { filter: gt('age'), orderBy: [{ field: 'name', desc: true }] });
  const advice = log.advice([collection('people')]);
  expect(advice).toMatchObject([
    {
      collection: 'people',
      fields: ['city', 'age'],
      queryCount: 2,
      totalMs: 800,
      maxMs: 500,
      rowsScanned: 2_000,
      rowsReturned: 4,
    },
    { fields: ['name'], queryCount: 1 },
  ]);
});

test('advice: none when an index cannot help, exists by now, or the collection is gone', () => {
  const log = new SlowQueryLog();
  record(log, { filter: { or: [eq('a'), eq('b')] } });
  record(log, { filter: { not: eq('a') } });
  record(log, { filter: eq('$key') });
  record(log, {});
  record(log, { filter: eq('a') }, { ...scan, index: 'a', fullScan: false, rowsScanned: 3 });
  expect(log.advice([collection('people')])).toEqual([]);
  record(log, { filter: eq('city') });
  expect(log.advice([collection('people')])).toHaveLength(1);
  expect(log.advice([collection('people', [['city', 'age']])])).toEqual([]);
  expect(log.advice([collection('other')])).toEqual([]);
});

test('advice: text without case needs collation ci; words and vectors serve no filter', () => {
  const log = new SlowQueryLog();
  record(log, { filter: { field: 'name', op: 'eqi', value: 'ada' } });
  expect(log.advice([collection('people')])).toMatchObject([{ fields: ['name'], collation: 'ci' }]);
  expect(log.advice([collection('people', [['name']])])).toHaveLength(1);
  const withKinds = (definition: IndexDefinition) =>
    ({ id: 1, name: 'people', indexes: [{ definition }] }) as unknown as CollectionInfo;
  expect(log.advice([withKinds({ fields: ['name'], collation: 'ci' })])).toEqual([]);
  record(log, { filter: eq('city') }, { ...scan, index: 'search:title', fullScan: false });
  record(log, { filter: eq('town') });
  const advised = (definition: IndexDefinition) =>
    log.advice([withKinds(definition)]).map(({ fields }) => fields.join());
  expect(advised({ fields: ['town'], kind: 'search' })).toEqual(['name', 'town']);
  expect(advised({ fields: ['town'], where: { a: 1 } })).toEqual(['name', 'town']);
  expect(advised({ fields: ['town'] })).toEqual(['name']);
});

test('advice: the log is bounded', () => {
  const log = new SlowQueryLog();
  for (let n = 0; n < 1_100; n++) record(log, { filter: eq(`f${n}`) });
  const advice = log.advice([collection('people')]);
  expect(advice).toHaveLength(1_000);
  expect(advice.some(({ fields }) => fields[0] === 'f1099')).toBe(true);
});
