import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom } from '@millrace/kit/random';
import { describe, expect, test, vi } from 'vitest';
import { campaignSize } from '../../../../../test/support/campaign.js';
import { problemsOf } from '../../../test/consistency.test-support.js';
import type { EmbeddedCollection as Collection } from '../../api/embedded-collection.js';
import type { Database } from '../../api/database.js';
import { refusalOf, useScratch } from '../../../test/scratch.test-support.js';
import { Tables } from '../../storage/file/tables.js';
import type { CompactProgress, CompactStage } from './compact.js';

interface Item {
  n: number;
  text?: string;
  group?: string;
}

const scratch = useScratch();
const collections = {
  items: {
    indexes: [{ fields: ['n'] }, { fields: ['group'] }, { fields: ['text'], unique: true }],
  },
};

async function openItems(count: number) {
  const db = await scratch.open({ collections });
  const items = db.collection<Item>('items');
  await fill(db, count);
  await db.indexesBuilt();
  return { db, items };
}

async function fill(db: Database, count: number): Promise<void> {
  const items = db.collection<Item>('items');
  const insert = (n: number) =>
    items.insertWithKey(`k${n}`, { n, group: `g${n % 7}`, text: `${n} ${'x'.repeat(200)}` });
  await Promise.all(Array.from({ length: count }, (_, n) => insert(n)));
}

/** Leaves every tenth. */
async function thinOut(items: Collection<Item>, count: number): Promise<void> {
  const keys = Array.from({ length: count }, (_, n) => `k${n}`).filter((_, n) => n % 10);
  await Promise.all(keys.map((key) => items.deleteByKey(key)));
}

/** Everything that the database says of its records, by key. */
async function contentOf(db: Database): Promise<Map<string, unknown>> {
  const content = new Map<string, unknown>();
  for await (const record of db.collection<Item>('items').stream()) content.set(record.key, record);
  return content;
}

function stores(db: Database): string[] {
  return readdirSync(db.directory).filter((name) => name.endsWith('.mdb'));
}

describe('compact', () => {
  test('makes the file smaller, keeps everything, and says what it did', async () => {
    const { db, items } = await openItems(3_000);
    await thinOut(items, 3_000);
    const before = await contentOf(db);
    const { seq, chain } = db.core.durable;
    const result = await db.compact({ trimBeforeSeq: seq + 1 });
    expect(result.bytesBefore).toBeGreaterThan(3 * result.bytesAfter);
    expect(result.oldestSeq).toBe(seq + 1);
    expect(result.elapsedMs).toBeGreaterThanOrEqual(0);
    expect(result.bytesAfter).toBe(statSync(db.core.tables.path).size);
    expect(await contentOf(db)).toEqual(before);
    expect(db.core.durable).toMatchObject({ seq, chain });
    expect(problemsOf(db.core)).toEqual([]);
    expect(await items.find({ filter: { field: 'group', op: 'eq', value: 'g0' } })).toMatchObject({
      records: expect.any(Array),
    });
  });

  test('reports how far it is while it runs', async () => {
    const { db } = await openItems(300);
    const seen: CompactProgress[] = [];
    const onStage = () => {
      const { compaction } = db;
      if (compaction) seen.push(compaction);
    };
    await db.compact({ onStage });
    expect(seen[0]).toMatchObject({ stage: 'copy', rows: 0, elapsedMs: expect.any(Number) });
    expect(seen.at(-1)).toMatchObject({ stage: 'point' });
    const { rows, totalRows } = seen.at(-1)!;
    expect(totalRows).toBeGreaterThan(600);
    expect(rows).toBe(totalRows);
    expect(db.compaction).toBeUndefined();
  });

  test('goes on with the next store alone, also after the database is opened again', async () => {
    const { db } = await openItems(50);
    expect(stores(db)).toEqual(['store-000001.mdb']);
    await db.compact();
    await db.core.files.settled();
    expect(stores(db)).toEqual(['store-000002.mdb']);
    expect(readFileSync(join(db.directory, 'CURRENT'), 'utf8')).toBe('store-000002.mdb\n');
    await db.collection<Item>('items').insertWithKey('after', { n: -1 });
    const before = await contentOf(db);
    const again = await scratch.reopen(db, { collections });
    expect(await contentOf(again)).toEqual(before);
    expect(again.indexes().map(({ state }) => state)).toEqual(['ready', 'ready', 'ready']);
    expect((await again.verify()).problems).toEqual([]);
    await again.compact();
    await again.core.files.settled();
    expect(stores(again)).toEqual(['store-000003.mdb']);
  });

  test('keeps the log within its limits, and trims it further when asked', async () => {
    const { db, items } = await openItems(20);
    expect((await db.compact()).oldestSeq).toBe(1);
    expect((await db.compact({ trimBeforeSeq: 11 })).oldestSeq).toBe(11);
    scratch.clock.skip(25 * 3_600_000);
    await items.insertWithKey('young', { n: -1 });
    expect((await db.compact()).oldestSeq).toBe(21);
    expect(problemsOf(db.core)).toEqual([]);
  });

  test.each([true, false])('counts rows that are not folded yet (dry run: %s)', async (dryRun) => {
    const { db } = await openItems(500);
    const { bytesBefore, bytesAfter } = await db.compact({ dryRun });
    expect(bytesAfter).toBeLessThanOrEqual(bytesBefore);
  });

  test('of an empty database is nothing special', async () => {
    const db = await scratch.open();
    const { oldestSeq } = await db.compact();
    expect(oldestSeq).toBe(1);
    await db.collection('items').insert({});
    expect(problemsOf(db.core)).toEqual([]);
  });

  test('a dry run changes nothing and tells about what would come of it', async () => {
    const { db, items } = await openItems(3_000);
    await thinOut(items, 3_000);
    const { seq } = db.core.durable;
    const { path } = db.core.tables;
    const estimate = await db.compact({ dryRun: true, trimBeforeSeq: seq + 1 });
    expect(db.core.tables.path).toBe(path);
    expect(db.core.durable.oldestSeq).toBe(1);
    expect(estimate.oldestSeq).toBe(seq + 1);
    const done = await db.compact({ trimBeforeSeq: seq + 1 });
    expect(estimate.bytesBefore).toBe(done.bytesBefore);
    expect(estimate.bytesAfter).toBeLessThan(estimate.bytesBefore);
    expect(estimate.bytesAfter / done.bytesAfter).toBeGreaterThan(0.5);
    expect(estimate.bytesAfter / done.bytesAfter).toBeLessThan(2.5);
  });

  test('twice at once is refused', async () => {
    const { db } = await openItems(50);
    const first = db.compact();
    expect((await refusalOf(db.compact())).code).toBe('ALREADY_RUNNING');
    await first;
    await db.compact();
  });

  test.each([-1, 1.5, Number.NaN])('trim_before_seq %s is refused', async (trimBeforeSeq) => {
    const { db } = await openItems(0);
    expect((await refusalOf(db.compact({ trimBeforeSeq }))).code).toBe('BAD_REQUEST');
  });

  test('leaves open snapshots, transactions and watches as they were', async () => {
    const { db, items } = await openItems(100);
    const view = db.core.snapshot();
    const tx = db.transactions.begin();
    const watch = items.watch({ startSeq: 1 });
    await watch.next();
    await items.updateByKey('k1', { n: 1_000 });
    await db.compact();
    await items.updateByKey('k2', { n: 2_000 });
    const collection = db.core.catalog.find('items')!;
    const old = view.idOfKey(collection.id, 'k1');
    expect(view.record(collection.id, old!)?.data['n']).toBe(1);
    expect(view.seq).toBe(100);
    expect((await items.findByKey('k2'))?.data.n).toBe(2_000);
    expect((await items.findByKey('k4', { transaction: tx }))?.data.n).toBe(4);
    expect(stores(db)).toHaveLength(2);
    view.done();
    await items.updateByKey('k3', { n: 3_000 }, { transaction: tx });
    await db.transactions.commit(tx.id);
    await db.core.files.settled();
    expect(stores(db)).toEqual(['store-000002.mdb']);
    for (let seq = 2; seq <= 103; seq++) expect((await watch.next()).value?.seq).toBe(seq);
    await watch.return?.();
  });

  test('a transaction that read before it still finds its conflicts after it', async () => {
    const { db, items } = await openItems(10);
    const tx = db.transactions.begin();
    const read = await items.findByKey('k1', { transaction: tx });
    await db.compact();
    await items.updateByKey('k1', { n: 7 });
    await items.updateByKey('k2', { n: read!.data.n }, { transaction: tx });
    expect((await refusalOf(db.transactions.commit(tx.id))).code).toBe('TX_CONFLICT');
  });

  test('the database can be closed while an old snapshot is open', async () => {
    const { db } = await openItems(50);
    db.core.snapshot();
    await db.compact();
    await db.close();
    expect(stores(db)).toEqual(['store-000002.mdb']);
  });

  test('closing the database gives the compaction up and keeps the file', async () => {
    const { db } = await openItems(500);
    const before = await contentOf(db);
    let closing: Promise<void> | undefined;
    const compacting = db.compact({
      onStage: (stage) => {
        if (stage === 'copy') closing ??= db.close();
      },
    });
    expect((await refusalOf(compacting)).code).toBe('SHUTTING_DOWN');
    await closing;
    expect(stores(db)).toEqual(['store-000001.mdb']);
    const again = await scratch.open({ collections }, db.directory);
    expect(await contentOf(again)).toEqual(before);
  });
});

/** Writers and readers that run until they are stopped, and the responses they got. */
function busy(db: Database, seed: number) {
  const items = db.collection<Item>('items');
  const random = seededRandom(seed);
  const acked = new Map<string, number | undefined>();
  let going = true;
  const read = async () => {
    const filter = { field: 'n', op: 'gte' as const, value: 0 };
    const { records } = await items.find({ filter, limit: 50 });
    for (const { key, id } of records.slice(0, 5)) {
      const one = await items.findById(id);
      if (one) expect(one.key).toBe(key);
    }
  };
  const write = async (writer: number) => {
    for (let i = 0; going; i++) {
      const key = `w${writer}-${random.integer(0, 60)}`;
      if (random.next() < 0.3) {
        await items.deleteByKey(key).catch(() => undefined);
        acked.set(key, undefined);
      } else {
        await items.upsert(key, { n: i, group: `g${i % 5}`, text: `${key} ${i}` });
        acked.set(key, i);
      }
      // Readers that never wait for a write would take most of the CPU time.
      if (i % 3 === 0) await read();
    }
  };
  const all = Promise.all([0, 1, 2, 3, 4, 5].map(write));
  return {
    async stop() {
      going = false;
      await all;
      return acked;
    },
  };
}

async function expectAll(db: Database, acked: Map<string, number | undefined>): Promise<void> {
  const items = db.collection<Item>('items');
  for (const [key, n] of acked) expect((await items.findByKey(key))?.data.n).toBe(n);
}

test('under concurrent writers and readers it loses nothing, again and again', async () => {
  const count = campaignSize({ quick: 400, full: 2_000 });
  const { db, items } = await openItems(count);
  const watch = items.watch();
  const work = busy(db, 1);
  for (let round = 0; round < campaignSize({ quick: 3, full: 4 }); round++) {
    const held = db.core.snapshot();
    const { seq } = held;
    const sample = [...held.scan(1, {}, () => true)].map(({ id, rev }) => `${id} ${rev}`);
    await db.compact({ trimBeforeSeq: round === 2 ? count / 2 : 0 });
    expect(held.seq).toBe(seq);
    expect([...held.scan(1, {}, () => true)].map(({ id, rev }) => `${id} ${rev}`)).toEqual(sample);
    held.done();
  }
  const acked = await work.stop();
  await expectAll(db, acked);
  expect(problemsOf(db.core)).toEqual([]);
  expect((await db.verify()).problems).toEqual([]);
  for (let seq = count + 1; seq <= db.core.durable.seq; seq++) {
    expect((await watch.next()).value?.seq).toBe(seq);
  }
  await watch.return?.();
  const again = await scratch.reopen(db, { collections });
  await expectAll(again, acked);
  expect(problemsOf(again.core)).toEqual([]);
});

describe('a compaction that fails', () => {
  const stages: CompactStage[] = ['trim', 'copy', 'compare', 'hold', 'point'];

  test.each(stages)('at the stage "%s" leaves the database working', async (failing) => {
    const { db } = await openItems(400);
    const work = busy(db, 2);
    let seen = 0;
    const compacting = db.compact({
      onStage: (stage) => {
        // Not at the first sight of those that take long, so that the work is well under way.
        const patience = stage === 'copy' || stage === 'compare' ? 2 : 1;
        if (stage === failing && ++seen === patience) throw new Error('a fault');
      },
    });
    await expect(compacting).rejects.toThrow('a fault');
    expect(stores(db)).toEqual(['store-000001.mdb']);
    await db.collection<Item>('items').insertWithKey('after', { n: -1 });
    const acked = await work.stop();
    await expectAll(db, acked);
    expect(problemsOf(db.core)).toEqual([]);
    expect(db.core.writer.touched).toBeUndefined();
    await db.compact();
    await expectAll(db, acked);
    const again = await scratch.reopen(db, { collections });
    await expectAll(again, acked);
    expect((await again.collection<Item>('items').findByKey('after'))?.data.n).toBe(-1);
  });

  test('for want of room is given up with a clear word, and the new file is gone', async () => {
    const { db, items } = await openItems(500);
    const real = Tables.prototype.commit;
    let commits = 0;
    const spy = vi.spyOn(Tables.prototype, 'commit').mockImplementation(function (
      this: Tables,
      run,
    ) {
      if (this.path.endsWith('store-000002.mdb') && ++commits === 3) {
        return Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' }));
      }
      return real.call(this, run);
    });
    try {
      const refusal = await refusalOf(db.compact());
      expect(refusal.code).toBe('DISK_FULL');
      expect(refusal.detail).toContain('goes on as it was');
    } finally {
      spy.mockRestore();
    }
    expect(stores(db)).toEqual(['store-000001.mdb']);
    await items.insertWithKey('after', { n: -1 });
    expect(problemsOf(db.core)).toEqual([]);
  });

  test.each(['a row more', 'a row less', 'another value'])(
    'because the copy has %s does not take the place of the file',
    async (fault) => {
      const { db } = await openItems(500);
      const before = await contentOf(db);
      let done = false;
      const compacting = db.compact({
        onStage: async (stage) => {
          if (stage !== 'compare' || done) return;
          done = true;
          await damageCopy(db, fault);
        },
      });
      await expect(compacting).rejects.toThrow('not the same');
      expect(stores(db)).toEqual(['store-000001.mdb']);
      expect(await contentOf(db)).toEqual(before);
    },
  );

  test('because the copy lost a row at the last moment does not take the place of the file', async () => {
    const { db } = await openItems(500);
    const compacting = db.compact({
      onStage: async (stage) => {
        if (stage === 'hold') await damageCopy(db, 'a row less');
      },
    });
    await expect(compacting).rejects.toThrow('not the same');
    expect(existsSync(join(db.directory, 'store-000002.mdb'))).toBe(false);
  });
});

/** Reaches into the copy as a fault of the disk would. */
async function damageCopy(db: Database, fault: string): Promise<void> {
  const copy = copies.get(join(db.directory, 'store-000002.mdb'))!;
  copy.refresh();
  const [row] = copy.range('records', { limit: 1 });
  await copy.commit((put, remove) => {
    if (fault === 'a row less') remove('records', row!.key);
    else if (fault === 'a row more') put('records', Buffer.alloc(20, 9), row!.value);
    else put('records', row!.key, Buffer.concat([row!.value, Buffer.of(0)]));
  });
}

/** Every file that was written to, by its path. */
const copies = new Map<string, Tables>();
const commit = Tables.prototype.commit;
Tables.prototype.commit = function (this: Tables, run) {
  copies.set(this.path, this);
  return commit.call(this, run);
};
