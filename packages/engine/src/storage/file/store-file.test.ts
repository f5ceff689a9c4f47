import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom } from '@millrace/kit/random';
import { beforeAll, describe, expect, test } from 'vitest';
import { useScratch } from '../../../test/scratch.test-support.js';
import { checkStoreFile } from './store-file.js';
import { Tables } from './tables.js';

const scratch = useScratch();
let whole: Buffer;

/** A store with tables of several levels and values on pages of their own. */
beforeAll(async () => {
  const path = join(scratch.directory(), 'store-000001.mdb');
  const tables = new Tables(path);
  for (let round = 0; round < 5; round++) {
    await tables.commit((put, remove) => {
      for (let i = 0; i < 400; i++) {
        const key = Buffer.from(`${(i * 7919) % 400}`.padStart(20, '0'));
        if (round > 0 && i % 3 === 0) remove('records', key);
        else put('records', key, Buffer.alloc((i * 37) % 300, round));
      }
      put('rows', Buffer.from(`big${round}`), Buffer.alloc(50_000, round));
    });
  }
  await tables.close();
  whole = readFileSync(path);
});

function storeOf(bytes: Buffer): string {
  const path = join(scratch.directory(), 'store-000001.mdb');
  writeFileSync(path, bytes);
  return path;
}

/** Touches everything that is in a store. */
async function readAll(path: string): Promise<number> {
  const tables = new Tables(path);
  let bytes = 0;
  for (const name of ['records', 'rows'] as const) {
    for (const { value } of tables.range(name, {})) bytes += value.reduce((a, b) => a + b, 0);
  }
  await tables.close();
  return bytes;
}

describe('a store file', () => {
  test('that is whole is accepted, also after a thorough look', () => {
    checkStoreFile(storeOf(whole));
    checkStoreFile(storeOf(whole), { thorough: true });
  });

  test('that was cut short is refused unless nothing in use is missing', async () => {
    const expected = await readAll(storeOf(whole));
    const pageSize = 4096;
    const path = storeOf(whole);
    let refused = 0;
    for (let size = whole.length; size > 0; size -= pageSize) {
      const cut = join(scratch.directory(), 'store-000001.mdb');
      copyFileSync(path, cut);
      truncateSync(cut, size - (size % 3));
      try {
        checkStoreFile(cut);
      } catch (error) {
        expect((error as Error).message).toMatch(/^CORRUPT: .* (was cut short|ends after)/);
        expect(statSync(cut).size).toBe(size - (size % 3));
        refused++;
        continue;
      }
      expect(await readAll(cut)).toBe(expected);
    }
    expect(refused).toBeGreaterThan(whole.length / pageSize / 2);
  });

  test.each<[string, () => Buffer, string]>([
    ['is empty', () => Buffer.alloc(0), 'ends after 0 bytes'],
    ['is very short', () => whole.subarray(0, 100), 'ends after 100 bytes'],
    ['has one page', () => whole.subarray(0, 4096), 'ends after 4096 bytes'],
    ['is all zeros', () => Buffer.alloc(100_000), 'does not begin as one'],
    ['is text', () => Buffer.alloc(100_000, 'hello '), 'does not begin as one'],
    [
      'has a spoiled second page',
      () => Buffer.concat([whole.subarray(0, 4096), Buffer.alloc(4096, 7), whole.subarray(8192)]),
      'does not begin as one',
    ],
  ])('that %s is refused', (_what, bytes, why) => {
    expect(() => checkStoreFile(storeOf(bytes()))).toThrow(why);
  });

  test('that names a page beyond its end is not said to be cut short', () => {
    const bytes = Buffer.from(whole);
    // The roots of both meta pages: where each table begins.
    for (const meta of [0, 4096]) bytes.writeBigUInt64LE(1n << 40n, meta + 24 + 24 + 2 * 48 - 8);
    const check = () => checkStoreFile(storeOf(bytes), { thorough: true });
    expect(check).toThrow('refers to a page that it cannot have');
  });

  test('with invalid bytes in the middle is reported by a full check, which never hangs', () => {
    const random = seededRandom(7);
    let reported = 0;
    for (let i = 0; i < 200; i++) {
      const bytes = Buffer.from(whole);
      const page = random.integer(2, bytes.length / 4096 - 1) * 4096;
      bytes.set(random.bytes(random.integer(24, 4096)), page);
      try {
        checkStoreFile(storeOf(bytes), { thorough: true });
      } catch (error) {
        expect((error as Error).message).toMatch(/^CORRUPT: /);
        reported++;
      }
    }
    // The rest fell on pages that are free or that hold nothing but a long value.
    expect(reported).toBeGreaterThan(20);
  });
});
