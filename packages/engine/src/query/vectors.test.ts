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

function scoreOf(metric: Metric, v: number[], wanted: number[]): number {
  const dot = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
  if (metric === 'dot') return dot(v, wanted);
  if (metric === 'l2') return -Math.hypot(...v.map((x, i) => x - wanted[i]!));
  return dot(v, wanted) / Math.sqrt(dot(v, v));
}

function exact(
  docs: Iterable<[string, Doc]>,
  wanted: number[],
  metric: Metric,
  k: number,
): string[] {
  const scored = [...docs]
    .filter(([, { v }]) => v)
    .map(([key, { v }]) => [key, scoreOf(metric, v!, wanted)] as const);
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
  test('above 10,000 they are compared by codes, and follow changes, filters and transactions', async () => {
    const random = seededRandom(seed);
    const model = new Map<string, Doc>();
    const db = await open(metric, metric === 'dot' ? 'int8' : undefined);
    const docs = db.collection<Doc>('docs');
    await fill(db, model, 9_000, random);
    expect((await planOf(db)).note).toBe('Exact nearest neighbours: recall 1.');
    expect(await recall(db, model, metric, random)).toBe(1);
    await fill(db, model, 10_500, random);
    expect((await planOf(db)).note).toMatch(/^Exact .* by int8 codes .*: recall 1\.$/);
    expect(await recall(db, model, metric, random)).toBe(1);
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
    expect(await recall(db, model, metric, random)).toBe(1);
    expect((await db.verify()).problems).toEqual([]);
  });
}

/** Vectors whose differences are small beside their numbers, beside each other, or not at all. */
const shapes: Record<string, [metric: Metric, make: (random: Random) => number[]]> = {
  places: ['l2', (random) => [46.9 + 0.01 * random.next(), 7.4 + 0.01 * random.next(), 0]],
  far: ['l2', (random) => Array.from({ length: 16 }, () => 1_000 + random.next())],
  narrow: ['cosine', (random) => Array.from({ length: 16 }, () => 1_000 + 10 * random.next())],
  long: ['dot', (random) => Array.from({ length: 16 }, (_, i) => random.next() + (i ? 0 : 1e6))],
  clusters: [
    'cosine',
    (random) => {
      const cluster = random.integer(0, 9);
      return Array.from({ length: 8 }, (_, i) => Math.sin(i + 9 * cluster) + gaussian(random) / 99);
    },
  ],
  two: ['cosine', (random) => (random.next() < 0.9 ? [1, 2] : [gaussian(random), 1])],
};

for (const [storage, count] of [
  ['float32', 10_500],
  ['int8', 2_000],
] as const) {
  test(`hits are exact whatever the data: ${count} as ${storage} (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const makers = Object.entries(shapes);
    const indexes = makers.map(([vector, [metric, make]]) => {
      return { vector, metric, dims: make(random).length, storage };
    });
    const db = await scratch.open({ collections: { docs: { indexes } } });
    const docs = db.collection<Record<string, number[]>>('docs');
    const all = Array.from({ length: count }, () =>
      Object.fromEntries(makers.map(([name, [, make]]) => [name, make(random).map(Math.fround)])),
    );
    for (let at = 0; at < count; at += 1_000) await docs.insertMany(all.slice(at, at + 1_000));
    for (const [field, [metric, make]] of makers) {
      const vector = make(random).map(Math.fround);
      const scores = all.map((doc) => scoreOf(metric, doc[field]!, vector));
      const best = scores.sort((a, b) => b - a).slice(0, 10);
      const near = { field, vector, k: 10 };
      const { records, plan } = await docs.find({ near, explain: true });
      const found = records.map(({ data }) => scoreOf(metric, data[field]!, vector));
      expect([field, plan!.note, found]).toEqual([
        field,
        expect.stringContaining('recall 1.'),
        best,
      ]);
    }
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

test('a number beyond float32 is refused; one of an earlier version has no rank', async () => {
  const db = await scratch.open({ collections: { docs: {} } });
  const docs = db.collection<{ v: number[]; n?: number }>('docs');
  // The build of an index takes records as they are, like an earlier version.
  await docs.insertWithKey('zero', { v: [0, 0] });
  await docs.insertWithKey('large', { v: [1e39, 1] });
  await docs.insertWithKey('good', { v: [1, 0.1] });
  const kinds = (['cosine', 'dot', 'l2'] as const).flatMap((metric) => [
    { metric },
    { metric, storage: 'int8' as const },
  ]);
  for (const kind of kinds) {
    await db.catalog.createIndex('docs', { vector: 'v', dims: 2, ...kind });
    await db.indexesBuilt();
    const { records } = await docs.find({ near: { field: 'v', vector: [1, 0], k: 3 } });
    expect(records[0]!.key).toBe('good');
    expect(records.every(({ score }) => Number.isFinite(score))).toBe(true);
    const refusal = await refusalOf(docs.insert({ v: [1, -1e39] }));
    expect(refusal.message).toBe(
      'BAD_DATA: "v" must be a vector of numbers within float32, up to 3.4e38.',
    );
    const near = { field: 'v' as const, vector: [1e39, 1] };
    expect((await refusalOf(docs.find({ near }))).message).toContain('beyond float32');
    await docs.update({ key: 'large' }, { v: [1e39, 1], n: 1 });
    await db.catalog.dropIndex('docs', 'vector:v');
  }
  expect(await docs.deleteByKey('large')).toBeTruthy();
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
