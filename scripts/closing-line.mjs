/**
 * A vitest reporter that ends the run with what was passed over and why, with what passed only at
 * the second try (`--retry=1`), and with one plain line of counts.
 */
export default class ClosingLine {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const skipped = [];
    const wavering = [];
    for (const module of modules) {
      // A file that cannot be loaded has no tests to count, yet it failed.
      if (module.state() === 'failed' && module.errors().length > 0) counts.failed++;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'skipped') skipped.push(reasonFor(test, result));
        if (test.diagnostic()?.flaky) wavering.push(`  ${test.fullName}`);
        counts[result.state] = (counts[result.state] ?? 0) + 1;
      }
    }
    if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.join('\n')}`);
    if (wavering.length > 0) {
      console.log(`\nPassed only when run again, so mend them:\n${wavering.join('\n')}`);
    }
    const tail = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
    console.log(`\n${counts.passed} passed, ${counts.failed} failed${tail}`);
  }
}

function reasonFor(test, result) {
  return `  ${test.fullName}: ${result.note ?? 'no reason given'}`;
}
