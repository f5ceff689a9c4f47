import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import { describe, expect, test } from 'vitest';
import { refusalOf, useScratch } from '../../../test/scratch.test-support.js';
import { explainStorageError } from './files.js';

const scratch = useScratch();
const path = '/nowhere/store-000001.mdb';

test.each([
  'MDB_CORRUPTED: Located page was wrong type',
  'MDB_PAGE_NOTFOUND: Requested page not found',
  'MDB_INVALID: File is not an LMDB file',
  'MDB_VERSION_MISMATCH: Database environment version mismatch',
  'MDB_BAD_TXN: Transaction must abort, has a child, or is invalid',
  'MDB_BAD_DBI: The specified DBI handle was closed/changed unexpectedly',
])('%s is damage, with what to do', (text) => {
  const cause = new Error(text);
  const refusal = explainStorageError(cause, path) as Refusal;
  expect(refusal).toMatchObject({ code: 'CORRUPT', extra: { cause } });
  expect(refusal.detail).toContain(`The file store-000001.mdb is damaged (${text}).`);
  expect(refusal.detail).toMatch(/ctl db verify.*restore a backup into a new directory/);
});

test.each([
  Object.assign(new Error('write'), { code: 'ENOSPC' }),
  new Error('No space left on device'),
  new Error('MDB_MAP_FULL: Environment mapsize limit reached'),
])('%s is a full disk', (cause) => {
  const refusal = explainStorageError(cause, path);
  expect(refusal).toMatchObject({ code: 'DISK_FULL', extra: { cause } });
});

test('a fault of ours stays one, and a refusal stays what it is', () => {
  const mistakes = [
    new Error('MDB_BAD_VALSIZE: Unsupported size of key/DB name/data, or wrong DUPFIXED size'),
    new Error('MDB_READERS_FULL: Environment maxreaders limit reached'),
    new TypeError('x is not a function'),
    new Refusal('KEY_NOT_FOUND', 'There is no such key.'),
  ];
  for (const error of mistakes) expect(explainStorageError(error, path)).toBe(error);
});

describe('a page that is damaged', () => {
  const pageSize = 4096;
  const isLeaf = 2;

  /** Spoils the kind of every leaf that holds the text. */
  function spoil(file: string, text: string): number {
    const bytes = readFileSync(file);
    let spoiled = 0;
    for (let at = 2 * pageSize; at < bytes.length; at += pageSize) {
      const page = bytes.subarray(at, at + pageSize);
      if (page.readUInt16LE(18) !== isLeaf || !page.includes(text)) continue;
      page.writeUInt16LE(0x4780, 18);
      spoiled++;
    }
    writeFileSync(file, bytes);
    return spoiled;
  }

  test('is reported to readers and writers there, and to nobody else', async () => {
    const first = await scratch.open();
    const { directory } = first;
    for (const name of ['good', 'bad']) {
      const made = Array.from({ length: 200 }, (_, i) =>
        first
          .collection(name)
          .insertWithKey(`${name}${i}`, { text: `${name}-text-${i}`.repeat(9) }),
      );
      await Promise.all(made);
    }
    await first.close();
    expect(spoil(join(directory, 'store-000001.mdb'), 'bad-text-100')).toBeGreaterThan(0);
    const db = await scratch.open({}, directory);
    const bad = db.collection('bad');
    const calls = [
      () => bad.findByKey('bad100'),
      () => bad.mergeByKey('bad100', { more: 1 }),
      () => db.transaction((transaction) => bad.findByKey('bad100', { transaction })),
    ];
    for (const call of calls) {
      const refusal = await refusalOf(call());
      expect([refusal.code, refusal.detail]).toEqual(['CORRUPT', expect.stringContaining('MDB_')]);
    }
    expect((await db.collection('good').findByKey('good7'))?.key).toBe('good7');
    expect((await db.collection('good').insert({ n: 1 })).rev).toBe(1);
  });
});
