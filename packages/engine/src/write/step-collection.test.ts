import { describe, expect, test } from 'vitest';
import { useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

describe('step collection', () => {
  test('put, get and delete see the writes of their own step and make one commit', async () => {
    const db = await scratch.open();
    const seen = await db.transact((target) => {
      const things = target.collection<{ n: number }>('things');
      const before = [things.get('a'), things.delete('a'), things.all()];
      things.put('a', { n: 1 });
      things.put('b', { n: 2 });
      things.put('a', { n: 3 });
      const deleted = things.delete('b');
      return { before, deleted, a: things.get('a'), b: things.get('b') };
    });
    expect(seen).toEqual({
      before: [undefined, false, []],
      deleted: true,
      a: { n: 3 },
      b: undefined,
    });
    expect(db.logPosition.seq).toBe(1);
    const { records } = await db.collection('things').find();
    expect(records.map(({ key, data }) => [key, data])).toEqual([['a', { n: 3 }]]);
  });

  test('reading does not create the collection, the first record does', async () => {
    const db = await scratch.open();
    await db.transact((target) => target.collection('things').get('a'));
    expect(db.catalog.collections()).toEqual([]);
    await db.transact((target) => target.collection('things').put('a', {}));
    const again = await scratch.reopen(db);
    expect(again.catalog.collections().map(({ name }) => name)).toEqual(['things']);
    expect((await again.verify()).ok).toBe(true);
  });

  test('all returns records in order of their ids, and a given id is used once', async () => {
    const db = await scratch.open();
    const [older, newer] = ['01J00000000000000000000000', '01J00000000000000000000001'];
    const keys = await db.transact((target) => {
      const things = target.collection<{ n: number }>('things');
      things.put('second', { n: 2 }, { id: newer });
      things.put('first', { n: 1 }, { id: older });
      things.put('first', { n: 3 }, { id: newer });
      return things.all().map(({ id, key, data }) => [id, key, data.n]);
    });
    expect(keys).toEqual([
      [older, 'first', 3],
      [newer, 'second', 2],
    ]);
  });

  test('an expired record is neither read nor listed', async () => {
    const clock = scratch.clock;
    const db = await scratch.open();
    await db.transact((target) => target.collection('things').put('a', {}, { ttlMs: 1000 }));
    await db.transact((target) => target.collection('things').put('b', {}, { ttlMs: 0 }));
    clock.advance(1000);
    const seen = await db.transact((target) => {
      const things = target.collection('things');
      return { keys: things.all().map(({ key }) => key), a: things.get('a') };
    });
    expect(seen).toEqual({ keys: ['b'], a: undefined });
  });

  test('a step that throws leaves no record', async () => {
    const db = await scratch.open();
    const step = db.transact((target) => {
      target.collection('things').put('a', {});
      throw new Error('no');
    });
    await expect(step).rejects.toThrow('no');
    expect(await db.collection('things').findByKey('a')).toBeUndefined();
    await db.transact((target) => target.collection('things').put('b', {}));
    expect((await (await scratch.reopen(db)).verify()).ok).toBe(true);
  });

  test('put refuses data that is not JSON, a bad key and a bad collection name', async () => {
    const db = await scratch.open();
    const put = (name: string, key: string, data: Record<string, unknown>) =>
      db.transact((target) => target.collection(name).put(key, data));
    await expect(put('things', 'a', { n: Number.NaN })).rejects.toMatchObject({ code: 'BAD_DATA' });
    await expect(put('things', '', {})).rejects.toMatchObject({ code: 'BAD_KEY' });
    await expect(put('$bad', 'a', {})).rejects.toMatchObject({ code: 'BAD_COLLECTION' });
  });
});
