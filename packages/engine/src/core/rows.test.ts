import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Database } from '../api/database.js';
import { restore } from '../maintain/backup/restore.js';
import type { KeyRange } from '../storage/file/in-place.js';
import { useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

const bytes = (text: string) => Buffer.from(text);
const put = (db: Database, rows: Record<string, string>) =>
  db.transact((target) => {
    for (const [key, value] of Object.entries(rows)) target.rows.put(bytes(key), bytes(value));
  });
const read = (db: Database, range: KeyRange = {}) =>
  db.readRows((rows) =>
    Array.from(rows.range(range), ({ key, value }) => `${key.toString()}=${value.toString()}`),
  );

describe('rows beside the records', () => {
  test('a step sees its own rows at once, in order, and others see them when it is done', async () => {
    const db = await scratch.open();
    await put(db, { b: '1', d: '1' });
    const seen = await db.transact(({ rows }) => {
      rows.put(bytes('c'), bytes('2'));
      rows.put(bytes('a'), bytes('2'));
      rows.remove(bytes('d'));
      const all = Array.from(rows.range({}), ({ key }) => key.toString());
      return { all, b: rows.get(bytes('b'))?.toString(), d: rows.get(bytes('d')) };
    });
    expect(seen).toEqual({ all: ['a', 'b', 'c'], b: '1', d: undefined });
    expect(read(db)).toEqual(['a=2', 'b=1', 'c=2']);
  });

  test('ranges have bounds, a direction and a limit', async () => {
    const db = await scratch.open();
    await put(db, { a: '', b: '', c: '', d: '' });
    const [b, d] = [bytes('b'), bytes('d')];
    expect(read(db, { start: b, end: d })).toEqual(['b=', 'c=']);
    expect(read(db, { start: d, end: b, reverse: true })).toEqual(['d=', 'c=']);
    expect(read(db, { start: b, limit: 1 })).toEqual(['b=']);
    const inStep = await db.transact(({ rows }) => {
      rows.remove(b);
      return Array.from(rows.range({ start: b, limit: 1 }), ({ key }) => key.toString());
    });
    expect(inStep).toEqual(['c']);
  });

  test('a step that throws leaves none behind', async () => {
    const db = await scratch.open();
    await put(db, { a: '1' });
    const step = db.transact(({ rows }) => {
      rows.put(bytes('a'), bytes('2'));
      rows.put(bytes('b'), bytes('2'));
      throw new Error('no');
    });
    await expect(step).rejects.toThrow('no');
    expect(read(db)).toEqual(['a=1']);
  });

  test('rows go out in one commit with records, and stay', async () => {
    const db = await scratch.open();
    const info = await db.core.ensureCollection('things');
    await db.transact((target) => {
      target.rows.put(bytes('a'), bytes('1'));
      target.store(info, target.newId(), undefined, target.encode({ n: 1 }), {
        key: 'one',
        expiresAt: 0,
      });
    });
    const again = await scratch.reopen(db);
    expect(read(again)).toEqual(['a=1']);
    expect(await again.collection('things').findByKey('one')).toMatchObject({ data: { n: 1 } });
    expect((await again.verify()).ok).toBe(true);
  });

  test('rows are not in the change log', async () => {
    const db = await scratch.open();
    await put(db, { a: '1' });
    expect(db.core.durable.seq).toBe(0);
  });

  test('a snapshot of rows does not change while others write', async () => {
    const db = await scratch.open();
    await put(db, { a: '1' });
    let writing: Promise<void> | undefined;
    db.readRows((rows) => {
      writing = put(db, { a: '2' });
      expect(rows.get(bytes('a'))?.toString()).toBe('1');
    });
    await writing;
    expect(read(db)).toEqual(['a=2']);
  });

  test('compaction carries them', async () => {
    const db = await scratch.open();
    await put(db, Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, `${i}`])));
    const before = read(db);
    await db.compact({});
    expect(read(db)).toEqual(before);
    expect(read(await scratch.reopen(db))).toEqual(before);
  });

  test('a full backup has them, an increment by commits is refused', async () => {
    const db = await scratch.open();
    await db.collection('things').insert({ n: 1 });
    const rows = Object.fromEntries(
      Array.from({ length: 300 }, (_, i) => [`k${i}`, 'v'.repeat(i * 9)]),
    );
    await put(db, { ...rows, large: 'x'.repeat(600_000), empty: '' });
    const file = join(scratch.directory(), 'db.backup');
    await db.writeBackup(file);
    const directory = join(scratch.directory(), 'restored');
    await restore([file], directory);
    expect(read(await scratch.open({}, directory))).toEqual(read(db));
    await db.collection('things').insert({ n: 2 });
    const increment = db.writeBackup(join(scratch.directory(), 'more.backup'), { sinceSeq: 1 });
    await expect(increment).rejects.toThrow('take backups with');
  });

  test('a backup of some collections alone leaves them out', async () => {
    const db = await scratch.open();
    await db.collection('things').insert({ n: 1 });
    await put(db, { a: '1' });
    const file = join(scratch.directory(), 'db.backup');
    await db.writeBackup(file, { collections: ['things'] });
    const directory = join(scratch.directory(), 'restored');
    await restore([file], directory);
    expect(read(await scratch.open({}, directory))).toEqual([]);
  });
});
