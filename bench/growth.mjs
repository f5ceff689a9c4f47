import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { open } from '@millrace/db';
import { costsOf, diskMb, fillTo, ownMemoryMb } from './growth/measure.mjs';
import { drawLines } from './growth/picture.mjs';

export const summary = 'what an operation of the database costs as the collection grows';

/** `help` is for `npm run bench -- NAME --help`. */
export const options = {
  records: {
    type: 'string',
    default: '10000,100000,1000000',
    help: 'Sizes of the collection, by comma',
  },
  count: { type: 'string', default: '2000', help: 'Operations of each kind' },
  dir: { type: 'string', default: tmpdir(), help: 'Directory for the databases' },
  out: { type: 'string', help: 'Write the results to this file as well' },
};

/** One collection that grows from size to size; at each, the processor time per operation. */
export async function run({ args, machine, report, note }) {
  const { values } = parseArgs({ args, options });
  const sizes = values.records.split(',').map(Number);
  const count = Number(values.count);
  const isRising = sizes.every((size, i) => size > (sizes[i - 1] ?? 0));
  if (!isRising || !(count > 0)) throw new Error('--records needs rising sizes: 10000,1000000');
  const home = mkdtempSync(join(values.dir, 'millrace-growth-'));
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
  report('Processor time per operation in microseconds, one caller', found.map(rounded));
  if (values.out) write(values.out, { machine, count, found }, note);
}

function rounded(row) {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, round1(value)]));
}

function round1(value) {
  return Math.round(value * 10) / 10;
}

function write(directory, { machine, count, found }, note) {
  mkdirSync(directory, { recursive: true });
  const date = new Date().toISOString().slice(0, 10);
  const data = { machine, date, operationsPerFigure: count, unit: 'microseconds', found };
  writeFileSync(join(directory, 'growth.json'), `${JSON.stringify(data, undefined, 2)}\n`);
  const others = ['records', 'ownMemoryMb', 'diskMb'];
  const names = Object.keys(found[0]).filter((name) => !others.includes(name));
  const series = names.map((name) => ({
    name,
    points: found.map((row) => [row.records, row[name]]),
  }));
  const title = 'Processor time per operation as the collection grows';
  writeFileSync(
    join(directory, 'growth.svg'),
    drawLines({ title, xLabel: 'records, logarithmic; up: processor time, logarithmic', series }),
  );
  note('Written: growth.json and growth.svg');
}
