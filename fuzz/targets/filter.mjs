import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '../../packages/engine/dist/index.js';
import { Refusal } from '../../packages/kit/dist/base/errors.js';
import { parseJson } from '../../packages/kit/dist/http/body.js';

/* Queries: find, count and aggregate with any JSON, on a collection with and without an index. */

const directory = mkdtempSync(join(tmpdir(), 'mr-fuzz-'));
let database;

export async function prepare() {
  database = await open(directory);
  const records = database.collection('c');
  await records.insert({ a: null });
  await database.catalog.createIndex('c', { fields: ['a'] });
  for (let n = 0; n < 20; n++) {
    const data = {
      a: n,
      b: { c: `text ${n}`, d: [n, null, { e: true }] },
      t: '2026-01-01T00:00:00Z',
    };
    await records.insert(n % 3 === 0 ? { a: `${n}` } : data);
  }
}

export async function end() {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
}

class Malformed extends Error {}
export const isExpected = (error) => error instanceof Malformed || error instanceof Refusal;

export async function run(input) {
  let query;
  try {
    query = parseJson(input);
  } catch {
    throw new Malformed();
  }
  const records = database.collection('c');
  await attempt(() => records.find(query));
  await attempt(() => records.find({ filter: query, limit: 5 }));
  await attempt(() => records.count({ filter: query }));
  await attempt(() => records.aggregate(query));
}

async function attempt(call) {
  try {
    await call();
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
}

export const dictionary = [
  '"field":"a"',
  '"op":"eq"',
  '"value":',
  '"and":[',
  '"or":[',
  '"not":',
  '"filter":',
  '"limit":',
  '"orderBy":',
  '"groupBy":',
  '"accumulators":',
  '"regex"',
  '"in"',
  '"exists"',
  '"b.d.1"',
  '$rev',
];
