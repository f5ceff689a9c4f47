import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { open } from '@millrace/db';
import { costsOf, diskMb, fillTo, ownMemoryMb } from './growth/measure.mjs';
import { drawLines } from './growth/picture.mjs';
import { queueCosts } from './growth/queues.mjs';
import { openStore } from './shared/stores.mjs';

export const summary = 'what an operation costs with more records, and with more queues';

const help = `npm run bench -- growth [options]

  --records LIST  sizes of the collection, rising (10000,100000,1000000; '': without it)
  --queues LIST   numbers of queues that the tasks wait in (1,10,100; '': without them)
  --tasks N       pending tasks in all queues together (1000000)
  --count N       operations for each figure (2000)
  --dir DIR       where the data goes while it runs (${tmpdir()})
  --out DIR       writes growth.json and growth.svg, queues.json and queues.svg there

A million records need 1 GB of disk, 20 million 17 GB.`;

/**
 * One collection that grows from size to size, then embedded queues; at each size the processor
 * time per operation.
 */
export async function run({ args, machine, report, note }) {
  const { values } = parseArgs({
    args,
    options: {
      records: { type: 'string', default: '10000,100000,1000000' },
      queues: { type: 'string', default: '1,10,100' },
      tasks: { type: 'string', default: '1000000' },
      count: { type: 'string', default: '2000' },
      dir: { type: 'string', default: tmpdir() },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return note(help);
  const { dir, out } = values;
  const count = Number(values.count);
  const [sizes, queues] = [rising(values, 'records'), rising(values, 'queues')];
  const write = (name, x, found) =>
    out && writeFiles(out, { name, x, machine, count, found }, note);
  if (sizes.length > 0) {
    const found = await grow(sizes, { dir, count, note });
    report(
      'Database: processor time per operation in microseconds, one caller',
      found.map(rounded),
    );
    write('growth', 'records', found);
  }
  const tasks = Number(values.tasks);
  const found = [];
  for (const number of queues) {
    found.push(await queueCosts(openStore, { dir, queues: number, tasks, count }));
    note(`${tasks.toLocaleString('en')} tasks in ${number} queues measured`);
  }
  if (queues.length === 0) return;
  const title = `Queue with ${tasks.toLocaleString('en')} pending tasks: the same`;
  report(title, found.map(rounded));
  write('queues', 'queues', found);
}

function rising(values, name) {
  const numbers = values[name] === '' ? [] : values[name].split(',').map(Number);
  const isRising = numbers.every((number, i) => number > (numbers[i - 1] ?? 0));
  if (!isRising) throw new Error(`--${name} needs rising numbers, such as 1,10,100`);
  return numbers;
}

async function grow(sizes, { dir, count, note }) {
  const home = mkdtempSync(join(dir, 'millrace-growth-'));
  const collections = { people: { indexes: [{ fields: ['age'] }] } };
  const db = await open(home, { collections });
  const found = [];
  try {
    const people = db.collection('people');
    await fillTo(people, 0, sizes[0]);
    // Not measured: compiles the code.
    await costsOf({ db, people }, sizes[0], count);
    for (const [i, records] of sizes.entries()) {
      await fillTo(people, sizes[i - 1] ?? sizes[0], records);
      const costs = await costsOf({ db, people }, records, count);
      found.push({ records, ...costs, ownMemoryMb: ownMemoryMb(), diskMb: diskMb(home) });
      note(`${records.toLocaleString('en')} records measured`);
    }
  } finally {
    await db.close();
    rmSync(home, { recursive: true, force: true });
  }
  return found;
}

function rounded(row) {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, round1(value)]));
}

function round1(value) {
  return Math.round(value * 10) / 10;
}

function writeFiles(directory, { name, x, machine, count, found }, note) {
  mkdirSync(directory, { recursive: true });
  const date = new Date().toISOString().slice(0, 10);
  const data = { machine, date, operationsPerFigure: count, unit: 'microseconds', found };
  writeFileSync(join(directory, `${name}.json`), `${JSON.stringify(data, undefined, 2)}\n`);
  const others = [x, 'ownMemoryMb', 'diskMb'];
  const names = Object.keys(found[0]).filter((each) => !others.includes(each));
  const series = names.map((each) => ({
    name: each,
    points: found.map((row) => [row[x], row[each]]),
  }));
  const title = `Processor time per operation by the number of ${x}`;
  const xLabel = `${x}, logarithmic; up: processor time, logarithmic`;
  writeFileSync(join(directory, `${name}.svg`), drawLines({ title, xLabel, series }));
  note(`Written: ${name}.json and ${name}.svg`);
}
