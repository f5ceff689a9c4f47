/**
 * `npm run bench`: lists the benchmarks; `npm run bench -- NAME [options]` runs one. A benchmark
 * is `bench/NAME.mjs`: `summary` says what it measures, `options` are those of parseArgs with their
 * `help`, and `run(bench)` does it. A benchmark without `options` handles `--help` itself. With
 * MILLRACE_BENCH_BUILT=1 it takes the build that is there.
 */
import { readdir } from 'node:fs/promises';
import { arch, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { optionsText } from './options.mjs';
import { prepare, root } from './prepare.mjs';

const [name, ...given] = process.argv.slice(2);
const args = given.map((arg) => (arg === '-h' ? '--help' : arg));
const folder = join(root, 'bench');
const names = (await readdir(folder)).filter((file) => file.endsWith('.mjs'));
const known = names.map((file) => file.slice(0, -'.mjs'.length)).toSorted();

if (process.env.MILLRACE_BENCH_BUILT !== '1') prepare();
if (name === undefined || name === '--help' || name === '-h') {
  console.log('Benchmarks (npm run bench -- NAME):\n');
  for (const each of known) console.log(`  ${each.padEnd(18)} ${(await load(each)).summary}`);
} else if (!known.includes(name)) {
  console.error(`There is no benchmark "${name}". Known: ${known.join(', ')}`);
  process.exit(2);
} else {
  const { options, summary, run } = await load(name);
  if (options && args.includes('--help')) showHelp(summary, options);
  else await start(run);
}

async function start(run) {
  if (!args.includes('--help')) console.log(machine());
  try {
    await run({ args, root, machine: machine(), report, note: console.log });
  } catch (error) {
    if (!error.code?.startsWith('ERR_PARSE_ARGS')) throw error;
    console.error(`${error.message}\nSee: npm run bench -- ${name} --help`);
    // The exit hook of a peer would turn process.exitCode into 0.
    process.exit(2);
  }
}

function showHelp(summary, options) {
  console.log(`usage: npm run bench -- ${name} [options]\n\nMeasures ${summary}.\n`);
  console.log(optionsText({ ...options, help: { type: 'boolean', help: 'Show this' } }));
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
