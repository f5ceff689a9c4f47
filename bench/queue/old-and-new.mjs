/** An older build of the queue beside this one, in alternating rounds on the same machine. */
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Results } from '../shared/results.mjs';
import { startHandler, startMillrace } from './contestants.mjs';
import { endToEnd, latency, submitOnly } from './loads.mjs';

const loads = {
  'submitted by 64 clients and delivered': (...all) => endToEnd(...all),
  'submitted by 64 clients, nobody working': (...all) => submitOnly(...all, false),
  'submitted in batches of 500': (...all) => submitOnly(...all, true),
};

export async function compareBuilds({ old, root, rounds, seconds, report, note }) {
  if (!existsSync(join(old, 'bin', 'ctl')))
    throw new Error(`${old} has no bin/ctl: build it first`);
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const handler = await startHandler();
  const builds = [];
  const results = new Results();
  try {
    builds.push(await startMillrace(old, home, handler, 'old'));
    builds.push(await startMillrace(root, home, handler, 'new'));
    for (let round = 1; round <= rounds; round++) {
      const turn = round % 2 === 1 ? builds : builds.toReversed();
      await measure(turn, handler, { home, seconds }, results);
      note(`round ${round} of ${rounds}: load average ${loadavg()[0].toFixed(1)}`);
    }
  } finally {
    for (const build of builds) await build.stop();
    handler.stop();
    rmSync(home, { recursive: true, force: true });
  }
  const rows = results.table(['old', 'new']).map((row) => {
    const ratio = results.of(row.measure, 'new') / results.of(row.measure, 'old');
    return { ...row, 'new / old': Number.isFinite(ratio) ? ratio.toFixed(2) : '-' };
  });
  report(`The median of ${rounds} rounds; old is ${old}`, rows);
}

/** One load on both builds before the next, so that both meet the same machine. */
async function measure(turn, handler, options, results) {
  for (const [load, run] of Object.entries(loads)) {
    for (const build of turn) {
      const { perSecond, cpuUs } = await run(build, handler, options);
      results.add(`${load}, tasks/s`, build.name, perSecond);
      results.add(`${load}, server CPU us/task`, build.name, cpuUs);
    }
  }
  for (const build of turn) {
    const { p50, p99 } = await latency(build, handler, options);
    results.add('submit to handler at 200 tasks/s: p50, ms', build.name, p50);
    results.add('submit to handler at 200 tasks/s: p99, ms', build.name, p99);
  }
}
