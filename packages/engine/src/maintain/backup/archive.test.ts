import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { memoryLog } from '@millrace/kit/log';
import { expect, test } from 'vitest';
import type { Database } from '../../api/database.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import { baseBackupName, type RestoreTarget } from './archiver.js';
import { contentOf, fillWithVariety } from './backup.test-support.js';
import { restore } from './restore.js';

const scratch = useScratch();

async function openArchived(directory?: string, archive = scratch.directory()) {
  const db = await scratch.open({ logArchive: { directory: archive } }, directory);
  return { db, archive };
}

/** Ten commits of one second each, archived after every `step`. */
async function openCounter(step = 3) {
  const { db, archive } = await openArchived();
  const counter = db.collection<{ n: number }>('counter');
  for (let n = 1; n <= 10; n++) {
    scratch.clock.advance(1_000);
    await counter.upsert('only', { n });
    if (n % step === 0) await db.archiveLog();
  }
  await db.archiveLog();
  return { db, archive };
}

async function restoredTo(from: string[], to?: RestoreTarget): Promise<Database> {
  const directory = join(scratch.directory(), 'restored');
  await restore(from, directory, { clock: scratch.clock, to });
  return scratch.open({}, directory);
}

async function counted(db: Database): Promise<number | undefined> {
  expect((await db.verify()).problems).toEqual([]);
  return (await db.collection<{ n: number }>('counter').findByKey('only'))?.data.n;
}

test('archive: holds a base backup and the commits after it', async () => {
  const { archive } = await openCounter();
  expect(readdirSync(archive).toSorted()).toEqual([
    'base-000000000000.backup',
    'log-000000000001-000000000003.backup',
    'log-000000000004-000000000006.backup',
    'log-000000000007-000000000009.backup',
    'log-000000000010-000000000010.backup',
  ]);
});

test.each([1, 3, 4, 6, 7, 9, 10])('restore: to commit %s of an archive', async (seq) => {
  const { archive } = await openCounter();
  const copy = await restoredTo([archive], seq);
  expect(copy.logPosition).toMatchObject({ seq, oldestSeq: seq + 1 });
  expect(await counted(copy)).toBe(seq);
  await copy.collection('counter').upsert('only', { n: 99 });
  expect(copy.logPosition.seq).toBe(seq + 1);
});

test('restore: to a time, which includes commits of that millisecond', async () => {
  const start = scratch.clock.now();
  const { archive } = await openCounter();
  for (const [ms, n] of [
    [0, undefined],
    [1_000, 1],
    [3_500, 3],
    [6_000, 6],
    [6_999, 6],
    [7_000, 7],
    [60_000, 10],
  ]) {
    expect(await counted(await restoredTo([archive], new Date(start + ms!)))).toBe(n);
  }
});

test('restore: to the time of a commit that became durable after a file was archived', async () => {
  const { db, archive } = await openArchived();
  const counter = db.collection<{ n: number }>('counter');
  await counter.upsert('only', { n: 1 });
  const time = new Date(scratch.clock.now());
  scratch.clock.advance(1);
  await db.archiveLog();
  // As if its commit had begun before the file was created.
  scratch.clock.advance(-1);
  await counter.upsert('only', { n: 2 });
  scratch.clock.advance(5);
  await counter.upsert('only', { n: 3 });
  await db.archiveLog();
  expect(await counted(await restoredTo([archive], time))).toBe(2);
});

test('restore: everything an archive has, from its newest base backup', async () => {
  const { db, archive } = await openCounter();
  // A base backup between the ends of two log files.
  await db.collection('counter').upsert('only', { n: 11 });
  await db.writeBackup(join(archive, baseBackupName(11)));
  await db.collection('counter').upsert('only', { n: 12 });
  await db.archiveLog();
  expect(readdirSync(archive)).toContain('log-000000000011-000000000012.backup');
  expect(await counted(await restoredTo([archive]))).toBe(12);
  expect(await counted(await restoredTo([archive], 11))).toBe(11);
  expect(await counted(await restoredTo([archive], 10))).toBe(10);
});

test('restore: records, keys and indexes match the original at every archived commit', async () => {
  const { db, archive } = await openArchived();
  for (let round = 0; round < 3; round++) {
    await fillWithVariety(db, 120, round);
    await db.archiveLog();
  }
  const copy = await restoredTo([archive], db.logPosition.seq);
  expect(contentOf(copy)).toEqual(contentOf(db));
});

test('restore: refuses a target that the archive does not reach', async () => {
  const { archive } = await openCounter();
  await expect(restoredTo([archive], 11)).rejects.toThrow('ends at commit 10');
  await expect(restoredTo([archive], new Date(0))).rejects.toThrow('no base backup that old');
  await expect(restoredTo([scratch.directory()])).rejects.toThrow('ctl db backup --base');
});

test('restore: refuses an archive with a gap, unless the target is before it', async () => {
  const { archive } = await openCounter();
  rmSync(join(archive, 'log-000000000007-000000000009.backup'));
  const late = new Date(scratch.clock.now());
  for (const to of [undefined, 10, 8, late]) {
    await expect(restoredTo([archive], to)).rejects.toThrow('commits from 7 to 9 are missing');
  }
  expect(await counted(await restoredTo([archive], 6))).toBe(6);
  expect(await counted(await restoredTo([archive], new Date(late.getTime() - 5_000)))).toBe(5);
});

test('restore: leaves out collections that are newer than the target', async () => {
  const { db, archive } = await openArchived();
  for (const name of ['one', 'two', 'three']) await db.collection(name).insert({ name });
  await db.catalog.createIndex('three', { fields: ['name'], unique: true });
  await db.close();
  const namesAt = async (to?: number) =>
    (await restoredTo([archive], to)).catalog.collections().map(({ name }) => name);
  expect(await namesAt(0)).toEqual([]);
  expect(await namesAt(2)).toEqual(['one', 'two']);
  expect(await namesAt()).toEqual(['one', 'three', 'two']);
});

test('restore: takes a backup beside the archive', async () => {
  const { db, archive } = await openCounter();
  const base = join(scratch.directory(), 'full.backup');
  await db.writeBackup(base);
  await db.collection('counter').upsert('only', { n: 11 });
  await db.archiveLog();
  rmSync(join(archive, 'base-000000000000.backup'));
  expect(await counted(await restoredTo([base, archive], 11))).toBe(11);
  expect(await counted(await restoredTo([archive, base]))).toBe(11);
  await expect(restoredTo([archive, base], 9)).rejects.toThrow('no base backup that old');
});

test('restore: backup files can be cut at a commit too', async () => {
  const { archive } = await openCounter();
  const files = readdirSync(archive).toSorted();
  const paths = files.map((name) => join(archive, name));
  expect(await counted(await restoredTo(paths, 8))).toBe(8);
  expect(await counted(await restoredTo(paths, 2))).toBe(2);
  await expect(restoredTo(paths, 12)).rejects.toThrow('does not reach commit 12');
});

test('archive: continues after a restart, also after files that were never finished', async () => {
  const { db, archive } = await openCounter();
  await db.collection('counter').upsert('only', { n: 11 });
  writeFileSync(join(archive, 'unfinished.backup.unfinished-1'), 'torn');
  await db.close();
  expect(readdirSync(archive)).toContain('log-000000000011-000000000011.backup');
  const { db: again } = await openArchived(db.directory, archive);
  expect(readdirSync(archive).filter((name) => name.includes('unfinished'))).toEqual([]);
  expect(again.archiveLag).toBe(0);
  await again.collection('counter').upsert('only', { n: 12 });
  await again.archiveLog();
  expect(await counted(await restoredTo([archive], 12))).toBe(12);
});

test('archive: continues after a crash from its last commit, not from a later base backup', async () => {
  const { db, archive } = await openArchived();
  const start = scratch.clock.now();
  const put = async (n: number) => {
    scratch.clock.advance(1_000);
    await db.collection('counter').upsert('only', { n });
  };
  await put(1);
  await db.archiveLog();
  await put(2);
  await db.writeBackup(join(archive, baseBackupName(2)));
  await put(3);
  const crashed = join(scratch.directory(), 'crashed');
  cpSync(db.directory, crashed, { recursive: true, filter: (path) => !path.endsWith('LOCK') });
  const { db: next } = await openArchived(crashed, archive);
  await next.archiveLog();
  for (const n of [1, 2, 3]) {
    const to = new Date(start + n * 1_000 + 500);
    expect(await counted(await restoredTo([archive], to))).toBe(n);
  }
});

test('archive: the log retains what is not archived yet', async () => {
  const { db, archive } = await openCounter();
  for (let n = 11; n <= 13; n++) await db.collection('counter').upsert('only', { n });
  expect(db.archiveLag).toBe(3);
  await db.trimLog(14);
  expect(db.logPosition.oldestSeq).toBe(11);
  await db.archiveLog();
  await db.trimLog(14);
  expect(db.logPosition.oldestSeq).toBe(14);
  expect(await counted(await restoredTo([archive], 12))).toBe(12);
});

test('archive: takes a new base backup where the log does not go on', async () => {
  const { db, archive } = await openCounter();
  const plain = await scratch.reopen(db, {});
  await plain.collection('counter').upsert('only', { n: 11 });
  await plain.trimLog(12);
  await plain.close();
  const { db: again } = await openArchived(plain.directory, archive);
  await again.archiveLog();
  expect(readdirSync(archive)).toContain('base-000000000011.backup');
  expect(await counted(await restoredTo([archive], 11))).toBe(11);
});

test('archive: closing does not wait for a base backup', async () => {
  const log = memoryLog();
  const archive = scratch.directory();
  const filled = await scratch.open();
  await fillWithVariety(filled, 300);
  const db = await scratch.reopen(filled, { log, logArchive: { directory: archive } });
  const archiving = db.archiveLog().catch((error: unknown) => error);
  // It has begun, and nothing is on disk yet.
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  await db.close();
  expect(await archiving).toMatchObject({ name: 'AbortError' });
  expect(readdirSync(archive)).toEqual([]);
  expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  const { db: again } = await openArchived(db.directory, archive);
  await again.archiveLog();
  expect(readdirSync(archive)).toHaveLength(1);
});

test('archive: of a new database holds all commits, however soon it is closed', async () => {
  const { db, archive } = await openArchived();
  for (let n = 1; n <= 3; n++) await db.collection('counter').upsert('only', { n });
  await db.close();
  expect(await counted(await restoredTo([archive], 2))).toBe(2);
  expect(await counted(await restoredTo([archive]))).toBe(3);
  expect(await counted(await restoredTo([archive], 0))).toBeUndefined();
});

test('archive: an empty follower writes no base backup of its own', async () => {
  const archive = scratch.directory();
  const seal = () => () => new Error('sealed');
  await (await scratch.open({ seal, logArchive: { directory: archive } })).close();
  expect(readdirSync(archive)).toEqual([]);
});

test('archive: takes a new base backup when its files were removed', async () => {
  const { db, archive } = await openCounter();
  for (const name of readdirSync(archive)) rmSync(join(archive, name));
  await db.collection('counter').upsert('only', { n: 11 });
  await db.archiveLog();
  expect(readdirSync(archive)).toEqual(['base-000000000011.backup']);
});

test('archive: belongs to one database', async () => {
  const { archive } = await openCounter();
  await expect(openArchived(undefined, archive)).rejects.toThrow('another database');
});

test('archive: a failure is logged and repeated later', async () => {
  const log = memoryLog();
  const archive = join(scratch.directory(), 'archive');
  const db = await scratch.open({ log, logArchive: { directory: archive } });
  await db.collection('counter').upsert('only', { n: 1 });
  rmSync(archive, { recursive: true });
  scratch.clock.advance(1);
  await expect.poll(() => log.lines.map(({ message }) => message)).toContain('log archive failed');
  mkdirSync(archive);
  await expect
    .poll(() => {
      scratch.clock.advance(60_000);
      return readdirSync(archive);
    })
    .toEqual(['base-000000000001.backup']);
});
