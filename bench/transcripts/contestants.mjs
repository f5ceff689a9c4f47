/** Those who count: each tells its figures, how long it took and the most memory it had. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { platform } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Daemon } from '../daemon/server.mjs';
import { versionOf } from '../engine/peers.mjs';

const require = createRequire(import.meta.url);

export function ccusageProblem() {
  if (versionOf('ccusage') !== undefined) return undefined;
  return 'not installed; "npm run bench -- transcripts --install" does it.';
}

/** One whole run, as a person would start it. It remembers nothing from the last. */
export async function runCcusage(home) {
  const places = require.resolve.paths('ccusage');
  const program = places.map((place) => join(place, 'ccusage/dist/index.js')).find(existsSync);
  const args = ['daily', '--json', '--offline', '--breakdown', '--timezone', 'UTC'];
  const startedAt = performance.now();
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH, HOME: home, TZ: 'UTC', LOG_LEVEL: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece) => (text += piece));
  let code;
  const closed = new Promise((resolve) => child.on('close', (status) => resolve((code = status))));
  let peakMb;
  while (code === undefined) {
    peakMb = peakOf(child.pid) ?? peakMb;
    await Promise.race([closed, sleep(20)]);
  }
  if (code !== 0) throw new Error(`ccusage ended with ${code}`);
  return { ms: performance.now() - startedAt, peakMb, figures: ccusageFigures(JSON.parse(text)) };
}

function ccusageFigures({ daily }) {
  const figures = { byDay: new Map(), byModel: new Map() };
  for (const { date, modelBreakdowns } of daily) {
    for (const { modelName, inputTokens: input, outputTokens: output } of modelBreakdowns) {
      add(figures.byDay, date, { input, output });
      add(figures.byModel, modelName, { input, output });
    }
  }
  return figures;
}

/** The daemon from its start until it tells all there is to tell. */
export async function startMillrace(root, home, data, truth, variables = {}) {
  const startedAt = performance.now();
  const daemon = await Daemon.start(root, home, {
    TZ: 'UTC',
    XDG_DATA_HOME: data,
    ...variables,
  });
  try {
    for (;;) {
      const rollup = await spend(daemon);
      const isWhole = rollup.input_tokens >= truth.input && rollup.output_tokens >= truth.output;
      if (isWhole) return { daemon, ms: performance.now() - startedAt, figures: oursOf(rollup) };
      await sleep(20);
    }
  } catch (error) {
    await daemon.stop();
    throw error;
  }
}

/** Asked once more, with nothing new to read. */
export async function askAgain(daemon) {
  // What was read a moment ago is taken for fresh, and would cost nothing.
  await sleep(1_500);
  const startedAt = performance.now();
  const rollup = await spend(daemon);
  return { ms: performance.now() - startedAt, figures: oursOf(rollup) };
}

async function spend({ url }) {
  const answer = await fetch(`${url}/api/v1/spend`);
  if (!answer.ok) throw new Error(`/api/v1/spend answers ${answer.status}`);
  return answer.json();
}

function oursOf({ by_day: days, by_model: perModel }) {
  const mapOf = (rows) =>
    new Map(
      rows.map(({ key, input_tokens: input, output_tokens: output }) => [key, { input, output }]),
    );
  return { byDay: mapOf(days), byModel: mapOf(perModel) };
}

function add(map, key, { input, output }) {
  const sum = map.get(key) ?? { input: 0, output: 0 };
  map.set(key, { input: sum.input + input, output: sum.output + output });
}

/** The most memory that a process has had so far; undefined when the system does not tell. */
export function peakOf(pid) {
  if (platform() !== 'linux') return undefined;
  try {
    const kib = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib && Number(kib) / 1_024;
  } catch {
    // It has ended.
    return undefined;
  }
}

/** Where two sets of figures differ, in words. */
export function differences(name, figures, truth) {
  return ['byDay', 'byModel'].flatMap((table) =>
    [...new Set([...figures[table].keys(), ...truth[table].keys()])].flatMap((key) => {
      const [seen, right] = [figures[table].get(key), truth[table].get(key)];
      if (seen?.input === right?.input && seen?.output === right?.output) return [];
      return `${name}: ${key} is ${JSON.stringify(seen)}, not ${JSON.stringify(right)}`;
    }),
  );
}
