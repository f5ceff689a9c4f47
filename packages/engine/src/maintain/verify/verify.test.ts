import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { problemsOf } from '../../../test/consistency.test-support.js';
import type { Database } from '../../api/database.js';
import { expiryKey, expiryKinds, idBytes, prefixed, recordKey } from '../../format/keys.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import { rewriteCommit } from '../../storage/log/rewrite.test-support.js';
import {
  decodeState,
  encodeState,
  stateRow,
  type PutRow,
  type RemoveRow,
  type TableName,
  type TableRow,
} from '../../storage/file/tables.js';
import type { ProblemKind } from './records.js';
import { verify } from './verify.js';

interface Person {
  name: string;
  age?: number;
  email?: string;
  tags?: string[];
}

const scratch = useScratch();
const collections = {
  people: {
    indexes: [
      { fields: ['age'] },
      { fields: ['tags'] },
      { fields: ['name', 'age'] },
      { fields: ['email'], unique: true },
    ],
  },
};

async function openPeople(): Promise<Database> {
  const db = await scratch.open({ collections });
  const people = db.collection<Person>('people');
  await people.insertWithKey('ada', { name: 'Ada', age: 36, email: 'ada@x', tags: ['a', 'b'] });
  await people.insertWithKey('bob', { name: 'Bob', age: 5 }, { ttlMs: 60_000 });
  await people.insert({ name: 'Cid', email: 'cid@x' }, { requestId: 'r1' });
  await people.mergeByKey('ada', { age: 37 });
  await people.insertWithKey('dan', { name: 'Dan' });
  await people.deleteByKey('dan');
  await db.collection('places').insertWithKey('here', { at: [1, 2] });
  await db.indexesBuilt();
  return db;
}

describe('verify', () => {
  test('finds nothing in a sound database and says what it looked at', async () => {
    const db = await openPeople();
    const report = await db.verify();
    expect(report).toMatchObject({
      ok: true,
      seq: 7,
      records: 4,
      logEntries: 7,
      problems: [],
      problemCount: 0,
    });
    // ages 3, tags 3 + 1 + 1 (the list and its elements, and two without), name and age 3, email 3
    expect(report.indexEntries).toBe(3 + 5 + 3 + 3);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('knows a trimmed log, a compacted file and an empty database', async () => {
    const db = await openPeople();
    await db.trimLog(4);
    expect((await db.verify()).problems).toEqual([]);
    await db.compact({ trimBeforeSeq: 100 });
    expect(await db.verify()).toMatchObject({ ok: true, logEntries: 0, records: 4 });
    expect(await (await scratch.open()).verify()).toMatchObject({ ok: true, records: 0, seq: 0 });
  });

  test('runs while the database is written', async () => {
    const db = await openPeople();
    const people = db.collection<Person>('people');
    let going = true;
    const writing = (async () => {
      for (let i = 0; going; i++) await people.upsert(`k${i % 20}`, { name: `n${i}`, age: i });
    })();
    for (let i = 0; i < 5; i++) expect((await db.verify()).problems).toEqual([]);
    going = false;
    await writing;
  });

  test('does not mistake an index in the making for a broken one', async () => {
    const db = await scratch.open();
    const people = db.collection<Person>('people');
    await Promise.all(Array.from({ length: 600 }, (_, age) => people.insert({ name: 'x', age })));
    const again = await scratch.reopen(db, { collections });
    expect((await again.verify()).problems).toEqual([]);
    await again.indexesBuilt();
    expect((await again.verify()).problems).toEqual([]);
  });

  test('can be run on a directory that nobody has open', async () => {
    const db = await openPeople();
    await expect(verify(db.directory)).rejects.toThrow('in use');
    await db.close();
    expect(await verify(db.directory)).toMatchObject({ ok: true, records: 4 });
    expect(await verify(db.directory)).toMatchObject({ ok: true, records: 4 });
  });

  test('says so when there is no database', async () => {
    const directory = scratch.directory();
    await expect(verify(join(directory, 'nowhere'))).rejects.toThrow('There is no directory');
    await expect(verify(directory)).rejects.toThrow('There is no database');
    const damaged = join(directory, 'damaged');
    mkdirSync(damaged);
    writeFileSync(join(damaged, 'CURRENT'), 'store-000001.mdb\n');
    writeFileSync(join(damaged, 'store-000001.mdb'), 'this is no LMDB file'.repeat(1_000));
    await expect(verify(damaged)).rejects.toThrow('CORRUPT');
  });

  test('lists the first hundred problems and the number of all', async () => {
    const db = await scratch.open();
    const items = db.collection('items');
    const made = await Promise.all(Array.from({ length: 150 }, () => items.insert({ a: 1 })));
    await db.core.store.fold();
    await db.core.tables.commit((_put, remove) => {
      for (const { id } of made) remove('records', recordKey(1, id));
    });
    const report = await db.verify();
    expect(report.ok).toBe(false);
    expect(report.problems).toHaveLength(100);
    expect(report.problemCount).toBe(150);
  });
});

/** What a test may do to the rows of a file. */
interface Damage {
  put: PutRow;
  remove: RemoveRow;
  rows(table: TableName): TableRow[];
  id(key: string): string;
  commitRow(seq: number): Buffer;
}
type Plant = (damage: Damage) => void;

async function plant(db: Database, run: Plant): Promise<void> {
  const { tables } = db.core;
  await db.core.store.fold();
  const rows = (table: TableName) => [...tables.range(table, {})];
  const id = (key: string) => db.core.snapshot().idOfKey(1, key)!;
  const commitRow = (seq: number) => db.core.commitRow(seq)!;
  await tables.commit((put, remove) => run({ put, remove, rows, id, commitRow }));
  tables.refresh();
}

const bobAge = 1;
const plants: [string, ProblemKind, Plant][] = [
  [
    'a bit of a document is another',
    'record',
    ({ rows, put }) => {
      const [row] = rows('records');
      row!.value[row!.value.length - 1]! ^= 1;
      put('records', row!.key, row!.value);
    },
  ],
  [
    'a document is cut off',
    'record',
    ({ rows, put }) => {
      const [row] = rows('records');
      put('records', row!.key, row!.value.subarray(0, row!.value.length - 3));
    },
  ],
  [
    'a record is hardly there',
    'record',
    ({ rows, put }) => put('records', rows('records')[0]!.key, Buffer.of(0, 1)),
  ],
  [
    'a record has a key of the wrong length',
    'record',
    ({ rows, put }) => put('records', Buffer.from('short'), rows('records')[0]!.value),
  ],
  [
    'a record is of an unknown collection',
    'record',
    ({ rows, put }) => {
      const { key, value } = rows('records')[0]!;
      key.writeUInt32BE(99, 0);
      put('records', key, value);
    },
  ],
  ['a record is gone', 'record', ({ id, remove }) => remove('records', recordKey(1, id('bob')))],
  [
    'a record is from the future',
    'record',
    ({ rows, put }) => {
      const { key, value } = rows('records')[0]!;
      value.writeUIntBE(1_000, 9, 6);
      put('records', key, value);
    },
  ],
  [
    'a record is older than the log says',
    'record',
    ({ rows, put, id }) => {
      const wanted = recordKey(1, id('ada'));
      const { key, value } = rows('records').find((row) => row.key.equals(wanted))!;
      value.writeUIntBE(2, 9, 6);
      put('records', key, value);
    },
  ],
  [
    'a record is there that the log removed',
    'record',
    ({ commitRow, put }) => {
      const commit = commitRow(6);
      const id = commit.subarray(22 + 5, 22 + 5 + 16);
      const length = commit.readUInt32BE(22 + 25);
      const key = Buffer.concat([Buffer.of(0, 0, 0, 1), id]);
      put('records', key, commit.subarray(commit.length - length));
    },
  ],
  [
    'a record has another time than the log says',
    'record',
    ({ rows, put }) => {
      const { key, value } = rows('records')[0]!;
      value[20]! ^= 1;
      put('records', key, value);
    },
  ],
  ['a key row is gone', 'key', ({ remove }) => remove('keys', prefixed(1, Buffer.from('ada')))],
  [
    'a key row names another record',
    'key',
    ({ put, id }) => put('keys', prefixed(1, Buffer.from('ada')), idBytes(id('bob'))),
  ],
  [
    'a key row names no record',
    'key',
    ({ put, id }) => put('keys', prefixed(1, Buffer.from('eve')), idBytes(id('bob'))),
  ],
  ['an index entry is gone', 'index', ({ rows, remove }) => remove('index', rows('index')[0]!.key)],
  [
    'an index has an entry too many',
    'index',
    ({ rows, put }) => {
      const { key } = rows('index')[bobAge]!;
      key[6]! ^= 1;
      put('index', key, Buffer.alloc(0));
    },
  ],
  [
    'an index has an entry of a record that is not there',
    'index',
    ({ rows, put }) => {
      const { key } = rows('index')[0]!;
      key[key.length - 1]! ^= 1;
      put('index', key, Buffer.alloc(0));
    },
  ],
  [
    'there are entries of an index that is not known',
    'index',
    ({ rows, put }) => {
      const { key } = rows('index')[0]!;
      key.writeUInt32BE(77, 0);
      put('index', key, Buffer.alloc(0));
    },
  ],
  [
    'a unique row is gone',
    'unique',
    ({ rows, remove }) => remove('unique', rows('unique')[0]!.key),
  ],
  [
    'a unique row names another record',
    'unique',
    ({ rows, put, id }) => put('unique', rows('unique')[0]!.key, idBytes(id('bob'))),
  ],
  [
    'a unique row is one too many',
    'unique',
    ({ rows, put }) => {
      const { key, value } = rows('unique')[0]!;
      key[6]! ^= 1;
      put('unique', key, value);
    },
  ],
  [
    'an expiry row is gone',
    'expiry',
    ({ rows, remove }) => {
      const row = rows('expiry').find(({ key }) => key[6] === expiryKinds.record);
      remove('expiry', row!.key);
    },
  ],
  [
    'an expiry row is one too many',
    'expiry',
    ({ put, id }) => {
      const what = recordKey(1, id('ada'));
      put('expiry', expiryKey(5, expiryKinds.record, what), Buffer.alloc(0));
    },
  ],
  [
    'an expiry row is of an unknown kind',
    'expiry',
    ({ put }) => put('expiry', expiryKey(5, 9, Buffer.alloc(20)), Buffer.alloc(0)),
  ],
  [
    'the state has another chain',
    'chain',
    ({ rows, put }) => {
      const state = stateOf(rows('meta'));
      const chain = { high: state.chain.high, low: state.chain.low ^ 1 };
      put('meta', stateRow, encodeState({ ...state, chain }));
    },
  ],
  [
    'the state would give a number again',
    'meta',
    ({ rows, put }) => {
      put('meta', stateRow, encodeState({ ...stateOf(rows('meta')), nextCollection: 1 }));
    },
  ],
  [
    'the state would give the number of an index again',
    'meta',
    ({ rows, put }) => {
      put('meta', stateRow, encodeState({ ...stateOf(rows('meta')), nextIndex: 1 }));
    },
  ],
  ['the lineage is gone', 'meta', ({ remove }) => remove('meta', Buffer.from('lineage'))],
];

function stateOf(meta: TableRow[]) {
  return decodeState(meta.find(({ key }) => key.equals(stateRow))!.value);
}

test.each(plants)('verify finds that %s', async (_name, kind, run) => {
  const db = await openPeople();
  await plant(db, run);
  const report = await db.verify();
  expect(report.ok).toBe(false);
  expect(report.problems.map((problem) => problem.kind)).toContain(kind);
  for (const { where, detail } of report.problems) expect(where && detail).not.toBe('');
});

const logPlants: [string, ProblemKind, number, (row: Buffer) => void][] = [
  ['a commit cannot be read', 'log', 3, (row) => (row[22] = 200)],
  ['the data in a commit is damaged', 'log', 7, (row) => (row[row.length - 1]! ^= 1)],
  ['a commit has another chain', 'chain', 3, (row) => (row[12]! ^= 1)],
  // The revision that the first change of the commit led to.
  ['a change in a commit is another', 'chain', 3, (row) => (row[22 + 29 + 8]! ^= 1)],
];

test.each(logPlants)('verify finds that %s', async (_name, kind, seq, change) => {
  const db = await openPeople();
  await db.close();
  rewriteCommit(db.directory, seq, change);
  const report = await verify(db.directory);
  expect(report.ok).toBe(false);
  expect(report.problems.map((problem) => problem.kind)).toContain(kind);
});

test('verify: finds a frame of the log that does not have its checksum', async () => {
  const db = await openPeople();
  const seq = 3;
  await db.close();
  rewriteCommit(db.directory, seq, (row) => (row[0]! ^= 1), { isResealed: false });
  await expect(verify(db.directory)).rejects.toThrow(/CORRUPT|damaged/);
});
