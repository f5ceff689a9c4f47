import { describe, expect, test, vi } from 'vitest';
import { codeOf, useDatabases } from './api-ways.test-support.js';

describe.each(useDatabases())('by %s', (_, make) => {
  test('catalog: renames and drops a collection', async () => {
    const db = await make();
    const before = await db.collection('people').insertWithKey('ada', { name: 'Ada' });
    expect(await db.catalog.rename('people', 'persons')).toMatchObject({ moved: 1 });
    const { id, rev, data } = (await db.collection('persons').findByKey('ada'))!;
    expect({ id, rev, data }).toEqual({ id: before.id, rev: 1, data: { name: 'Ada' } });
    expect(await db.collection('people').count()).toBe(0);
    expect(await db.catalog.drop('persons')).toMatchObject({ deleted: 1 });
    expect(await codeOf(db.catalog.drop('persons'))).toBe('COLLECTION_NOT_FOUND');
    expect(await codeOf(db.catalog.rename('nobody', 'other'))).toBe('COLLECTION_NOT_FOUND');
  });

  test('catalog: creates and drops an index', async () => {
    const db = await make();
    const people = db.collection<{ age: number }>('people');
    await people.insertMany([{ age: 1 }, { age: 2 }]);
    const made = await db.catalog.createIndex('people', { fields: ['age'] });
    expect(made.seq).toBeGreaterThan(0);
    expect(['building', 'ready']).toContain(made.index.state);
    expect((await db.catalog.createIndex('people', { fields: ['age'] })).seq).toBe(0);
    await vi.waitFor(async () => {
      const { plan } = await people.find({ filter: { age: { gt: 1 } }, explain: true });
      expect(plan?.fullScan).toBe(false);
    }, 60_000);
    expect(await db.catalog.dropIndex('people', 'age')).toBeGreaterThan(made.seq);
    expect(await codeOf(db.catalog.dropIndex('people', 'age'))).toBe('INDEX_NOT_FOUND');
  });
});
