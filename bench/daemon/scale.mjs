/** The daemon with many sessions and transcripts. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askAgain, differences, startMillrace } from '../transcripts/contestants.mjs';
import { generate } from '../transcripts/generate.mjs';
import { below, atLeast } from '../shared/results.mjs';
import { callDaemon } from './call.mjs';

const measures = {
  scan: 'first scan of all transcripts, s',
  scanRate: 'first scan, GB a minute of CPU',
  again: 'spend with nothing new, ms',
  spawn: 'CPU of the daemon for one session, ms',
  list: 'GET /api/v1/sessions, ms',
  listCpu: 'CPU of the daemon for one of these, ms',
  restart: 'CPU of a restart, s',
  cpu: 'CPU when idle, % of a core',
  memory: 'memory with all of them, MB',
};
const name = 'millrace';
const listCount = 50;
/** Spawns at the same time. */
const spawnCount = 4;
const settleMs = (idleSeconds) => Math.min(5_000, idleSeconds * 1_000);

export const scaleOptions = {
  sessions: { type: 'string', default: '1000', help: 'Sessions that have ended' },
  live: { type: 'string', default: '10', help: 'Sessions that run' },
  files: { type: 'string', default: '10000', help: 'Files of transcripts' },
  gigabytes: { type: 'string', default: '5', help: 'Size of the transcripts' },
};

/** A headless agent that ends at once, or waits when its prompt says so. */
const agent = `#!/bin/sh
case "$*" in *wait*) exec sleep 86400;; esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
`;

/**
 * Measures once: the first scan, then the sessions, then a daemon that was started again and has
 * nothing to do. Returns what the daemon counted wrongly.
 */
export async function measureScale({ root, home, values, idleSeconds, note }, results) {
  const bin = join(home, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'claude'), agent);
  chmodSync(join(bin, 'claude'), 0o755);
  const variables = { PATH: `${bin}:${process.env.PATH}` };
  const megabytes = Number(values.gigabytes) * 1_000;
  const truth = generate(home, megabytes, Number(values.files));
  note(`${(truth.bytes / 1e9).toFixed(3)} GB in ${truth.files} files`);
  const add = (measure, value) =>
    value !== undefined && results.add(measures[measure], name, value);
  const data = join(home, 'data');
  const first = await startMillrace(root, home, data, truth, variables);
  const sessions = { count: Number(values.sessions), liveCount: Number(values.live) };
  try {
    const { cpuMs } = first.daemon;
    add('scan', first.ms / 1_000);
    if (cpuMs !== undefined) add('scanRate', truth.bytes / 1e9 / (cpuMs / 60_000));
    const spawnCpuMs = await spawnAll(first.daemon, home, sessions);
    if (spawnCpuMs !== undefined) add('spawn', spawnCpuMs / sessions.count);
  } finally {
    await first.daemon.stop();
  }
  const second = await startMillrace(root, home, data, truth, variables);
  try {
    await sleep(settleMs(idleSeconds));
    if (second.daemon.cpuMs !== undefined) add('restart', second.daemon.cpuMs / 1_000);
    const { cpuMs } = await second.daemon.idle(idleSeconds);
    if (cpuMs !== undefined) add('cpu', cpuMs / 10);
    add('memory', second.daemon.residentMb);
    const { ms, cpuMs: listCpuMs } = await listTime(second.daemon, sessions);
    add('list', ms);
    add('listCpu', listCpuMs);
    const again = await askAgain(second.daemon);
    add('again', again.ms);
    return [first, second, again].flatMap(({ figures }) => differences(name, figures, truth));
  } finally {
    await stopLive(second.daemon);
    await second.daemon.stop();
  }
}

export function judgeScale(results) {
  const of = (measure) => results.of(measures[measure], name);
  return [
    atLeast(measures.scanRate, 1.2, of('scanRate')),
    below(measures.list, 20, of('list')),
    below(measures.cpu, 1, of('cpu')),
  ];
}

/** Starts all sessions and waits for the end of those that end; returns the daemon's CPU time. */
async function spawnAll(daemon, home, { count, liveCount }) {
  const before = daemon.cpuMs;
  let next = 0;
  const work = async () => {
    while (next < count) {
      const prompt = next++ < liveCount ? 'wait' : 'work';
      const request = { backend: 'claude', driver: 'headless', cwd: home, worktree: false };
      await call(daemon, 'POST', '/api/v1/spawn', { ...request, prompt });
    }
  };
  await Promise.all(Array.from({ length: spawnCount }, work));
  for (;;) {
    const { sessions } = await call(daemon, 'GET', '/api/v1/sessions');
    if (sessions.filter(({ pid }) => pid !== null).length <= liveCount) break;
    await sleep(200);
  }
  return before === undefined ? undefined : daemon.cpuMs - before;
}

/** The median of calls one after the other. */
async function listTime(daemon, { count }) {
  const times = [];
  const before = daemon.cpuMs;
  for (let i = 0; i < listCount; i++) {
    const startedAt = performance.now();
    const { sessions } = await call(daemon, 'GET', '/api/v1/sessions');
    times.push(performance.now() - startedAt);
    if (sessions.length !== count) throw new Error(`${sessions.length} sessions, not ${count}`);
  }
  const ms = times.toSorted((a, b) => a - b)[listCount / 2];
  return { ms, cpuMs: before === undefined ? undefined : (daemon.cpuMs - before) / listCount };
}

async function stopLive(daemon) {
  const { sessions } = await call(daemon, 'GET', '/api/v1/sessions');
  const live = sessions.filter(({ pid }) => pid !== null);
  await Promise.all(live.map(({ id }) => call(daemon, 'POST', `/api/v1/sessions/${id}:stop`, {})));
}

function call({ url }, method, path, body) {
  return callDaemon(url, method, path, body);
}
