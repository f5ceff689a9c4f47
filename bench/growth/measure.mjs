import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ages, person } from '../engine/documents.mjs';

const batch = 1_000;
const findLimit = 100;

/** Fills the collection up to `records`, in commits of a thousand. */
export async function fillTo(people, from, records) {
  for (let next = from; next < records; next += batch) {
    const size = Math.min(batch, records - next);
    const operations = Array.from({ length: size }, (_, i) => ({
      insert: { key: `p${next + i}`, data: person(next + i) },
    }));
    const { results } = await people.bulkWrite(operations, { atomic: true });
    if (results.some(({ status }) => status !== 'OK')) throw new Error('a batch was refused');
  }
}

/** Processor time of each operation in microseconds, at the size that the collection has. */
export async function costsOf({ db, people }, records, count) {
  const keyOf = (i) => `p${(i * 7_919) % records}`;
  const watch = people.watch();
  const first = watch.next();
  const insert = await costOf(count, (i) => people.insertWithKey(`new${records}-${i}`, person(i)));
  const change = await costOf(count, (i) => (i === 0 ? first : watch.next()));
  await watch.return();
  for (let i = 0; i < count; i++) await people.deleteByKey(`new${records}-${i}`);
  // Reads see the file, not what a bulk load has left in memory for a moment.
  await db.core.store.fold();
  return {
    insert,
    'key read': await costOf(count, async (i) => {
      if (!(await people.findByKey(keyOf(i)))) throw new Error(`${keyOf(i)} is missing`);
    }),
    'find of 100': await costOf(Math.ceil(count / 10), async (i) => {
      const age = 18 + (i % ages);
      const filter = { field: 'age', op: 'eq', value: age };
      const { records: found } = await people.find({ filter, limit: findLimit });
      if (found.length === 0 || found.some(({ data }) => data.age !== age)) {
        throw new Error(`a find gave ${found.length} records, or some of another age`);
      }
    }),
    'watched change': change,
  };
}

/** Mean processor time of one call in microseconds. */
export async function costOf(count, act) {
  const used = process.cpuUsage();
  for (let i = 0; i < count; i++) await act(i);
  const { user, system } = process.cpuUsage(used);
  return (user + system) / count;
}

/** Memory of the process itself in MB: pages of the mapped file are the kernel's cache. */
export function ownMemoryMb() {
  globalThis.gc?.();
  if (process.platform !== 'linux') return process.memoryUsage().rss / 2 ** 20;
  const status = readFileSync('/proc/self/status', 'utf8');
  return Number(/^RssAnon:\s+(\d+)/m.exec(status)[1]) / 1_024;
}

/** What the files of a directory take on disk, in MB. */
export function diskMb(directory) {
  const files = readdirSync(directory, { recursive: true });
  const blocks = files.map((name) => statSync(join(directory, name)).blocks);
  return (blocks.reduce((sum, each) => sum + each, 0) * 512) / 2 ** 20;
}
