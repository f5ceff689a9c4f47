import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { lineageOf } from '../../storage/file/tables.js';
import { refusalOf, useScratch } from '../../../test/scratch.test-support.js';
import { recordKey } from '../../format/keys.js';
import type { BackupOptions } from './backup.js';
import { fileBytes } from './file.js';
import type { BackupPart } from './frames.js';
import { fillWithVariety } from './backup.test-support.js';

const scratch = useScratch();

async function partsOf(parts: AsyncIterable<BackupPart>): Promise<BackupPart[]> {
  const all: BackupPart[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

function dataOf(parts: readonly BackupPart[]): Buffer {
  return Buffer.concat(parts.map((part) => (part.kind === 'data' ? part.bytes : Buffer.alloc(0))));
}

async function linesOf(parts: AsyncIterable<BackupPart>): Promise<Record<string, unknown>[]> {
  const text = dataOf(await partsOf(parts)).toString();
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('a backup', () => {
  test('is a header, data in chunks of at most 256 KiB, and a trailer that accounts for it', async () => {
    const db = await scratch.open();
    await fillWithVariety(db, 3_000);
    const parts = await partsOf(db.backup());
    expect(parts.at(0)).toEqual({
      kind: 'header',
      header: {
        formatVersion: 1,
        seq: db.core.durable.seq,
        epoch: 1,
        lineageId: lineageOf(db.core.tables),
        createdAt: new Date(scratch.clock.now()),
        format: 'snapshot',
        sinceSeq: 0,
        chainHash: db.core.durable.chain,
      },
    });
    const data = parts.slice(1, -1);
    expect(data.length).toBeGreaterThan(2);
    expect(data.every((part) => part.kind === 'data' && part.bytes.length <= 256 * 1024)).toBe(
      true,
    );
    const bytes = dataOf(parts);
    const { records } = await db.verify();
    expect(parts.at(-1)).toEqual({
      kind: 'trailer',
      trailer: {
        bytes: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
        records,
      },
    });
  });

  test('is of one commit, whatever is written meanwhile', async () => {
    const db = await scratch.open();
    const items = db.collection<{ n: number; text: string }>('items');
    const text = 'x'.repeat(5_000);
    await Promise.all(
      Array.from({ length: 300 }, (_, n) => items.insertWithKey(`k${n}`, { n, text })),
    );
    const parts = db.backup({ format: 'ndjson' });
    const header = (await parts.next()).value;
    expect(header).toMatchObject({ header: { seq: 300 } });
    let text0 = '';
    for await (const part of parts) {
      await items.upsert(`k${299}`, { n: -1, text });
      await items.insert({ n: -2, text });
      if (part.kind === 'data') text0 += part.bytes.toString();
    }
    const seen = text0
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { data: { n: number } }).data.n);
    expect(seen).toEqual(Array.from({ length: 300 }, (_, n) => n));
    expect(db.core.snapshots.size).toBe(0);
  });

  test('speaks only of what is on disk', async () => {
    const db = await scratch.open();
    const items = db.collection('items');
    for (let i = 0; i < 10; i++) {
      const writing = Promise.all(Array.from({ length: 50 }, () => items.insert({ i })));
      await new Promise((resolve) => setImmediate(resolve));
      const [first] = await partsOf(db.backup());
      if (first?.kind === 'header')
        expect(first.header.seq).toBeLessThanOrEqual(db.core.durable.seq);
      await writing;
    }
  });

  test('can be limited to some collections, known or not', async () => {
    const db = await scratch.open();
    for (const name of ['one', 'two', 'three']) await db.collection(name).insertWithKey(name, {});
    const options: BackupOptions = { format: 'ndjson', collections: ['one', 'three', 'none'] };
    const lines = await linesOf(db.backup(options));
    expect(lines.map((line) => line['key'])).toEqual(['one', 'three']);
    expect((await linesOf(db.backup({ format: 'ndjson', collections: [] }))).length).toBe(3);
    const refusal = await refusalOf(partsOf(db.backup({ collections: ['9'] })));
    expect(refusal.code).toBe('BAD_COLLECTION');
  });

  test('of an empty database is whole, too', async () => {
    const db = await scratch.open();
    const parts = await partsOf(db.backup());
    expect(parts.map(({ kind }) => kind)).toEqual(['header', 'data', 'trailer']);
    expect(await linesOf(db.backup({ format: 'ndjson' }))).toEqual([]);
  });

  test('gives its snapshot back when its reader goes away, and ends with the database', async () => {
    const db = await scratch.open();
    await fillWithVariety(db, 2_000);
    const left = db.backup();
    await left.next();
    await left.next();
    expect(db.core.snapshots.size).toBe(1);
    await left.return();
    expect(db.core.snapshots.size).toBe(0);
    const running = db.backup();
    await running.next();
    await running.next();
    await db.close();
    await expect(partsOf(running)).rejects.toThrow('SHUTTING_DOWN');
  });

  test('can be stopped by its signal', async () => {
    const db = await scratch.open();
    await fillWithVariety(db, 2_000);
    const controller = new AbortController();
    const parts = db.backup({ signal: controller.signal });
    await parts.next();
    controller.abort(new Error('enough'));
    await expect(partsOf(parts)).rejects.toThrow('enough');
    expect(db.core.snapshots.size).toBe(0);
  });

  test('refuses to save a record that is damaged', async () => {
    const db = await scratch.open();
    const { id } = await db.collection('items').insert({ name: 'Ada' });
    await db.core.store.fold();
    const row = db.core.tables.get('records', recordKey(1, id))!;
    row[row.length - 1]! ^= 1;
    await db.core.tables.commit((put) => put('records', recordKey(1, id), row));
    db.core.tables.refresh();
    for (const format of ['snapshot', 'ndjson'] as const) {
      const refusal = await refusalOf(partsOf(db.backup({ format })));
      expect(refusal.code).toBe('CORRUPT');
      expect(refusal.detail).toContain(id);
    }
  });
});

describe('as NDJSON', () => {
  test('each line is a record as the REST bridge shows it, with its collection', async () => {
    const db = await scratch.open();
    const people = db.collection('people');
    const ada = await people.insertWithKey('ada "the" first', {
      name: 'Ada\n',
      n: [1, { a: null }],
    });
    const bob = await people.insert({ name: 'Bob' }, { ttlMs: 60_000 });
    const time = new Date(scratch.clock.now()).toISOString();
    expect(await linesOf(db.backup({ format: 'ndjson' }))).toEqual([
      {
        collection: 'people',
        id: ada.id,
        key: 'ada "the" first',
        rev: 1,
        seq: 1,
        created_at: time,
        updated_at: time,
        data: { name: 'Ada\n', n: [1, { a: null }] },
      },
      {
        collection: 'people',
        id: bob.id,
        key: '',
        rev: 1,
        seq: 2,
        created_at: time,
        updated_at: time,
        expires_at: new Date(scratch.clock.now() + 60_000).toISOString(),
        data: { name: 'Bob' },
      },
    ]);
  });

  test('an increment has a line for each change', async () => {
    const db = await scratch.open();
    const people = db.collection('people');
    await people.insertWithKey('a', {});
    await people.updateByKey('a', { n: 1 });
    const { id } = await people.deleteByKey('a');
    const committed_at = new Date(scratch.clock.now()).toISOString();
    const lines = await linesOf(db.backup({ format: 'ndjson', sinceSeq: 1 }));
    expect(lines).toMatchObject([
      { op: 'update', collection: 'people', committed_at, record: { id, rev: 2, data: { n: 1 } } },
      {
        op: 'delete',
        collection: 'people',
        committed_at,
        record: { id, key: 'a', rev: 2, seq: 3 },
      },
    ]);
    expect(lines[1]?.['record']).not.toHaveProperty('data');
  });

  test('a file is nothing but the lines', async () => {
    const db = await scratch.open();
    await db.collection('people').insertWithKey('a', { n: 1 });
    const file = join(scratch.directory(), 'people.ndjson');
    await db.writeBackup(file, { format: 'ndjson' });
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ key: 'a', data: { n: 1 } });
  });
});

describe('an increment', () => {
  test('on the present commit is empty, on a later one refused', async () => {
    const db = await scratch.open();
    await db.collection('items').insert({});
    const parts = await partsOf(db.backup({ sinceSeq: 1 }));
    expect(parts.at(0)).toMatchObject({ header: { seq: 1, sinceSeq: 1 } });
    expect(parts.at(-1)).toMatchObject({ trailer: { records: 0 } });
    for (const sinceSeq of [2, -1, 0.5, Number.NaN]) {
      expect((await refusalOf(partsOf(db.backup({ sinceSeq })))).code).toBe('BAD_REQUEST');
    }
  });

  test('on a commit that the log no longer reaches is refused with the oldest one', async () => {
    const db = await scratch.open();
    for (let i = 0; i < 5; i++) await db.collection('items').insert({ i });
    await db.trimLog(4);
    const refusal = await refusalOf(partsOf(db.backup({ sinceSeq: 2 })));
    expect(refusal.code).toBe('WATCH_COMPACTED');
    expect(refusal.extra.members).toEqual({ metadata: { oldest_seq: '4' } });
    const parts = await partsOf(db.backup({ sinceSeq: 3 }));
    expect(parts.at(-1)).toMatchObject({ trailer: { records: 2 } });
  });
});

describe('a backup file', () => {
  test('is there when it is whole, and says what it holds', async () => {
    const db = await scratch.open();
    await fillWithVariety(db, 500);
    const directory = scratch.directory();
    const file = join(directory, 'db.backup');
    const seen: number[] = [];
    const { header, trailer } = await db.writeBackup(file, {
      onProgress: ({ records }) => {
        seen.push(records);
        expect(existsSync(file)).toBe(false);
      },
    });
    expect(header.seq).toBe(db.core.durable.seq);
    expect(seen.at(-1)).toBe(trailer.records);
    expect(readdirSync(directory)).toEqual(['db.backup']);
    const pieces: Buffer[] = [];
    for await (const piece of fileBytes(db.backup())) pieces.push(piece);
    expect(Buffer.concat(pieces).equals(readFileSync(file))).toBe(true);
  });

  test('takes the place of an older one only when it is whole', async () => {
    const db = await scratch.open();
    await fillWithVariety(db, 500);
    const directory = scratch.directory();
    const file = join(directory, 'db.backup');
    writeFileSync(file, 'the old one');
    const failing = db.writeBackup(file, {
      onProgress: () => {
        throw new Error('a fault');
      },
    });
    await expect(failing).rejects.toThrow('a fault');
    expect(readFileSync(file, 'utf8')).toBe('the old one');
    expect(readdirSync(directory)).toEqual(['db.backup']);
    await db.writeBackup(file);
    expect(readFileSync(file).length).toBeGreaterThan(1_000);
  });

  test('is not written where it cannot be', async () => {
    const db = await scratch.open();
    const directory = scratch.directory();
    await expect(db.writeBackup(join(directory, 'no', 'where'))).rejects.toThrow('Create it first');
    mkdirSync(join(directory, 'taken'));
    await expect(db.writeBackup(join(directory, 'taken'))).rejects.toThrow('not a file');
    const full = vi.fn(() => {
      throw Object.assign(new Error('write'), { code: 'ENOSPC' });
    });
    const refusal = await refusalOf(db.writeBackup(join(directory, 'x'), { onProgress: full }));
    expect(refusal.code).toBe('DISK_FULL');
    expect(readdirSync(directory)).toEqual(['taken']);
  });
});
