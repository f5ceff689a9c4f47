import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { problemsOf } from './consistency.test-support.js';
import type { Database } from '../src/api/database.js';
import { ManualClock } from './manual-clock.test-support.js';
import { useScratch } from './scratch.test-support.js';
import { Tables } from '../src/storage/file/tables.js';
import { verify } from '../src/maintain/verify/verify.js';

const scratch = useScratch();
const fixture = new URL('fixtures/0.1.0/', import.meta.url);
const expected = JSON.parse(readFileSync(new URL('expected.json', fixture), 'utf8')) as {
  seq: number;
  chain: { high: number; low: number };
  oldestSeq: number;
  token: [number, string];
  requestRecordId: string;
  lineage: string;
  records: Record<string, { id: string; createdAt: string }[]>;
};
const collections = {
  people: {
    indexes: [
      { fields: ['age'] },
      { fields: ['city', 'age'] },
      { fields: ['email'], unique: true },
      { fields: ['tags'] },
    ],
  },
  notes: {},
  sessions: {},
};
const logRetention = { ageMs: 1_000 * 366 * 86_400_000 };

/** A copy of a data directory that version 0.1.0 wrote. */
function oldDirectory(): string {
  const directory = join(scratch.directory(), 'data');
  mkdirSync(directory);
  const store = gunzipSync(readFileSync(new URL('store-000002.mdb.gz', fixture)));
  writeFileSync(join(directory, 'store-000002.mdb'), store);
  writeFileSync(join(directory, 'CURRENT'), 'store-000002.mdb\n');
  return directory;
}

/** Opens it at the time when it was written: request ids are known for ten minutes. */
async function openOld(directory = oldDirectory()): Promise<Database> {
  const [{ createdAt } = { createdAt: '' }] = expected.records['notes'] ?? [];
  const clock = new ManualClock(Date.parse(createdAt) + 1_000);
  return scratch.open({ collections, logRetention, clock }, directory);
}

async function contentOf(db: Database): Promise<unknown> {
  const content: Record<string, unknown[]> = {};
  for (const name of Object.keys(expected.records)) {
    content[name] = [];
    for await (const record of db.collection(name).stream()) content[name].push(record);
  }
  return JSON.parse(JSON.stringify(content)) as unknown;
}

describe('a data directory of version 0.1.0', () => {
  test('opens with everything in it, and again', async () => {
    let db = await openOld();
    for (let round = 0; round < 2; round++) {
      const { seq, chain, oldestSeq } = expected;
      expect(db.core.durable).toMatchObject({ seq, chain, oldestSeq });
      expect(await contentOf(db)).toEqual(expected.records);
      expect(db.indexes().map(({ state }) => state)).toEqual(Array(4).fill('ready'));
      expect(problemsOf(db.core)).toEqual([]);
      expect((await db.verify()).problems).toEqual([]);
      const rows = db.readRows((reader) => Array.from(reader.range({}), ({ value }) => `${value}`));
      expect(rows).toEqual(Array.from({ length: 30 }, (_, i) => `value ${i}`));
      await db.close();
      db = await openOld(db.directory);
    }
  });

  test('is backed up before the upgrade, as the old version can open it', async () => {
    const directory = oldDirectory();
    const db = await openOld(directory);
    const backup = join(db.directory, 'backup-before-format-2');
    expect(db.upgradeBackup).toBe(backup);
    await db.close();
    const pointer = readFileSync(join(backup, 'CURRENT'), 'utf8');
    expect(pointer).toBe('store-000002.mdb\n');
    const tables = new Tables(join(backup, 'store-000002.mdb'));
    expect(tables.get('meta', Buffer.from('format'))?.toString()).toBe('1');
    await tables.close();
    const again = await openOld(directory);
    expect(again.upgradeBackup).toBeUndefined();
    await again.close();
    const fromBackup = await openOld(backup);
    expect(await contentOf(fromBackup)).toEqual(expected.records);
  });

  test('an unfinished backup is replaced', async () => {
    const directory = oldDirectory();
    mkdirSync(join(directory, 'backup-before-format-2.new'));
    writeFileSync(join(directory, 'backup-before-format-2.new', 'store-000009.mdb'), 'half');
    const db = await openOld(directory);
    expect(readdirSync(db.upgradeBackup!).toSorted()).toEqual(['CURRENT', 'store-000002.mdb']);
    expect(existsSync(`${db.upgradeBackup}.new`)).toBe(false);
  });

  test('is refused and left alone with upgrade: false', async () => {
    const directory = oldDirectory();
    const before = readFileSync(join(directory, 'store-000002.mdb'));
    const refused = scratch.open({ upgrade: false }, directory);
    await expect(refused).rejects.toThrow('Upgrades are turned off');
    expect(readFileSync(join(directory, 'store-000002.mdb')).equals(before)).toBe(true);
    expect(readdirSync(directory).filter((name) => name.startsWith('backup'))).toEqual([]);
    await openOld(directory);
  });

  test('answers by its indexes and keeps unique values', async () => {
    const db = await openOld();
    const people = db.collection('people');
    const filter = {
      and: [
        { field: 'city', op: 'eq', value: 'Rome' },
        { field: 'age', op: 'gte', value: 0 },
      ],
    } as const;
    const { records, plan } = await people.find({ filter, explain: true });
    expect(records.map(({ key }) => key)).toEqual(['p20']);
    expect(JSON.stringify(plan)).toContain('city');
    const taken = people.insert({ email: 'p1@example.org' });
    await expect(taken).rejects.toThrow('already has this value');
    expect((await people.insert({ email: 'free@example.org' })).seq).toBe(expected.seq + 1);
  });

  test('goes on for a watch with a resume token of then', async () => {
    const db = await openOld();
    const [seq, resumeToken] = expected.token;
    const watch = db.watch({ resumeToken });
    for (let next = seq + 1; next <= expected.seq; next++) {
      expect((await watch.next()).value?.seq).toBe(next);
    }
    await db.collection('notes').insert({ after: true });
    expect((await watch.next()).value?.seq).toBe(expected.seq + 1);
    await watch.return();
  });

  test('knows the request ids of then', async () => {
    const db = await openOld();
    const data = { text: 'kept', n: 1, deep: { a: [1, { b: null }] } };
    const again = await db.collection('notes').insert(data, { requestId: 'fixture-request' });
    expect(again.id).toBe(expected.requestRecordId);
    expect(db.core.durable.seq).toBe(expected.seq);
  });

  test('takes a schema, which is there after the next open', async () => {
    let db = await openOld();
    const schema = { properties: { age: { type: 'integer' } } };
    expect(await db.schemas.set('people', schema)).toMatchObject({ applied: true, violating: 0 });
    await db.close();
    db = await openOld(db.directory);
    await expect(db.collection('people').insert({ age: 'old' })).rejects.toThrow('at "age"');
    expect((await db.verify()).problems).toEqual([]);
  });

  test('can be verified and compacted', async () => {
    const directory = oldDirectory();
    expect(await verify(directory)).toMatchObject({ ok: true, seq: expected.seq });
    const db = await openOld(directory);
    await db.compact();
    expect(await contentOf(db)).toEqual(expected.records);
    expect((await db.verify()).problems).toEqual([]);
  });
});
