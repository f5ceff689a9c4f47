/**
 * A vitest reporter that ends the run with the slowest files, what was skipped and why, what only
 * campaigns run, what passed only on a retry (`--retry=1`), and one plain line of counts. With
 * MILLRACE_DURATIONS=write it records the CPU seconds of each file, by which runs are sorted and
 * shards are divided; where they are not known, the seconds it took.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { campaignFiles, campaignTags, isFullCampaign, wholeFiles } from './campaign-tests.mjs';

const slowestCount = 10;
const durationsFile = new URL('../test/durations.json', import.meta.url);

export default class ClosingLine {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const skipped = [];
    const flaky = [];
    const left = [];
    for (const module of modules) {
      // A file that cannot be loaded has no tests to count, yet it failed.
      if (module.state() === 'failed' && module.errors().length > 0) counts.failed++;
      for (const test of module.children.allTests()) {
        const result = test.result();
        const tag = test.tags.find((name) => name in campaignTags);
        if (tag && !isFullCampaign) {
          left.push({ tag, file: module.relativeModuleId });
          continue;
        }
        if (result.state === 'skipped') skipped.push(reasonFor(test, result));
        if (test.diagnostic()?.flaky) flaky.push(`  ${test.fullName}: ${firstErrorOf(result)}`);
        counts[result.state] = (counts[result.state] ?? 0) + 1;
      }
    }
    if (process.env.MILLRACE_DURATIONS === 'write') recordDurations(modules);
    if (modules.length > slowestCount) console.log(`\nSlowest files:\n${slowest(modules)}`);
    if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.join('\n')}`);
    if (modules.length > slowestCount) counts.failed += sayLeftOut(left);
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

/** Says what only campaigns run, and returns how many tests they would not find. */
function sayLeftOut(tests) {
  const files = isFullCampaign ? [] : wholeFiles();
  const found = new Set(campaignFiles());
  const lost = tests.filter(({ file }) => !found.has(file));
  for (const { file } of lost) console.log(`\nnpm run test:campaigns does not find ${file}`);
  if (lost.length > 0) process.exitCode = 1;
  if (tests.length + files.length === 0) return lost.length;
  const lines = Object.entries(campaignTags).map(([tag, reason]) => {
    const count = (list) => list.filter((each) => each.tag === tag).length;
    return `  ${count(tests)} tests, ${count(files)} files: ${reason}`;
  });
  const title = `${tests.length} tests and ${files.length} more files run in npm run test:campaigns`;
  console.log(`\n${title} alone:\n${lines.join('\n')}`);
  return lost.length;
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
