/**
 * A vitest reporter that ends the run with the slowest files, what was skipped and why, what passed
 * only on a retry (`--retry=1`), and one plain line of counts. With MILLRACE_DURATIONS=write it
 * records the CPU seconds of each file, by which runs are sorted and shards are divided; where they
 * are not known, the seconds it took.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const slowestCount = 10;
const durationsFile = new URL('../test/durations.json', import.meta.url);

export default class ClosingLine {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const skipped = [];
    const flaky = [];
    for (const module of modules) {
      // A file that cannot be loaded has no tests to count, yet it failed.
      if (module.state() === 'failed' && module.errors().length > 0) counts.failed++;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'skipped') skipped.push(reasonFor(test, result));
        if (test.diagnostic()?.flaky) flaky.push(`  ${test.fullName}: ${firstErrorOf(result)}`);
        counts[result.state] = (counts[result.state] ?? 0) + 1;
      }
    }
    if (process.env.MILLRACE_DURATIONS === 'write') recordDurations(modules);
    if (modules.length > slowestCount) console.log(`\nSlowest files:\n${slowest(modules)}`);
    if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.join('\n')}`);
    if (flaky.length > 0) console.log(`\nFlaky, passed on a retry:\n${flaky.join('\n')}`);
    const tail = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
    console.log(`\n${counts.passed} passed, ${counts.failed} failed${tail}`);
  }
}

/** In tenths of a second; a run of some files keeps what is recorded of the others. */
function recordDurations(modules) {
  const durations = JSON.parse(readFileSync(durationsFile, 'utf8'));
  for (const module of modules) {
    const { cpuSeconds = module.diagnostic().duration / 1_000 } = module.meta();
    durations[module.relativeModuleId] = Math.round(cpuSeconds * 10) / 10;
  }
  const sorted = Object.entries(durations).toSorted(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(durationsFile, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`);
}

function slowest(modules) {
  return modules
    .map((module) => ({ file: module.relativeModuleId, ms: module.diagnostic().duration }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, slowestCount)
    .map(({ file, ms }) => `${(ms / 1_000).toFixed(1).padStart(7)} s  ${file}`)
    .join('\n');
}

/** Why the first try failed: a test that passed on a retry keeps its errors. */
function firstErrorOf({ errors }) {
  return errors?.[0]?.message?.slice(0, 500) ?? 'no error was kept';
}

function reasonFor(test, result) {
  return `  ${test.fullName}: ${result.note ?? 'no reason given'}`;
}
