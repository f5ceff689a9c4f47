import { seededRandom, type Random } from '@millrace/kit/random';
import { describe, expect, test } from 'vitest';
import { refusalOf, useScratch } from '../../test/scratch.test-support.js';
import type { Database } from '../api/database.js';
import { VectorKernel } from './vector-kernel.js';

const scratch = useScratch();
const dims = 12;
const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 1_000_000);

interface Doc {
  v?: number[] | null;
  n: number;
}

function gaussian(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

const vectorOf = (random: Random) => Array.from({ length: dims }, () => gaussian(random));

type Metric = 'cosine' | 'dot' | 'l2';

function exact(
  docs: Iterable<[string, Doc]>,
  wanted: number[],
  metric: Metric,
  k: number,
): string[] {
  const dot = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
  const score = (v: number[]) => {
    if (metric === 'dot') return dot(v, wanted);
    if (metric === 'l2') return -Math.hypot(...v.map((x, i) => x - wanted[i]!));
    return dot(v, wanted) / Math.sqrt(dot(v, v));
  };
  const scored = [...docs]
    .filter(([, { v }]) => v)
    .map(([key, { v }]) => [key, score(v!)] as const);
  return scored
    .sort((a, b) => b[1] - a[1])
    .slice(0, k)
    .map(([key]) => key);
}

const open = (metric: Metric, storage?: 'int8') =>
  scratch.open({ collections: { docs: { indexes: [{ vector: 'v', dims, metric, storage }] } } });

async function fill(db: Database, model: Map<string, Doc>, count: number, random: Random) {
  const docs = db.collection<Doc>('docs');
  for (let done = model.size; done < count; done += 1_000) {
    const batch = Array.from({ length: Math.min(1_000, count - done) }, (_, i) => {
      const doc = { v: vectorOf(random), n: done + i };
      model.set(`k${doc.n}`, doc);
      return { upsert: { key: `k${doc.n}`, data: doc } };
    });
    await docs.bulkWrite(batch);
  }
  await db.indexesBuilt();
}

async function recall(db: Database, model: Map<string, Doc>, metric: Metric, random: Random) {
  let found = 0;
  const rounds = 5;
  for (let i = 0; i < rounds; i++) {
    const vector = vectorOf(random);
    const near = { field: 'v' as const, vector, k: 10 };
    const { records } = await db.collection<Doc>('docs').find({ near });
    const wanted = exact(model, vector, metric, 10);
    found += records.filter(({ key }) => wanted.includes(key)).length / 10;
  }
  return found / rounds;
}

const planOf = async (db: Database) => {
  const near = { field: 'v' as const, vector: Array<number>(dims).fill(1), k: 3 };
  return (await db.collection<Doc>('docs').find({ near, explain: true })).plan!;
};

for (const metric of ['cosine', 'dot', 'l2'] as const) {
  const tags = metric === 'cosine' ? {} : { tags: 'campaign-cases' };
  describe(`vectors by ${metric} (seed ${seed})`, tags, () => testMetric(metric));
}

function testMetric(metric: Metric): void {
  test('above 10,000 they are approximate, and follow changes, filters and transactions', async () => {
    const random = seededRandom(seed);
    const model = new Map<string, Doc>();
    const db = await open(metric, metric === 'dot' ? 'int8' : undefined);
    const docs = db.collection<Doc>('docs');
    await fill(db, model, 9_000, random);
    expect((await planOf(db)).note).toBe('Exact nearest neighbours: recall 1.');
    expect(await recall(db, model, metric, random)).toBe(1);
    await fill(db, model, 10_500, random);
    expect((await planOf(db)).note).toMatch(/^Approximate .* recall 0\.99 or more\.$/);
    expect(await recall(db, model, metric, random)).toBeGreaterThanOrEqual(0.97);
    // Changed, removed and new vectors are found at once.
    const wanted = Array.from({ length: dims }, () => 3);
    const near = { field: 'v' as const, vector: wanted, k: 2 };
    await docs.update({ key: 'k7' }, { n: 7, v: wanted.map((x) => x * 1.01) });
    await docs.insertWithKey('new', { n: -1, v: wanted });
    const keys = async () => (await docs.find({ near })).records.map(({ key }) => key).sort();
    expect(await keys()).toEqual(['k7', 'new']);
    await db
      .transaction(async (tx) => {
        const inside = tx.collection<Doc>('docs');
        await inside.deleteByKey('new');
        await inside.insertWithKey('own', { n: -2, v: wanted });
        const { records } = await inside.find({ near });
        expect(records.map(({ key }) => key).sort()).toEqual(['k7', 'own']);
        throw new Error('rolled back');
      })
      .catch(() => undefined);
    await docs.update({ key: 'k7' }, { n: 7, v: null });
    await docs.deleteByKey('new');
    model.delete('k7');
    const far = [...model].filter(([, { n }]) => n % 1_000 === 5);
    const filtered = await docs.find({
      near: { ...near, k: 5 },
      filter: { n: { in: far.map(([, { n }]) => n) } },
    });
    expect(filtered.records.map(({ key }) => key)).toEqual(exact(far, wanted, metric, 5));
    expect(await recall(db, model, metric, random)).toBeGreaterThanOrEqual(0.97);
    expect((await db.verify()).problems).toEqual([]);
  });
}

test('vectors: a copy, a compacted file and one of rounded numbers have the same hits', async () => {
  const random = seededRandom(seed);
  const model = new Map<string, Doc>();
  const db = await open('cosine', 'int8');
  await fill(db, model, 500, random);
  const near = { field: 'v' as const, vector: vectorOf(random), k: 7 };
  const hits = async (of: Database) =>
    (await of.collection<Doc>('docs').find({ near })).records.map(({ key, score }) => [key, score]);
  const before = await hits(db);
  expect(before.map(([key]) => key)).toEqual(exact(model, near.vector, 'cosine', 7));
  await db.compact();
  expect(await hits(db)).toEqual(before);
  const again = await scratch.reopen(db, {
    collections: { docs: { indexes: [{ vector: 'v', dims, storage: 'int8' }] } },
  });
  expect(await hits(again)).toEqual(before);
  expect((await again.verify()).problems).toEqual([]);
  const wrong = { vector: 'v', dims, storage: 'int4' as never };
  expect((await refusalOf(again.catalog.createIndex('docs', wrong))).message).toContain('storage');
});

test('the kernel multiplies like a loop, at the ends of the range of codes', () => {
  const random = seededRandom(seed);
  for (const width of [1, 16, 17, 384]) {
    const kernel = new VectorKernel(width);
    const code = () =>
      random.next() < 0.2 ? 127 : random.next() < 0.2 ? -127 : random.integer(-127, 127);
    const vectors = Array.from({ length: 50 }, () => Array.from({ length: width }, code));
    const query = Array.from({ length: width }, code);
    vectors.forEach((vector, slot) => kernel.at(slot).set(vector));
    kernel.query.set(query);
    const products = vectors.map((vector) => vector.reduce((sum, x, i) => sum + x * query[i]!, 0));
    expect([...kernel.products(3, 40)]).toEqual(products.slice(3, 43));
  }
});
