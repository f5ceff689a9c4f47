import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Load, startHandler } from './load.mjs';
import { startSystem } from './system.mjs';

const sampleEveryMs = 5_000;
/** A server may grow until its caches are full; from then on it must not. */
const warmUpMs = 120_000;
const mostGrowthMb = 60;
const mostMoreHandles = 60;

export async function soak({ root, minutes, faultEveryS, note }) {
  const handler = await startHandler();
  const system = await startSystem({ root, handlerPort: handler.port, note });
  const load = new Load(system, handler);
  const lives = new Map();
  const latencies = [];
  const faults = [];
  try {
    await load.prepare();
    const running = load.run();
    running.catch((error) => faults.push(error.message));
    const started = performance.now();
    const end = started + minutes * 60_000;
    const order = ['queue', 'daemon', 'db'];
    let [kills, nextKill] = [0, started + faultEveryS * 1_000];
    while (performance.now() < end && faults.length === 0) {
      await sleep(Math.min(sampleEveryMs, end - performance.now()));
      sample(system, lives);
      latencies.push({ at: performance.now() - started, waits: load.waits });
      load.waits = new Map();
      if (faultEveryS === 0 || performance.now() < nextKill) continue;
      const name = order[kills++ % order.length];
      const pid = system.parts().get(name);
      if (pid) process.kill(pid, 'SIGKILL');
      note(`${Math.round((performance.now() - started) / 1_000)} s: killed the ${name}`);
      nextKill += faultEveryS * 1_000;
    }
    load.end();
    await running.catch(() => undefined);
    note('the load has ended; counting');
    faults.push(...(await load.faults()), ...driftOf(lives));
    return { lines: report({ load, lives, latencies, kills, minutes }), faults };
  } finally {
    const code = await system.stop();
    handler.stop();
    if (code !== 0) faults.push(`ctl up ended with ${code}`);
  }
}

/** Memory and open files of each server, by process, so that a restart begins a new life. */
function sample(system, lives) {
  for (const [name, pid] of system.parts()) {
    try {
      const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      const handles = readdirSync(`/proc/${pid}/fd`).length;
      const life = lives.get(pid) ?? { name, bornAt: performance.now(), samples: [] };
      life.samples.push({ at: performance.now() - life.bornAt, mb: Number(kb) / 1_024, handles });
      lives.set(pid, life);
    } catch (error) {
      // It was killed between the list and the look.
      if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error;
    }
  }
}

function driftOf(lives) {
  return [...lives.values()].flatMap(({ name, samples }) => {
    const warm = samples.filter(({ at }) => at > warmUpMs);
    if (warm.length < 12) return [];
    const third = Math.floor(warm.length / 3);
    const [before, after] = [warm.slice(0, third), warm.slice(-third)];
    const grown = (key) =>
      median(after.map((one) => one[key])) - median(before.map((one) => one[key]));
    const faults = [];
    if (grown('mb') > mostGrowthMb) faults.push(`the ${name} grew by ${grown('mb').toFixed(0)} MB`);
    if (grown('handles') > mostMoreHandles)
      faults.push(`the ${name} leaks files: ${grown('handles')}`);
    return faults;
  });
}

function report({ load, lives, latencies, kills, minutes }) {
  const { tasks, records, sessions } = load.counts();
  const kinds = [...new Set(latencies.flatMap(({ waits }) => [...waits.keys()]))];
  const half = Math.ceil(latencies.length / 2);
  const of = (part, kind) => part.flatMap(({ waits }) => waits.get(kind) ?? []);
  return [
    `${minutes} minutes, ${kills} kills: ${tasks} tasks, ${records} records and ${sessions} agents accounted for; ${load.missed} calls were made while a server was away and made again.`,
    '',
    '| Call | p50 first half, ms | p50 second half | p99 first half | p99 second half |',
    '| --- | --- | --- | --- | --- |',
    ...kinds.map((kind) => {
      const [first, second] = [of(latencies.slice(0, half), kind), of(latencies.slice(half), kind)];
      const cells = [at(first, 0.5), at(second, 0.5), at(first, 0.99), at(second, 0.99)];
      return `| ${kind} | ${cells.join(' | ')} |`;
    }),
    '',
    '| Server | Lived, min | Memory at first, MB | at last | Handles at first | at last |',
    '| --- | --- | --- | --- | --- | --- |',
    ...[...lives.values()].map(({ name, samples }) => {
      const [first, last] = [samples[Math.min(3, samples.length - 1)], samples.at(-1)];
      const age = (last.at / 60_000).toFixed(1);
      return `| ${name} | ${age} | ${first.mb.toFixed(0)} | ${last.mb.toFixed(0)} | ${first.handles} | ${last.handles} |`;
    }),
  ];
}

function at(list, share) {
  if (list.length === 0) return '-';
  const sorted = list.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1);
}

function median(list) {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
}
