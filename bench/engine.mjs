import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { measureFsync } from './engine/disk.mjs';
import { engineNames, phaseNames, readOptions } from './engine/options.mjs';
import { installPeers, presentEngines } from './engine/peers.mjs';
import { runPhases } from './engine/phases.mjs';
import { describeRun } from './engine/report.mjs';
import { Results, tablesOf } from './engine/results.mjs';
import { judge } from './engine/targets.mjs';

export const summary = 'the database engine beside raw lmdb, better-sqlite3 and PostgreSQL';

/** Everything durable, every engine on the same disk, in turns. See `--help` for the options. */
export async function run({ args, root, machine, report, note }) {
  const options = readOptions(args, note);
  if (!options) return;
  if (options.install) return installPeers(note);
  const engines = presentEngines(options.engines, note);
  if (!engines.includes('millrace')) throw new Error('--engines lacks millrace itself');

  mkdirSync(options.dir, { recursive: true });
  const home = mkdtempSync(join(options.dir, 'millrace-bench-'));
  // PostgreSQL may run as another user, who has to get through.
  chmodSync(home, 0o755);
  const results = new Results();
  const moments = [];
  const started = performance.now();
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => stop.abort());
  try {
    moments.push(look('start', home, note));
    await runPhases({ options, engines, home, results, note, signal: stop.signal });
    moments.push(look('end', home, note));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  const seconds = Math.round((performance.now() - started) / 1_000);
  const tables = tablesOf(results, engines);
  for (const { title, rows } of tables) report(title, rows);
  const verdicts = judge(results);
  report('Targets', verdicts);
  note(`Took ${seconds} s.`);

  if (options.quick || engines.length < engineNames.length || !isWhole(options)) {
    note('Not written to bench/results: that is for whole runs with all engines.');
    return;
  }
  const file = join(root, 'bench', 'results', 'engine.md');
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(file, describeRun({ options, machine, moments, seconds, tables, verdicts }));
  note('Written to bench/results/engine.md');
}

function isWhole({ phases, profile }) {
  return phases.length === phaseNames.length && profile === undefined;
}

/** How fast the disk and how busy the machine was: figures of a busy one say little. */
function look(when, home, note) {
  const { medianMs, p99Ms } = measureFsync(home);
  const fsync = `${medianMs.toFixed(3)} ms median, ${p99Ms.toFixed(3)} ms p99`;
  const moment = `at the ${when}: fsync of 4 KiB ${fsync}; load average ${loadavg()[0].toFixed(1)}`;
  note(moment);
  return moment;
}
