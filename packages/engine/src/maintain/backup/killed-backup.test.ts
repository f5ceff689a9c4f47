import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Database } from '../../api/database.js';
import { runUntilKilled } from '../../../test/killed-process.test-support.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import { contentOf, fillWithVariety } from './backup.test-support.js';
import { restore } from './restore.js';

const scratch = useScratch();
const work = 'test/killed-work.test-support.ts';

test('a killed backup leaves no file of its name', async () => {
  const db = await scratch.open();
  await fillWithVariety(db, 1_500);
  await db.close();
  const directory = scratch.directory();
  const file = join(directory, 'db.backup');
  await runUntilKilled(work, 'backupUntil', db.directory, file);
  expect(existsSync(file)).toBe(false);
  expect(readdirSync(directory)[0]).toContain('unfinished');
});

test.each(['restoreUntil', 'restoreUntilVerify'])(
  'a restore killed by %s leaves a directory that cannot be opened, and can be run again after its removal',
  async (name) => {
    const db = await scratch.open();
    await fillWithVariety(db, 1_500);
    const file = join(scratch.directory(), 'db.backup');
    await db.writeBackup(file);
    const directory = join(scratch.directory(), 'restored');
    await runUntilKilled(work, name, file, directory, 100);
    await expect(Database.open(directory)).rejects.toThrow('CURRENT');
    await expect(restore([file], directory)).rejects.toThrow('unfinished restore');
    rmSync(directory, { recursive: true });
    await restore([file], directory);
    expect(contentOf(await scratch.open({}, directory))).toEqual(contentOf(db));
  },
);

test('archive: a killed process leaves an archive that leads to every commit after a restart', async () => {
  const [directory, archive] = [scratch.directory(), scratch.directory()];
  let acknowledged: number[] = [];
  for (const writes of [20, 7, 45]) {
    const lines = await runUntilKilled(work, 'archiveUntil', directory, archive, writes);
    acknowledged = [...acknowledged, ...lines.map(Number)];
  }
  const db = await scratch.open({ logArchive: { directory: archive } }, directory);
  await db.archiveLog();
  for (const seq of [acknowledged.at(-1)!, acknowledged[acknowledged.length >> 1]!]) {
    const target = join(scratch.directory(), 'restored');
    await restore([archive], target, { to: seq });
    const copy = await scratch.open({}, target);
    expect(copy.logPosition.seq).toBe(seq);
    const isDue = (each: number) => each <= seq;
    expect(await copy.collection('items').count()).toBe(acknowledged.filter(isDue).length);
    expect((await copy.verify()).problems).toEqual([]);
  }
});
