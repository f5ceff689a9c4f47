import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { problemsOf } from '../../../test/consistency.test-support.js';
import { Database } from '../../api/database.js';
import { lineageOf } from '../../storage/file/tables.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import { contentOf, fillWithVariety } from './backup.test-support.js';
import { checkBackup } from './check.js';
import { restore, type RestoreProgress } from './restore.js';

const scratch = useScratch();

const indexes = [{ fields: ['n'] }, { fields: ['name'], sparse: true }, { fields: ['list'] }];
const collections = {
  people: { indexes },
  places: {},
  things: { indexes: [{ fields: ['group'] }] },
};

async function openFilled(writes = 800, seed = 1): Promise<Database> {
  const db = await scratch.open({ collections });
  await fillWithVariety(db, writes, seed);
  return db;
}

async function backupTo(db: Database, options = {}): Promise<string> {
  const file = join(scratch.directory(), 'db.backup');
  await db.writeBackup(file, options);
  return file;
}

async function restored(files: string[]): Promise<Database> {
  const directory = join(scratch.directory(), 'restored');
  await restore(files, directory, { clock: scratch.clock });
  return scratch.open({ collections }, directory);
}

describe('restore', () => {
  test('gives back every record as it was, and where the history stood', async () => {
    const db = await openFilled();
    const copy = await restored([await backupTo(db)]);
    expect(contentOf(copy)).toEqual(contentOf(db));
    await copy.indexesBuilt();
    expect(copy.indexes().map(({ name, state }) => `${name} ${state}`)).toEqual(
      db.indexes().map(({ name }) => `${name} ready`),
    );
    expect(problemsOf(copy.core)).toEqual([]);
    expect((await copy.verify()).problems).toEqual([]);
  });

  test('begins a history of its own, from the same commit on', async () => {
    const db = await openFilled(50);
    const watch = db.watch();
    await db.collection('people').insert({ n: 1 });
    const { resumeToken } = (await watch.next()).value!;
    await watch.return();
    const copy = await restored([await backupTo(db)]);
    expect(lineageOf(copy.core.tables)).not.toBe(lineageOf(db.core.tables));
    expect(() => copy.watch({ resumeToken })).toThrow('BAD_RESUME_TOKEN');
    const { seq } = db.core.durable;
    expect(copy.core.durable).toMatchObject({ seq, oldestSeq: seq + 1 });
    expect(() => copy.watch({ startSeq: seq })).toThrow('WATCH_COMPACTED');
    const next = copy.watch();
    expect((await copy.collection('people').insert({ n: 2 })).seq).toBe(seq + 1);
    expect((await next.next()).value?.seq).toBe(seq + 1);
    await next.return();
    expect(problemsOf(copy.core)).toEqual([]);
  });

  test('keeps expiry going', async () => {
    const db = await scratch.open();
    await db.collection('items').insertWithKey('short', {}, { ttlMs: 1_000 });
    await db.collection('items').insertWithKey('long', {}, { ttlMs: 100_000 });
    const copy = await restored([await backupTo(db)]);
    scratch.clock.skip(2_000);
    await copy.sweepExpired();
    expect(await copy.collection('items').findByKey('short')).toBeUndefined();
    expect(await copy.collection('items').findByKey('long')).toBeDefined();
    expect((await copy.verify()).problems).toEqual([]);
  });

  test('of a full backup and its increments is the last state', async () => {
    const db = await openFilled(300);
    const files = [await backupTo(db)];
    for (let round = 2; round < 5; round++) {
      const sinceSeq = db.core.durable.seq;
      await fillWithVariety(db, 200, round);
      if (round === 3) {
        scratch.clock.skip(3_000);
        await db.sweepExpired();
      }
      files.push(await backupTo(db, { sinceSeq }));
    }
    files.push(await backupTo(db, { sinceSeq: db.core.durable.seq }));
    const copy = await restored(files);
    expect(contentOf(copy)).toEqual(contentOf(db));
    await copy.indexesBuilt();
    expect(problemsOf(copy.core)).toEqual([]);
  });

  test('takes a backup of some collections, with increments of the same', async () => {
    const db = await openFilled(200);
    const only = { collections: ['places', 'things'] };
    const first = await backupTo(db, only);
    const sinceSeq = db.core.durable.seq;
    await fillWithVariety(db, 100, 9);
    const [second, other] = [
      await backupTo(db, { ...only, sinceSeq }),
      await backupTo(db, { collections: ['people'], sinceSeq }),
    ];
    const copy = await restored([first, second]);
    const recordsOf = (of: Database) =>
      Object.entries((contentOf(of) as { records: object }).records);
    const wanted = recordsOf(db).filter(([name]) => !name.startsWith('people'));
    expect(new Map(recordsOf(copy))).toEqual(new Map(wanted));
    await expect(restored([first, other])).rejects.toThrow('other collections');
  });

  test('reports its progress', async () => {
    const file = await backupTo(await openFilled(400));
    const seen: RestoreProgress[] = [];
    const directory = join(scratch.directory(), 'restored');
    const { records } = await restore([file], directory, { onProgress: (each) => seen.push(each) });
    expect(new Set(seen.map(({ stage }) => stage))).toEqual(
      new Set(['check', 'restore', 'verify']),
    );
    expect(seen.filter(({ stage }) => stage === 'restore').at(-1)).toEqual({
      stage: 'restore',
      records,
      of: records,
    });
  });

  test.each(['a file', 'a database', 'the rest of a killed restore'])(
    'refuses a directory that has %s in it',
    async (what) => {
      const db = await openFilled(20);
      const file = await backupTo(db);
      let directory = scratch.directory();
      if (what === 'a file') writeFileSync(join(directory, 'notes.txt'), 'mine');
      else if (what === 'a database') directory = db.directory;
      else writeFileSync(join(directory, 'store-000002.mdb'), '');
      const before = readdirSync(directory);
      const problem = what.startsWith('the rest') ? 'unfinished restore' : 'not empty';
      await expect(restore([file], directory)).rejects.toThrow(problem);
      expect(readdirSync(directory)).toEqual(before);
      if (what.startsWith('the rest')) {
        await expect(Database.open(directory)).rejects.toThrow('CURRENT');
      }
    },
  );

  test('takes an empty directory, and one that is not there', async () => {
    const file = await backupTo(await openFilled(20));
    const [empty, missing] = [scratch.directory(), join(scratch.directory(), 'a', 'b')];
    mkdirSync(join(missing, '..'));
    for (const directory of [empty, missing]) {
      await restore([file], directory);
      expect(readdirSync(directory).sort()).toEqual(
        ['CURRENT', 'store-000002.mdb', 'store-000002.mdb-lock'].filter((name) =>
          existsSync(join(directory, name)),
        ),
      );
      expect(statSync(directory).isDirectory()).toBe(true);
    }
  });

  test('that fails leaves nothing behind', async () => {
    const file = await backupTo(await openFilled(400));
    const directory = join(scratch.directory(), 'restored');
    const failing = restore([file], directory, {
      onProgress: ({ stage, records }) => {
        if (stage === 'restore' && records > 100) throw new Error('a fault');
      },
    });
    await expect(failing).rejects.toThrow('a fault');
    expect(existsSync(directory)).toBe(false);
    await restore([file], directory);
  });
});

describe('files in the wrong order', () => {
  test('are distinguished from correct ones', async () => {
    const db = await openFilled(60);
    const base = await backupTo(db);
    const steps: string[] = [];
    for (let round = 1; round < 3; round++) {
      const sinceSeq = db.core.durable.seq;
      await fillWithVariety(db, 40, round + 5);
      steps.push(await backupTo(db, { sinceSeq }));
    }
    const [one, two] = steps as [string, string];
    // Written by the same hand, so its commits have the same numbers.
    const other = await openFilled(60);
    const sinceSeq = other.core.durable.seq;
    await fillWithVariety(other, 40, 6);
    const foreign = await backupTo(other, { sinceSeq });
    const cases: [string[], string][] = [
      [[], 'at least one'],
      [[one], 'name the full backup first'],
      [[base, two], 'in order, without a gap'],
      [[base, two, one], 'in order, without a gap'],
      [[base, one, one], 'in order, without a gap'],
      [[base, base], 'only the first file may be one'],
      [[base, foreign], 'of another database'],
    ];
    for (const [files, problem] of cases) {
      const directory = join(scratch.directory(), 'restored');
      await expect(restore(files, directory)).rejects.toThrow(problem);
      expect(existsSync(directory)).toBe(false);
    }
  });
});

describe('a damaged backup', () => {
  let bytes: Buffer;
  let increment: Buffer;

  beforeAll(async () => {
    const directory = scratch.directory();
    const db = await Database.open(directory, { clock: scratch.clock });
    await fillWithVariety(db, 60);
    const sinceSeq = db.core.durable.seq;
    await db.writeBackup(join(directory, 'base'));
    await fillWithVariety(db, 40, 2);
    await db.writeBackup(join(directory, 'increment'), { sinceSeq });
    await db.close();
    bytes = readFileSync(join(directory, 'base'));
    increment = readFileSync(join(directory, 'increment'));
  });

  async function problemOf(content: Buffer): Promise<string> {
    const file = join(scratch.directory(), 'damaged.backup');
    writeFileSync(file, content);
    const error = await checkBackup(file).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: 'Refusal', code: 'CORRUPT' });
    expect((error as Error).message).toContain(file);
    return (error as Error).message;
  }

  test('is noticed, wherever a bit has flipped', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.boolean(),
        fc.nat(),
        fc.integer({ min: 0, max: 7 }),
        async (full, at, bit) => {
          const damaged = Buffer.from(full ? bytes : increment);
          damaged[at % damaged.length]! ^= 1 << bit;
          await problemOf(damaged);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('is noticed, wherever it is cut off or something was put in', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.uint8Array({ minLength: 1, maxLength: 20 }),
        async (at, extra) => {
          const place = at % bytes.length;
          await problemOf(bytes.subarray(0, place));
          await problemOf(Buffer.concat([bytes.subarray(0, place), extra, bytes.subarray(place)]));
        },
      ),
      { numRuns: 100 },
    );
    expect(await problemOf(bytes.subarray(0, bytes.length - 1))).toContain('cut off');
    expect(await problemOf(Buffer.concat([bytes, Buffer.of(0)]))).toContain('cut off');
    expect(await problemOf(Buffer.concat([bytes, bytes]))).toContain('damaged at byte');
  });

  test('is named with the place of the damage', async () => {
    const damaged = Buffer.from(bytes);
    damaged[1_000]! ^= 1;
    expect(await problemOf(damaged)).toMatch(
      /is damaged at byte \d+: a frame has another checksum/,
    );
  });

  test('is distinguished from a file that is no backup', async () => {
    expect(await problemOf(Buffer.alloc(0))).toContain('is not a Millrace backup');
    expect(await problemOf(Buffer.from('{"some":"json"}\n'))).toContain('is not a Millrace backup');
    const missing = join(scratch.directory(), 'missing');
    await expect(checkBackup(missing)).rejects.toThrow('Cannot read');
    await expect(checkBackup(scratch.directory())).rejects.toThrow('Cannot read');
  });

  test('does not make restore touch the directory', async () => {
    const file = join(scratch.directory(), 'damaged.backup');
    const damaged = Buffer.from(bytes);
    damaged[damaged.length - 100]! ^= 1;
    writeFileSync(file, damaged);
    const directory = join(scratch.directory(), 'restored');
    await expect(restore([file], directory)).rejects.toMatchObject({ code: 'CORRUPT' });
    expect(existsSync(directory)).toBe(false);
  });
});

test('base and increments at any commits give back what was there', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 1_000 }),
      async (steps, seed) => {
        const db = await scratch.open({ collections });
        const files: string[] = [];
        for (const [i, writes] of steps.entries()) {
          const sinceSeq = db.core.durable.seq;
          await fillWithVariety(db, writes, seed + i);
          // Before the first commit there is nothing to build on.
          if (files.length > 0 && sinceSeq === 0) files.pop();
          files.push(await backupTo(db, files.length > 0 ? { sinceSeq } : {}));
        }
        const copy = await restored(files);
        expect(contentOf(copy)).toEqual(contentOf(db));
        await copy.indexesBuilt();
        expect(problemsOf(copy.core)).toEqual([]);
        await Promise.all([db.close(), copy.close()]);
      },
    ),
    { numRuns: 8 },
  );
});
