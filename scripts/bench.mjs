/**
 * `npm run bench`: lists the benchmarks; `npm run bench -- NAME [options]` runs one. A benchmark
 * is `bench/NAME.mjs`: `summary` says what it measures, `run(bench)` does it. With
 * MILLRACE_BENCH_BUILT=1 it takes the build that is there.
 */
import { readdir } from 'node:fs/promises';
import { arch, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { prepare, root } from './prepare.mjs';

const [name, ...args] = process.argv.slice(2);
const folder = join(root, 'bench');
const names = (await readdir(folder)).filter((file) => file.endsWith('.mjs'));
const known = names.map((file) => file.slice(0, -'.mjs'.length)).toSorted();

if (process.env.MILLRACE_BENCH_BUILT !== '1') prepare();
if (name === undefined) {
  console.log('Benchmarks (npm run bench -- NAME):\n');
  for (const each of known) console.log(`  ${each.padEnd(18)} ${(await load(each)).summary}`);
} else if (!known.includes(name)) {
  console.error(`There is no benchmark "${name}". Known: ${known.join(', ')}`);
  process.exit(2);
} else {
  console.log(machine());
  await (await load(name)).run({ args, root, machine: machine(), report, note: console.log });
}

function load(each) {
  return import(pathToFileURL(join(folder, `${each}.mjs`)).href);
}

function report(title, rows) {
  console.log(`\n${title}`);
  console.table(rows);
}

function machine() {
  const gib = Math.round(totalmem() / 2 ** 30);
  return `Node ${process.version}, ${process.platform}-${arch()}, ${cpus().length} cores, ${gib} GiB`;
}
