import { describe, expect, test } from 'vitest';
import { problemsOf } from '../consistency.test-support.js';
import type { Database } from '../../src/api/database.js';
import { refusalOf, useScratch } from '../scratch.test-support.js';
import { SimulatedDisk } from './simulated-disk.test-support.js';

const scratch = useScratch();
const logFiles = { segmentBytes: 8 * 1024 };

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code });
}

async function openOn(disk: SimulatedDisk, directory?: string): Promise<Database> {
  return scratch.open({ files: disk, logFiles }, directory);
}

const fill = 'x'.repeat(700);

/** Writes until one write is refused; returns the keys that were acknowledged. */
async function writeUntilRefused(db: Database, from: number, most: number) {
  const answered: string[] = [];
  for (let n = from; n < from + most; n++) {
    try {
      await db.collection('docs').insertWithKey(`k${n}`, { n, fill });
      answered.push(`k${n}`);
    } catch (error) {
      return { answered, error };
    }
  }
  return { answered, error: undefined };
}

async function expectAll(db: Database, keys: readonly string[]): Promise<void> {
  for (const key of keys) expect(await db.collection('docs').findByKey(key)).toBeDefined();
  expect(problemsOf(db.core)).toEqual([]);
}

describe('I/O errors of the log', () => {
  test('a full disk at any write is DISK_FULL, and writes go on when there is room', async () => {
    for (let failAt = 1; failAt <= 30; failAt += 3) {
      const disk = new SimulatedDisk();
      let db = await openOn(disk);
      await db.collection('docs').insertWithKey('first', { n: 0 });
      let calls = 0;
      disk.onCall = (call) => {
        if (call === 'write' && ++calls >= failAt) throw systemError('ENOSPC');
      };
      const { answered, error } = await writeUntilRefused(db, 0, 40);
      expect((await refusalOf(Promise.reject(error))).code).toBe('DISK_FULL');
      await expectAll(db, ['first', ...answered]);
      disk.onCall = () => undefined;
      const more = await writeUntilRefused(db, 100, 20);
      expect(more.error).toBeUndefined();
      await expectAll(db, ['first', ...answered, ...more.answered]);
      const { directory } = db;
      await db.close();
      db = await openOn(disk, directory);
      await expectAll(db, ['first', ...answered, ...more.answered]);
      await db.close();
    }
  });

  test('after a failed sync no write is taken, and nothing acknowledged is lost', async () => {
    let stopped = 0;
    for (let failAt = 1; failAt <= 30; failAt += 3) {
      const disk = new SimulatedDisk();
      let db = await openOn(disk);
      await db.collection('docs').insertWithKey('first', { n: 0 });
      let calls = 0;
      disk.onCall = (call) => {
        if (call === 'sync' && ++calls === failAt) throw systemError('EIO');
      };
      const { answered, error } = await writeUntilRefused(db, 0, 60);
      disk.onCall = () => undefined;
      // What failed may have been the sync of room for later writes, which nobody relies on.
      if (error) {
        stopped++;
        for (const refused of [Promise.reject(error), db.collection('docs').insert({ n: -1 })]) {
          expect((await refusalOf(refused)).code).toBe('STORAGE_FAILED');
        }
      }
      await expectAll(db, ['first', ...answered]);
      const { directory } = db;
      await db.close();
      db = await openOn(disk, directory);
      await expectAll(db, ['first', ...answered]);
      await db.collection('docs').insert({ n: -2 });
      await db.close();
    }
    expect(stopped).toBeGreaterThan(5);
  });

  test.each(['rename', 'syncDirectory'])(
    'no room at a %s refuses the write and leaves the log whole',
    async (call) => {
      const disk = new SimulatedDisk();
      let db = await openOn(disk);
      disk.onCall = (made) => {
        if (made === call) throw systemError('ENOSPC');
      };
      const { answered, error } = await writeUntilRefused(db, 0, 60);
      expect((await refusalOf(Promise.reject(error))).code).toBe('DISK_FULL');
      disk.onCall = () => undefined;
      const more = await writeUntilRefused(db, 100, 30);
      expect(more.error).toBeUndefined();
      const { directory } = db;
      await db.close();
      db = await openOn(disk, directory);
      await expectAll(db, [...answered, ...more.answered]);
    },
  );
});
