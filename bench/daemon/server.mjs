/** The daemon under test: `ctl daemon serve` as a user starts it, in a home of its own. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { startProgram, stop } from '../shared/processes.mjs';

/** Nothing listens at port 9: the local model of this machine is not part of what is measured. */
const flags = [
  '--no-auth',
  '--listen',
  '127.0.0.1:0',
  '--backends-local-url',
  'http://127.0.0.1:9',
];

export class Daemon {
  constructor(child, url, readyMs, environment) {
    this.child = child;
    this.url = url;
    this.readyMs = readyMs;
    this.environment = environment;
  }

  /** Resolves when `/healthz` has answered; `readyMs` is how long that took from the start. */
  static async start(root, home, variables = {}) {
    mkdirSync(home, { recursive: true });
    const environment = { PATH: process.env.PATH, HOME: home, ...variables };
    const log = openSync(join(home, 'daemon.log'), 'a');
    const startedAt = performance.now();
    const args = [join(root, 'bin', 'ctl'), 'daemon', 'serve', ...flags];
    const stdio = ['ignore', 'pipe', log];
    const child = startProgram(process.execPath, args, { env: environment, stdio });
    closeSync(log);
    let url;
    for await (const line of createInterface({ input: child.stdout })) {
      ({ url } = JSON.parse(line));
      if (url) break;
    }
    if (!url) {
      const said = readFileSync(join(home, 'daemon.log'), 'utf8');
      throw new Error(`ctl daemon serve ended before it was ready: ${said}`);
    }
    child.stdout.resume();
    const answer = await fetch(`${url}/healthz`);
    if (!answer.ok) throw new Error(`/healthz answers ${answer.status}`);
    return new Daemon(child, url, performance.now() - startedAt, environment);
  }

  get residentMb() {
    if (platform() === 'linux') return statusOf(this.child.pid, 'VmRSS') / 1_024;
    const args = ['-o', 'rss=', '-p', String(this.child.pid)];
    return Number(execFileSync('ps', args, { encoding: 'utf8' })) / 1_024;
  }

  /** How often it woke up and how much CPU it took while nobody asked for anything. */
  async idle(seconds) {
    if (platform() !== 'linux') {
      await sleep(seconds * 1_000);
      return {};
    }
    const before = activity(this.child.pid);
    await sleep(seconds * 1_000);
    const after = activity(this.child.pid);
    return {
      wakeUps: (after.wakeUps - before.wakeUps) / seconds,
      cpuMs: (after.cpuMs - before.cpuMs) / seconds,
    };
  }

  /** CPU time since the start; undefined where the system does not tell. */
  get cpuMs() {
    return platform() === 'linux' ? activity(this.child.pid).cpuMs : undefined;
  }

  stop() {
    return stop(this.child);
  }
}

/** A number of /proc/.../status. */
function statusOf(path, name) {
  const text = readFileSync(`/proc/${path}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
}

/** Each time that a thread gave the processor away it had been woken up before. */
function activity(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const wakeUps = tasks
    .map((task) => statusOf(`${pid}/task/${task}`, 'voluntary_ctxt_switches'))
    .reduce((sum, count) => sum + count, 0);
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // In hundredths of a second, user and system.
  return { wakeUps, cpuMs: (Number(fields[11]) + Number(fields[12])) * 10 };
}
