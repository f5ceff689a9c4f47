import { describe, expect, test } from 'vitest';
import type { ReadSnapshot } from './read-snapshot.js';
import { useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

interface Person {
  name: string;
}

async function openPeople() {
  const db = await scratch.open();
  const people = db.collection<Person>('people');
  const ada = await people.insertWithKey('ada', { name: 'Ada' });
  return { db, people, ada };
}

describe('read', () => {
  test('gives records by id and by key, from the overlay and from the store', async () => {
    const { db, people, ada } = await openPeople();
    for (let round = 0; round < 2; round++) {
      const found = db.read((view) => view.collection<Person>(people).get(ada.id));
      expect(found).toEqual(ada);
      expect(db.read((view) => view.collection<Person>('people').getByKey('ada'))).toEqual(ada);
      expect(people.getSync(ada.id)).toEqual(ada);
      expect(people.getSync(ada.id.toLowerCase())).toEqual(ada);
      expect(people.getByKeySync('ada')).toEqual(ada);
      await db.core.store.fold();
    }
  });

  test('gives nothing for what is not there', async () => {
    const { db, people } = await openPeople();
    expect(people.getSync('no id')).toBeUndefined();
    expect(people.getByKeySync('bob')).toBeUndefined();
    expect(db.collection('nowhere').getSync(scratch.clock.now().toString())).toBeUndefined();
    expect(db.read((view) => view.collection('nowhere').getByKey('x'))).toBeUndefined();
  });

  test('sees one state, and no record past its expiry', async () => {
    const { db, people } = await openPeople();
    await people.insertWithKey('short', { name: 'Short' }, { ttlMs: 1_000 });
    const seqs = db.read((view) => [view.seq, view.collection(people).getByKey('short')?.seq]);
    expect(seqs).toEqual([2, 2]);
    scratch.clock.skip(2_000);
    expect(people.getByKeySync('short')).toBeUndefined();
    expect(db.read((view) => view.collection(people).getByKey('short'))).toBeUndefined();
  });

  test('getSync of a collection of a transaction belongs to the transaction', async () => {
    const { db, people, ada } = await openPeople();
    const tx = await db.begin();
    const inside = tx.collection(people);
    await inside.merge(ada.id, { name: 'Augusta' });
    expect(inside.getSync(ada.id)?.data.name).toBe('Augusta');
    expect(inside.getByKeySync('ada')?.data.name).toBe('Augusta');
    expect(people.getSync(ada.id)?.data.name).toBe('Ada');
    tx.rollback();

    const reader = await db.begin();
    expect(reader.collection(people).getByKeySync('new')).toBeUndefined();
    await people.insertWithKey('new', { name: 'New' });
    expect(reader.collection(people).getByKeySync('new')).toBeUndefined();
    await reader.collection('other').insert({});
    await expect(reader.commit()).rejects.toMatchObject({ code: 'TX_CONFLICT' });
  });

  test('refuses an asynchronous function and a closed database', async () => {
    const { db, people, ada } = await openPeople();
    expect(() => db.read(async () => 1)).toThrow('synchronous');
    // What it does after that fails, but must not end the process as an unhandled rejection.
    const late = async (view: ReadSnapshot) => {
      await Promise.resolve();
      return view.collection(people).get(ada.id);
    };
    expect(() => db.read(late)).toThrow('synchronous');
    expect(db.core.snapshots.size).toBe(0);
    await db.close();
    expect(() => people.getSync(ada.id)).toThrow('closed');
    expect(() => db.read(() => 1)).toThrow('closed');
  });
});
