/**
 * A vitest reporter that ends the run with the slowest files, what was skipped and why, what passed
 * only on a retry (`--retry=1`), and one plain line of counts.
 */
const slowestCount = 10;

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
        if (test.diagnostic()?.flaky) flaky.push(`  ${test.fullName}`);
        counts[result.state] = (counts[result.state] ?? 0) + 1;
      }
    }
    if (modules.length > slowestCount) console.log(`\nSlowest files:\n${slowest(modules)}`);
    if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.join('\n')}`);
    if (flaky.length > 0) console.log(`\nFlaky, passed on a retry:\n${flaky.join('\n')}`);
    const tail = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
    console.log(`\n${counts.passed} passed, ${counts.failed} failed${tail}`);
  }
}

function slowest(modules) {
  return modules
    .map((module) => ({ file: module.relativeModuleId, ms: module.diagnostic().duration }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, slowestCount)
    .map(({ file, ms }) => `${(ms / 1_000).toFixed(1).padStart(7)} s  ${file}`)
    .join('\n');
}

function reasonFor(test, result) {
  return `  ${test.fullName}: ${result.note ?? 'no reason given'}`;
}
