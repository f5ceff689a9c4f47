import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { attacks } from './attacks/attacks.mjs';
import { startServer } from './attacks/servers.mjs';
import { startModule, stop } from './shared/processes.mjs';
import { below, Results } from './shared/results.mjs';

export const summary = 'memory and health of each server while peers hold what they can';

/** `help` is for `npm run bench -- NAME --help`. */
export const options = {
  rounds: { type: 'string', default: '3', help: 'Rounds of each attack' },
  seconds: { type: 'string', default: '10', help: 'Seconds of each attack' },
  attack: { type: 'string', help: 'Run this attack alone' },
  old: { type: 'string', help: 'Compare with the build in this directory' },
};

const prober = fileURLToPath(new URL('./attacks/prober.mjs', import.meta.url));
const attacker = fileURLToPath(new URL('./attacks/attacker.mjs', import.meta.url));
const memory = 'highest memory (VmRSS), MB';
const failed = 'health calls that failed';
const p99 = 'health call p99, ms';
const slowest = 'slowest health call, ms';

/** Every attack meets a fresh server; a process of its own calls /healthz all the time. */
export async function run({ args, root, report, note }) {
  const { values } = parseArgs({ args, options });
  const names = Object.keys(attacks).filter((name) => !values.attack || name === values.attack);
  if (names.length === 0) {
    throw new Error(`There is no attack ${values.attack}; use ${Object.keys(attacks).join(', ')}`);
  }
  const builds = { millrace: root, ...(values.old && { old: values.old }) };
  const results = Object.fromEntries(names.map((name) => [name, new Results()]));
  for (let round = 1; round <= Number(values.rounds); round++) {
    for (const name of names) {
      for (const [build, path] of Object.entries(builds)) {
        const found = await measure(path, name, Number(values.seconds) * 1_000);
        for (const [what, value] of Object.entries(found)) results[name].add(what, build, value);
      }
    }
    note(`round ${round} of ${values.rounds}: load average ${loadavg()[0].toFixed(1)}`);
  }
  for (const name of names) report(attacks[name].title, results[name].table(Object.keys(builds)));
  const targets = names.flatMap((name) => [
    below(`${name}: ${memory}`, 400, results[name].of(memory, 'millrace')),
    below(`${name}: ${p99}`, 250, results[name].of(p99, 'millrace')),
    below(`${name}: health calls that failed`, 1, results[name].of(failed, 'millrace')),
  ]);
  report('Targets', targets);
}

async function measure(root, name, durationMs) {
  const attack = attacks[name];
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  chmodSync(home, 0o755);
  const server = await startServer(attack.server, root, home);
  try {
    await attack.prepare?.(server);
    const before = residentMegabytes(server.pid);
    const probe = startModule(prober, [server.http]);
    const peer = startModule(attacker, [name, JSON.stringify(server)]);
    let highest = before;
    const end = performance.now() + durationMs;
    while (performance.now() < end) {
      highest = Math.max(highest, residentMegabytes(server.pid));
      await sleep(50);
    }
    const calls = await reportOf(probe);
    const answers = await reportOf(peer);
    await Promise.all([stop(probe), stop(peer)]);
    return {
      'memory before, MB': before,
      [memory]: highest,
      'calls of the attack refused': answers.refused,
      'health calls': calls.count,
      [failed]: calls.failed,
      'health call p50, ms': calls.p50,
      [p99]: calls.p99,
      [slowest]: calls.slowest,
    };
  } finally {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

function reportOf(child) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`a part of the benchmark ended with ${code}`)));
    child.send('report');
  });
}

function residentMegabytes(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}
