import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { percentile } from '../shared/results.mjs';

/*
 * One contestant, in a process of its own so that its memory is its own. Documents and vectors are
 * made from a seed, the same for all.
 */
const require = createRequire(import.meta.url);
const batch = 1_000;

function randomOf(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A few words are frequent and most are rare, as in a language. */
function words(random, count) {
  const list = [];
  for (let i = 0; i < count; i++) list.push(`w${Math.floor(20_000 * random() ** 3).toString(36)}`);
  return list.join(' ');
}

const documentOf = (n) => {
  const random = randomOf(n + 1);
  return { n, title: words(random, 6), body: words(random, 60) };
};
const vectorOf = (n, dims) => {
  const random = randomOf(1_000_000 + n);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Float32Array.from({ length: dims }, normal);
};

function sizeOf(directory) {
  return readdirSync(directory, { recursive: true })
    .map((name) => statSync(join(directory, name)))
    .reduce((sum, each) => sum + (each.isFile() ? each.size : 0), 0);
}

function sqlite(home) {
  const db = new (require('better-sqlite3'))(join(home, 'bench.sqlite'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  return db;
}

async function millrace(home, indexes) {
  const { open } = await import('../../packages/db/dist/index.js');
  const db = await open(home, { collections: { docs: { indexes } } });
  const docs = db.collection('docs');
  const bulk = (list) =>
    docs.bulkWrite(list.map((data) => ({ upsert: { key: `k${data.n}`, data } })));
  return { db, docs, bulk };
}

const texts = {
  async millrace(home) {
    const { db, docs, bulk } = await millrace(home, [{ search: ['title', 'body'] }]);
    return {
      add: bulk,
      settle: () => db.core.searchMerges.idle(),
      update: (data) => docs.update({ key: `k${data.n}` }, data),
      // The others make no highlights.
      query: async (text) =>
        (await docs.find({ search: { text, highlight: false }, limit: 10, fields: ['n'] })).records
          .length,
      close: () => db.close(),
    };
  },
  async fts5(home) {
    const db = sqlite(home);
    db.exec('create virtual table docs using fts5(title, body)');
    const insert = db.prepare('insert into docs(rowid, title, body) values (?, ?, ?)');
    const update = db.prepare('update docs set title = ?, body = ? where rowid = ?');
    const query = db.prepare('select rowid from docs where docs match ? order by rank limit 10');
    const all = db.transaction((list) => {
      for (const { n, title, body } of list) insert.run(n + 1, title, body);
    });
    return {
      add: all,
      update: ({ n, title, body }) => update.run(title, body, n + 1),
      query: (text) => query.all(text).length,
      close: () => db.close(),
    };
  },
  async minisearch() {
    const { default: MiniSearch } = await import('minisearch');
    const index = new MiniSearch({ fields: ['title', 'body'], idField: 'n' });
    return {
      add: (list) => index.addAll(list),
      update: (data) => index.replace(data),
      query: (text) => index.search(text, { combineWith: 'AND' }).slice(0, 10).length,
      close: () => undefined,
    };
  },
};

const vectors = {
  async millrace(home, dims) {
    const { db, docs, bulk } = await millrace(home, [{ vector: 'v', dims, metric: 'cosine' }]);
    const near = async (vector, k) =>
      (await docs.find({ near: { field: 'v', vector, k }, fields: ['n'] })).records;
    return {
      add: bulk,
      update: (data) => docs.update({ key: `k${data.n}` }, data),
      query: async (vector, k) => (await near(vector, k)).map(({ data }) => data.n),
      close: () => db.close(),
    };
  },
  async 'sqlite-vec'(home, dims) {
    const db = sqlite(home);
    require('sqlite-vec').load(db);
    db.exec(`create virtual table docs using vec0(v float[${dims}] distance_metric=cosine)`);
    const insert = db.prepare('insert into docs(rowid, v) values (?, ?)');
    const update = db.prepare('update docs set v = ? where rowid = ?');
    const query = db.prepare('select rowid from docs where v match ? and k = ?');
    const all = db.transaction((list) => {
      for (const { n, v } of list) insert.run(BigInt(n + 1), v);
    });
    return {
      add: all,
      update: ({ n, v }) => update.run(v, BigInt(n + 1)),
      query: (vector, k) => query.all(vector, k).map(({ rowid }) => Number(rowid) - 1),
      close: () => db.close(),
    };
  },
};

/** The resident set, and the pages of files in it, which the kernel may take at any time. */
function residentBytes() {
  const all = process.memoryUsage().rss;
  if (process.platform !== 'linux') return { all, mapped: NaN };
  const [, kib] = /^RssFile:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'));
  return { all, mapped: Number(kib) * 1024 };
}

async function timesOf(count, act) {
  const times = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await act(i);
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b);
}

/** The nearest of all vectors, by comparing each. */
function nearest(vector, count, dims, k) {
  const hits = [];
  for (let n = 0; n < count; n++) {
    const other = vectorOf(n, dims);
    let [dot, squares] = [0, 0];
    for (let i = 0; i < dims; i++) {
      dot += vector[i] * other[i];
      squares += other[i] ** 2;
    }
    hits.push([n, dot / Math.sqrt(squares)]);
  }
  return hits
    .sort((a, b) => b[1] - a[1])
    .slice(0, k)
    .map(([n]) => n);
}

async function measure({ kind, name, count, samples, dims, truths }) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const isText = kind === 'text';
  const make = isText ? documentOf : (n) => ({ n, v: vectorOf(n, dims) });
  try {
    const contestant = await (isText ? texts : vectors)[name](home, dims);
    global.gc?.();
    const before = residentBytes();
    let buildMs = 0;
    for (let done = 0; done < count; done += batch) {
      const list = Array.from({ length: Math.min(batch, count - done) }, (_, i) => make(done + i));
      const start = performance.now();
      await contestant.add(list);
      buildMs += performance.now() - start;
    }
    const settling = performance.now();
    await contestant.settle?.();
    buildMs += performance.now() - settling;
    const result = { 'build s': buildMs / 1_000 };
    const updates = await timesOf(samples, (i) =>
      contestant.update({ ...make(count + i), n: i * 7 }),
    );
    await timesOf(5, (i) => query(count + 900 + i));
    const queries = await timesOf(samples, (i) => query(count + 1_000 + i));
    global.gc?.();
    const after = residentBytes();
    if (!isText) {
      let found = 0;
      for (let i = 0; i < truths; i++) {
        const vector = vectorOf(count + 50_000 + i, dims);
        // The first ones were updated.
        const wanted = nearest(vector, count, dims, 20).filter(
          (n) => n % 7 !== 0 || n >= samples * 7,
        );
        const hits = await contestant.query(vector, 20);
        found += wanted.slice(0, 10).filter((n) => hits.includes(n)).length / 10;
      }
      result['recall@10'] = found / truths;
    }
    Object.assign(result, {
      'update p50 ms': percentile(updates, 0.5),
      'query p50 ms': percentile(queries, 0.5),
      'query p99 ms': percentile(queries, 0.99),
      'memory MiB': (after.all - before.all) / 2 ** 20,
      'of it mapped files MiB': (after.mapped - before.mapped) / 2 ** 20,
    });
    await contestant.close();
    result['disk MiB'] = sizeOf(home) / 2 ** 20;
    return result;

    function query(n) {
      if (!isText) return contestant.query(vectorOf(n, dims), 10);
      return contestant.query(words(randomOf(n), 2));
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

process.send(await measure(JSON.parse(process.argv[2])));
process.disconnect();
