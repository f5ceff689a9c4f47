import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { problemsOf } from './consistency.test-support.js';
import { refusalOf, useScratch } from './scratch.test-support.js';
import { Tables } from '../src/storage/file/tables.js';

const scratch = useScratch();

/** A closed database with a few records. */
async function someDatabase(): Promise<string> {
  const db = await scratch.open();
  for (let n = 0; n < 50; n++) await db.collection('docs').insertWithKey(`k${n}`, { n });
  await db.close();
  return db.directory;
}

/** Every file and its bytes, but not the lock of LMDB, which says nothing about the data. */
function contentsOf(directory: string): Record<string, string> {
  const found = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile() && !entry.name.endsWith('-lock'));
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [
      join(parentPath, name),
      readFileSync(join(parentPath, name)).toString('hex'),
    ]),
  );
}

describe('open', () => {
  test('makes the directory, with its parents, for this user alone', async () => {
    const directory = join(scratch.directory(), 'a', 'b');
    const db = await scratch.open({}, directory);
    await db.collection('docs').insert({});
    expect(readdirSync(directory).sort()).toEqual([
      'CURRENT',
      'LOCK',
      'log-000001',
      'store-000001.mdb',
      'store-000001.mdb-lock',
    ]);
    await db.close();
    expect(readdirSync(directory)).not.toContain('LOCK');
  });

  test('a second time in this process is refused, also by another name', async () => {
    const db = await scratch.open();
    await expect(scratch.open({}, db.directory)).rejects.toThrow(
      `is in use by process ${process.pid}`,
    );
    const alias = join(scratch.directory(), 'alias');
    symlinkSync(db.directory, alias);
    await expect(scratch.open({}, alias)).rejects.toThrow('is in use by process');
    await db.collection('docs').insert({});
    const again = await scratch.reopen(db);
    expect(again.core.state.seq).toBe(1);
  });

  test('of a newer format is refused and changes nothing', async () => {
    const directory = await someDatabase();
    const tables = new Tables(join(directory, 'store-000001.mdb'));
    await tables.commit((put) => put('meta', Buffer.from('format'), Buffer.from('7')));
    await tables.close();
    const before = contentsOf(directory);
    await expect(scratch.open({}, directory)).rejects.toThrow(
      /has format 7; this Millrace knows formats up to 2\. Use a newer Millrace: 0\.2\.0 or later/,
    );
    expect(contentsOf(directory)).toEqual(before);
  });

  test.each(['', 'x', '-1', '1.5'])('of the format %j is refused', async (format) => {
    const directory = await someDatabase();
    const tables = new Tables(join(directory, 'store-000001.mdb'));
    await tables.commit((put) => put('meta', Buffer.from('format'), Buffer.from(format)));
    await tables.close();
    await expect(scratch.open({}, directory)).rejects.toThrow(/format/);
  });

  test('where a file has the name of the directory is refused', async () => {
    const file = join(scratch.directory(), 'file');
    writeFileSync(file, 'mine');
    await expect(scratch.open({}, file)).rejects.toThrow('a file has this name');
    await expect(scratch.open({}, join(file, 'below'))).rejects.toThrow('a file has this name');
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });

  test.runIf(process.getuid)('where this user may not write is refused', async () => {
    const directory = scratch.directory();
    mkdirSync(join(directory, 'closed'), { mode: 0o500 });
    const isRoot = process.getuid!() === 0;
    // The superuser may write anywhere, so it becomes nobody for a moment.
    if (isRoot) process.seteuid!(65_534);
    try {
      for (const place of ['closed', 'closed/below']) {
        const opening = scratch.open({}, join(directory, place));
        await expect(opening).rejects.toThrow('permission denied for this user');
      }
    } finally {
      if (isRoot) process.seteuid!(0);
    }
  });
});

describe('a directory that is not as it was left', () => {
  test.each<[string, (directory: string) => void, RegExp]>([
    [
      'CURRENT is missing',
      (directory) => rmSync(join(directory, 'CURRENT')),
      /has a store \(store-000001\.mdb\) but no CURRENT file/,
    ],
    [
      'CURRENT is rubbish',
      (directory) => writeFileSync(join(directory, 'CURRENT'), '\0\0'),
      /CURRENT does not name a store/,
    ],
    [
      'CURRENT is empty',
      (directory) => writeFileSync(join(directory, 'CURRENT'), ''),
      /CURRENT does not name a store/,
    ],
    [
      'CURRENT names another store',
      (directory) => writeFileSync(join(directory, 'CURRENT'), 'store-000002.mdb\n'),
      /names the store store-000002\.mdb, which is not there/,
    ],
    [
      'CURRENT leads outside',
      (directory) => writeFileSync(join(directory, 'CURRENT'), '../store-000001.mdb'),
      /CURRENT does not name a store/,
    ],
    [
      'the store is missing',
      (directory) => rmSync(join(directory, 'store-000001.mdb')),
      /names the store store-000001\.mdb, which is not there/,
    ],
    [
      'the store is empty',
      (directory) => truncateSync(join(directory, 'store-000001.mdb'), 0),
      /CORRUPT: .* ends after 0 bytes/,
    ],
    [
      'the store was cut short',
      (directory) => truncateSync(join(directory, 'store-000001.mdb'), 20_000),
      /CORRUPT: .* was cut short/,
    ],
    [
      'the store is something else',
      (directory) => writeFileSync(join(directory, 'store-000001.mdb'), 'x'.repeat(50_000)),
      /CORRUPT: .* does not begin as one/,
    ],
  ])('is refused when %s, and nothing is changed', async (_what, damage, why) => {
    const directory = await someDatabase();
    // What an operator would put back afterwards.
    const spare = join(scratch.directory(), 'spare');
    cpSync(directory, spare, { recursive: true });
    damage(directory);
    const before = contentsOf(directory);
    for (let i = 0; i < 2; i++) await expect(scratch.open({}, directory)).rejects.toThrow(why);
    expect(contentsOf(directory)).toEqual(before);
    expect(scratch.clock.timers).toBe(0);
    rmSync(directory, { recursive: true });
    cpSync(spare, directory, { recursive: true });
    const db = await scratch.open({}, directory);
    expect((await db.collection('docs').findByKey('k49'))?.data).toEqual({ n: 49 });
    expect(problemsOf(db.core)).toEqual([]);
  });

  test.each<[string, (directory: string) => void]>([
    ['before the store was made', (directory) => rmSync(join(directory, 'store-000001.mdb'))],
    [
      'when the store was empty',
      (directory) => truncateSync(join(directory, 'store-000001.mdb'), 0),
    ],
    ['when the store had its format', () => undefined],
  ])('as after a first open that was killed %s, is opened', async (_when, damage) => {
    const first = await scratch.open();
    await first.close();
    rmSync(join(first.directory, 'CURRENT'));
    damage(first.directory);
    const db = await scratch.open({}, first.directory);
    await db.collection('docs').insertWithKey('k', { n: 1 });
    const again = await scratch.reopen(db);
    expect((await again.collection('docs').findByKey('k'))?.data).toEqual({ n: 1 });
  });

  test('loses what an unfinished compaction left, and only that', async () => {
    const directory = await someDatabase();
    for (const name of ['store-000002.mdb', 'store-000002.mdb-lock', 'CURRENT.new']) {
      writeFileSync(join(directory, name), 'half a copy');
    }
    writeFileSync(join(directory, 'notes.txt'), 'mine');
    const db = await scratch.open({}, directory);
    expect(await db.collection('docs').findByKey('k1')).toBeDefined();
    const names = readdirSync(directory);
    expect(names.filter((name) => name.startsWith('store-000002'))).toEqual([]);
    expect(names).toContain('notes.txt');
  });
});

describe('a database that could not be opened', () => {
  test('can be opened when the reason is gone', async () => {
    const directory = await someDatabase();
    const bad = { docs: { indexes: [{ fields: [] }] } };
    expect((await refusalOf(scratch.open({ collections: bad }, directory))).code).toBe(
      'BAD_REQUEST',
    );
    const db = await scratch.open({}, directory);
    expect(db.core.state.seq).toBe(50);
  });
});
