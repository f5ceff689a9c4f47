import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { casesOf, readPage } from './lists/cases.mjs';
import { fillEmbedded } from './lists/fill-embedded.mjs';
import { fillPostgres } from './lists/fill-postgres.mjs';
import { planOf, sequentialScans } from './lists/plans.mjs';
import { openStore } from './shared/stores.mjs';
import { startDatabase } from './queue-postgres/servers.mjs';

export const summary = 'one page of each listing of a large queue, on both stores';

const maxPageMs = 50;
const help = `npm run bench -- lists [options]

  --tasks N           tasks of the queue on PostgreSQL (1000000; 0: without PostgreSQL)
  --embedded-tasks N  tasks of the embedded queue (1000000; 0: without it)
  --samples N         pages of each listing (40)

Prints p50 and p95 of each page, and fails if PostgreSQL reads a whole table for one. 10 million
tasks need 12 GB of disk for the time of the run.`;

/** A page is 50 tasks. See `--help` for the options. */
export async function run({ args, report, note }) {
  const { values } = parseArgs({
    args,
    options: {
      tasks: { type: 'string', default: '1000000' },
      'embedded-tasks': { type: 'string', default: '1000000' },
      samples: { type: 'string', default: '40' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return note(help);
  const samples = Number(values.samples);
  const [tasks, embeddedTasks] = [Number(values.tasks), Number(values['embedded-tasks'])];
  if (embeddedTasks > 0) await inDirectory((home) => embedded(home, embeddedTasks));
  if (tasks > 0) await inDirectory((home) => postgres(home, tasks));

  async function embedded(home, count) {
    const store = await openStore('embedded', home);
    try {
      const span = await timed(note, `${shown(count)} tasks stored`, () =>
        fillEmbedded(store, count),
      );
      report(`Embedded, ${shown(count)} tasks`, await measure(store, span, { samples }));
    } finally {
      await store.close();
    }
  }

  async function postgres(home, count) {
    const database = await startDatabase(join(home, 'postgres'), {
      max_wal_size: '2GB',
      maintenance_work_mem: '512MB',
    });
    try {
      await openStore(database.url, home).then((store) => store.close());
      const span = await timed(note, `${shown(count)} tasks stored`, () =>
        fillPostgres(database, count),
      );
      const before = await sequentialScans(database);
      const store = await openStore(database.url, home);
      const rows = await measure(store, span, {
        samples,
        cpuUs: database.cpuUs,
        planOf: (each) => planOf(database, each),
      });
      await store.close();
      report(`PostgreSQL, ${shown(count)} tasks`, rows);
      const after = await sequentialScans(database);
      note(`Sequential scans of task tables: ${after - before}`);
      const bad = rows.filter(({ plan }) => plan.includes('Seq Scan'));
      if (bad.length > 0 || after > before) throw new Error('A listing reads a whole table.');
    } finally {
      await database.stop();
    }
  }
}

/** CPU is that of this process and of PostgreSQL: it says more than times on a busy machine. */
async function measure(store, span, { samples, cpuUs = () => 0, planOf: planOfCase }) {
  const rows = [];
  for (const each of casesOf(span)) {
    const times = [];
    let found;
    const [own, theirs] = [process.cpuUsage(), cpuUs()];
    for (let i = 0; i < samples; i++) {
      const start = performance.now();
      found = await readPage(store, each).catch((cause) => {
        // The listings before it are worth seeing.
        console.table(rows);
        throw new Error(`The listing "${each.name}" failed: ${cause.message}`, { cause });
      });
      times.push(performance.now() - start);
    }
    const { user, system } = process.cpuUsage(own);
    const cpuMs = (user + system + cpuUs() - theirs) / 1_000 / samples;
    times.sort((a, b) => a - b);
    const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
    rows.push({
      listing: each.name,
      tasks: found,
      'p50 ms': Number(at(0.5).toFixed(1)),
      'p95 ms': Number(at(0.95).toFixed(1)),
      'CPU ms': Number(cpuMs.toFixed(1)),
      [`p50 <= ${maxPageMs}`]: at(0.5) <= maxPageMs ? 'met' : 'MISSED',
      ...(planOfCase && { plan: await planOfCase(each) }),
    });
  }
  return rows;
}

async function inDirectory(use) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  try {
    await use(home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function timed(note, text, use) {
  const start = performance.now();
  const result = await use();
  note(`${text} in ${((performance.now() - start) / 1_000).toFixed(0)} s`);
  return result;
}

const shown = (count) => count.toLocaleString('en');
