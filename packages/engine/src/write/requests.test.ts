import { describe, expect, test } from 'vitest';
import { problemsOf } from '../../test/consistency.test-support.js';
import { refusalOf, useScratch } from '../../test/scratch.test-support.js';
import { hashText } from '../value/bytes.js';
import type { BulkOperation, BulkOutcome } from './bulk-operations.js';

type Ok = Extract<BulkOutcome, { status: 'OK' }>;

const scratch = useScratch();
const tenMinutes = 10 * 60_000;
const requestId = 'r-1';

interface Note {
  text?: string | null;
}

async function openNotes() {
  const db = await scratch.open();
  return { db, notes: db.collection<Note>('notes') };
}

describe('a request id', () => {
  test('makes every kind of write happen once and answer the same', async () => {
    const { db, notes } = await openNotes();
    const { id } = await notes.insertWithKey('k', { text: 'a' });
    const writes = [
      (as: string) => notes.insert({ text: 'b' }, { requestId: as }),
      (as: string) => notes.insertWithKey('k2', { text: 'b' }, { requestId: as }),
      (as: string) => notes.update(id, { text: 'c' }, { requestId: as }),
      (as: string) => notes.merge(id, { text: 'd' }, { requestId: as }),
      (as: string) => notes.updateByKey('k', { text: 'e' }, { requestId: as }),
      (as: string) => notes.upsert('k', { text: 'f' }, { requestId: as }),
      (as: string) => notes.upsert('k3', { text: 'f' }, { requestId: as }),
      (as: string) => notes.upsertMerge('k', { text: 'g' }, { requestId: as }),
      (as: string) => notes.updateIfRev({ key: 'k3' }, 1, { text: 'h' }, { requestId: as }),
      (as: string) => notes.deleteByKey('k2', { requestId: as }),
      (as: string) => notes.delete(id, { requestId: as }),
    ];
    for (const [i, write] of writes.entries()) {
      const before = db.core.state.seq;
      const answers = [await write(`r${i}`), await write(`r${i}`), await write(`r${i}`)];
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[2]).toEqual(answers[0]);
      expect(db.core.state.seq).toBe(before + 1);
    }
    expect(problemsOf(db.core)).toEqual([]);
  });

  test.each<[string, BulkOperation]>([
    ['data', { upsert: { key: 'a', data: { text: 'b' } } }],
    ['a key', { upsert: { key: 'b', data: { text: 'a' } } }],
    ['a TTL', { upsert: { key: 'a', data: { text: 'a' }, ttlMs: 5_000 } }],
    ['a mode', { upsert: { key: 'a', data: { text: 'a' }, mode: 'merge' } }],
    ['an operation', { insert: { key: 'a', data: { text: 'a' } } }],
  ])('of a bulk is not for one with other %s', async (_what, other) => {
    const { db } = await openNotes();
    const list: BulkOperation[] = [{ upsert: { key: 'a', data: { text: 'a' } } }];
    const first = await db.bulk.write('notes', list, { requestId });
    const again = await db.bulk.write('notes', list, { requestId });
    expect(again[0]).toMatchObject({ status: 'OK', created: true, id: (first[0] as Ok).id });
    const reused = db.bulk.write('notes', [other], { requestId });
    expect((await refusalOf(reused)).code).toBe('REQUEST_ID_REUSED');
    expect(db.core.state.seq).toBe(1);
  });

  test('of a bulk that an earlier version answered is known', async () => {
    const { db } = await openNotes();
    const list: BulkOperation[] = [{ insert: { data: { text: 'a' } } }];
    const first = await db.bulk.write('notes', list, { requestId });
    const row = Buffer.from(`b:0:${requestId}`);
    const { high, low } = hashText(JSON.stringify(list));
    await db.core.writer.submit(() => {
      const value = Buffer.from(db.core.writer.get('requests', row)!);
      value.writeUInt32BE(high, 6);
      value.writeUInt32BE(low, 10);
      db.core.writer.put('requests', row, value);
    });
    const again = await db.bulk.write('notes', list, { requestId });
    expect(again[0]).toMatchObject({ id: (first[0] as Ok).id });
    const other: BulkOperation[] = [{ insert: { data: { text: 'b' } } }];
    const reused = db.bulk.write('notes', other, { requestId });
    expect((await refusalOf(reused)).code).toBe('REQUEST_ID_REUSED');
  });

  test('counts also for writes that run at the same time', async () => {
    const { db, notes } = await openNotes();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => notes.insert({ text: 'a' }, { requestId })),
    );
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(db.core.state.seq).toBe(1);
  });

  test('is remembered over a reopen', async () => {
    const { db, notes } = await openNotes();
    const first = await notes.insert({ text: 'a' }, { requestId });
    const again = await scratch.reopen(db);
    const second = await again.collection<Note>('notes').insert({ text: 'a' }, { requestId });
    expect(second).toEqual(first);
    expect(again.core.state.seq).toBe(1);
  });

  test('answers as then, whatever became of the record', async () => {
    const { notes } = await openNotes();
    const first = await notes.insert({ text: 'a' }, { requestId });
    await notes.update(first.id, { text: 'b' });
    await notes.delete(first.id);
    expect(await notes.insert({ text: 'a' }, { requestId })).toEqual(first);
  });

  test.each<[string, (notes: Awaited<ReturnType<typeof openNotes>>['notes']) => Promise<unknown>]>([
    ['another document', (notes) => notes.insert({ text: 'b' }, { requestId })],
    ['another ttl', (notes) => notes.insert({ text: 'a' }, { requestId, ttlMs: 5 })],
    ['another operation', (notes) => notes.upsert('k', { text: 'a' }, { requestId })],
    ['a key', (notes) => notes.insertWithKey('k', { text: 'a' }, { requestId })],
  ])('is refused for %s', async (_what, write) => {
    const { db, notes } = await openNotes();
    await notes.insert({ text: 'a' }, { requestId });
    expect((await refusalOf(write(notes))).code).toBe('REQUEST_ID_REUSED');
    expect(db.core.state.seq).toBe(1);
  });

  test('is refused for another collection', async () => {
    const { db, notes } = await openNotes();
    await notes.insert({ text: 'a' }, { requestId });
    const elsewhere = db.collection<Note>('others').insert({ text: 'a' }, { requestId });
    expect((await refusalOf(elsewhere)).code).toBe('REQUEST_ID_REUSED');
  });

  test('of a refused write is free for another try', async () => {
    const { notes } = await openNotes();
    await notes.insertWithKey('k', { text: 'a' });
    const taken = notes.insertWithKey('k', { text: 'b' }, { requestId });
    expect((await refusalOf(taken)).code).toBe('DUPLICATE_KEY');
    await notes.deleteByKey('k');
    await expect(notes.insertWithKey('k', { text: 'b' }, { requestId })).resolves.toBeDefined();
  });

  test('may be used again after ten minutes, not before', async () => {
    const { db, notes } = await openNotes();
    const first = await notes.insert({ text: 'a' }, { requestId });
    scratch.clock.skip(tenMinutes - 1);
    await db.sweepExpired();
    expect((await notes.insert({ text: 'a' }, { requestId })).id).toBe(first.id);
    scratch.clock.skip(1);
    expect((await notes.insert({ text: 'a' }, { requestId })).id).not.toBe(first.id);
  });

  test('that is used again is remembered for its own ten minutes', async () => {
    const { db, notes } = await openNotes();
    await notes.insert({ text: 'a' }, { requestId });
    scratch.clock.skip(tenMinutes);
    const second = await notes.insert({ text: 'b' }, { requestId });
    await db.sweepExpired();
    expect((await notes.insert({ text: 'b' }, { requestId })).id).toBe(second.id);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('leaves nothing behind in the end', async () => {
    const { db, notes } = await openNotes();
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => notes.insert({ text: 'a' }, { requestId: `r${i}` })),
    );
    scratch.clock.skip(tenMinutes);
    await db.sweepExpired();
    expect(db.core.store.count('requests')).toBe(0);
    expect(db.core.store.count('expiry')).toBe(0);
    expect(db.core.state.seq).toBe(50);
  });

  test('has at most 128 characters, and "" is none', async () => {
    const { db, notes } = await openNotes();
    await notes.insert({ text: 'a' }, { requestId: 'x'.repeat(128) });
    const long = notes.insert({ text: 'a' }, { requestId: 'x'.repeat(129) });
    expect((await refusalOf(long)).code).toBe('BAD_REQUEST');
    await notes.insert({ text: 'a' }, { requestId: '' });
    await notes.insert({ text: 'a' }, { requestId: '' });
    expect(db.core.state.seq).toBe(3);
  });

  test('makes a write inside a transaction happen once', async () => {
    const { db, notes } = await openNotes();
    const transaction = db.transactions.begin();
    const inside = { transaction, requestId };
    const first = await notes.insert({ text: 'a' }, inside);
    expect(await notes.insert({ text: 'a' }, inside)).toEqual(first);
    const reused = notes.insert({ text: 'b' }, inside);
    expect((await refusalOf(reused)).code).toBe('REQUEST_ID_REUSED');
    const { operations } = await db.transactions.commit(transaction.id);
    expect(operations).toBe(1);
  });
});
