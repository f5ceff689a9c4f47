import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Database } from '../../api/database.js';
import { runUntilKilled } from '../../../test/killed-process.test-support.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import type { RestoreTarget } from './archiver.js';
import { contentOf } from './backup.test-support.js';
import { checkBackup } from './check.js';
import { restore } from './restore.js';

const scratch = useScratch();
const bytes = (text: string) => Buffer.from(text);

/** A record and rows in one commit, over and over; many share a batch. */
async function write(db: Database, from: number, to: number): Promise<void> {
  const step = (n: number) =>
    db.transact((target) => {
      const { rows } = target;
      rows.put(bytes('last'), bytes(String(n)));
      rows.put(bytes(`row ${n}`), bytes('x'.repeat(n % 50)));
      if (n % 3 === 0) rows.remove(bytes(`row ${n - 1}`));
      if (n % 2 === 0) target.collection<{ n: number }>('counter').put('only', { n });
    });
  await Promise.all(Array.from({ length: to - from }, (_, i) => step(from + i)));
}

const rowsOf = (db: Database) =>
  db.readRows((rows) => Array.from(rows.range({}), ({ key, value }) => `${key}=${value}`));
const everythingIn = (db: Database) => ({ rows: rowsOf(db), content: contentOf(db) });

async function restored(files: string[], to?: RestoreTarget): Promise<Database> {
  const directory = join(scratch.directory(), 'restored');
  await restore(files, directory, { clock: scratch.clock, to });
  const db = await scratch.open({}, directory);
  expect((await db.verify()).problems).toEqual([]);
  return db;
}

/** A full backup and three increments, each a minute after the one before. */
async function chain(db: Database) {
  const folder = scratch.directory();
  const made: { file: string; seq: number; at: Date; content: unknown }[] = [];
  let sinceSeq = 0;
  for (let i = 0; i < 4; i++) {
    scratch.clock.advance(60_000);
    await write(db, i * 200, (i + 1) * 200);
    const file = join(folder, `${i}.backup`);
    const { header } = await db.writeBackup(file, { batches: true, sinceSeq });
    const at = new Date(scratch.clock.now());
    made.push({ file, seq: header.seq, at, content: everythingIn(db) });
    sinceSeq = header.seq;
  }
  return made;
}

test('batches: a chain is restored to its end, to each backup and to times between them', async () => {
  const db = await scratch.open();
  const made = await chain(db);
  const files = made.map(({ file }) => file);
  expect(everythingIn(await restored(files))).toEqual(made[3]!.content);
  for (const { seq, at, content } of made) {
    expect(everythingIn(await restored(files, seq))).toEqual(content);
    expect(everythingIn(await restored(files, at))).toEqual(content);
  }
  // A time or number between two backups: what was committed until then, and no part of a batch.
  const early = await restored(files, new Date(made[1]!.at.getTime() + 30_000));
  expect(everythingIn(early)).toEqual(made[1]!.content);
  const between = await restored(files, made[1]!.seq + 1);
  const [last] = rowsOf(between).filter((row) => row.startsWith('last='));
  const n = Number(last!.slice(5));
  const counted = (await between.collection<{ n: number }>('counter').findByKey('only'))?.data.n;
  expect(counted).toBe(n - (n % 2));
  await expect(restored(files, made[3]!.seq + 1)).rejects.toThrow('does not reach commit');
  await expect(restored(files, made[0]!.seq - 1)).rejects.toThrow('after the target');
});

test('batches: a restored database is the start of a chain of its own', async () => {
  const made = await chain(await scratch.open());
  const copy = await restored(made.map(({ file }) => file));
  const file = join(scratch.directory(), 'next.backup');
  await copy.writeBackup(file, { batches: true, sinceSeq: made[3]!.seq }).catch(() => undefined);
  await expect(restored([made[0]!.file, file])).rejects.toThrow();
  const again = await chain(copy);
  expect(everythingIn(await restored(again.map((each) => each.file)))).toEqual(again[3]!.content);
});

test('batches: missing, swapped, damaged and foreign links are refused', async () => {
  const [base, first, second] = (await chain(await scratch.open())).map(({ file }) => file);
  await expect(restored([base!, second!])).rejects.toThrow('in order, without a gap');
  await expect(restored([base!, second!, first!])).rejects.toThrow('in order, without a gap');
  await expect(restored([first!])).rejects.toThrow('name the full backup first');
  const other = (await chain(await scratch.open()))[1]!.file;
  await expect(restored([base!, other])).rejects.toThrow('another database');
  const content = readFileSync(first!);
  content[content.length >> 1]! ^= 1;
  writeFileSync(first!, content);
  await expect(restored([base!, first!])).rejects.toThrow('is damaged');
});

test('batches: an increment of another history than that of the base is refused', async () => {
  const db = await scratch.open();
  await write(db, 0, 10);
  const folder = scratch.directory();
  await db.close();
  const copy = scratch.directory();
  cpSync(db.directory, copy, { recursive: true });
  const [one, two] = [await scratch.reopen(db), await scratch.open({}, copy)];
  await write(one, 10, 20);
  await write(two, 10, 20);
  const base = join(folder, 'base.backup');
  const { header } = await one.writeBackup(base, { batches: true });
  for (let i = 0; i < 5; i++) await write(two, 20, 30);
  const file = join(folder, 'other.backup');
  await two.writeBackup(file, { batches: true, sinceSeq: header.seq });
  await expect(restored([base, file])).rejects.toThrow('another history');
});

test('batches: the log is retained once there is a backup, also over a restart, and trimmed later', async () => {
  const logFiles = { segmentBytes: 4_096 };
  let db = await scratch.open({ logFiles });
  await write(db, 0, 500);
  const count = () => db.core.store.log!.segments.length;
  await db.core.store.fold();
  await db.trimLog(db.logPosition.seq + 1);
  expect(count()).toBe(1);
  const base = join(scratch.directory(), 'base.backup');
  const { header } = await db.writeBackup(base, { batches: true });
  await write(db, 500, 900);
  db = await scratch.reopen(db, { logFiles });
  await db.core.store.fold();
  await db.trimLog(db.logPosition.seq + 1);
  expect(count()).toBeGreaterThan(1);
  const next = join(scratch.directory(), 'next.backup');
  await db.writeBackup(next, { batches: true, sinceSeq: header.seq });
  expect(everythingIn(await restored([base, next]))).toEqual(everythingIn(db));

  scratch.clock.advance(25 * 3_600_000);
  for (let i = 0; i < 3; i++) {
    await write(db, 900, 1_200);
    await db.core.store.fold();
    await db.trimLog(db.logPosition.seq + 1);
  }
  const late = db.writeBackup(next, { batches: true, sinceSeq: header.seq });
  await expect(late).rejects.toMatchObject({ code: 'WATCH_COMPACTED' });
  const future = db.writeBackup(next, { batches: true, sinceSeq: 10 ** 9 });
  await expect(future).rejects.toMatchObject({ code: 'BAD_REQUEST' });
});

test('batches: increments taken while others write have all of it in the end', async () => {
  const db = await scratch.open();
  const folder = scratch.directory();
  const files: string[] = [];
  let sinceSeq = 0;
  const writing = write(db, 0, 3_000);
  for (let i = 0; i < 5; i++) {
    if (i === 4) await writing;
    files.push(join(folder, `${i}.backup`));
    const { header } = await db.writeBackup(files[i]!, { batches: true, sinceSeq });
    sinceSeq = header.seq;
  }
  expect(everythingIn(await restored(files))).toEqual(everythingIn(db));
});

test('batches: an archive of the log leads to every batch and time, over restarts', async () => {
  const archive = scratch.directory();
  const logArchive = { directory: archive, batches: true };
  let db = await scratch.open({ logArchive });
  const points: { at: Date; content: unknown }[] = [];
  for (let i = 0; i < 3; i++) {
    scratch.clock.advance(60_000);
    await write(db, i * 50, (i + 1) * 50);
    points.push({ at: new Date(scratch.clock.now()), content: everythingIn(db) });
    await db.archiveLog();
    await db.archiveLog();
    if (i === 1) db = await scratch.reopen(db, { logArchive });
  }
  expect(db.archiveLag).toBe(0);
  for (const { at, content } of points) {
    expect(everythingIn(await restored([archive], at))).toEqual(content);
  }
  expect(everythingIn(await restored([archive]))).toEqual(everythingIn(db));
  const names = readdirSync(archive).toSorted();
  expect([names[0], names.length]).toEqual(['base-000000000001.backup', 4]);
});

test('batches: a process killed during an increment leaves a chain that can be continued', async () => {
  const [directory, folder] = [scratch.directory(), scratch.directory()];
  let db = await scratch.open({}, directory);
  await write(db, 0, 200);
  const base = join(folder, 'base.backup');
  const { header } = await db.writeBackup(base, { batches: true });
  await write(db, 200, 2_000);
  await db.close();
  const file = join(folder, 'next.backup');
  const work = 'test/killed-work.test-support.ts';
  await runUntilKilled(work, 'backupUntil', directory, file, header.seq);
  await expect(checkBackup(file)).rejects.toThrow('no such file');
  db = await scratch.open({}, directory);
  await db.writeBackup(file, { batches: true, sinceSeq: header.seq });
  expect(everythingIn(await restored([base, file]))).toEqual(everythingIn(db));
});
