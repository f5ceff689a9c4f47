import { mkdtempSync } from 'node:fs';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { expectSchema } from './support/client.js';
import { startDaemon, type TestDaemon, type TestOptions } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.dispose();
  daemon = undefined;
});

async function start(options: TestOptions = {}) {
  daemon = await startDaemon(options);
  const { api } = daemon;
  const history = async (query = '') => {
    const answer = await api.ok('GET', `/api/v1/metrics/history${query}`);
    expectSchema('MetricsHistory', answer);
    return answer;
  };
  const now = async () => {
    const answer = await api.ok('GET', '/api/v1/metrics');
    expectSchema('Metrics', answer);
    return answer;
  };
  return { api, now, history };
}

test('there are figures of the machine and the daemon, measured at the first question', async () => {
  const { now } = await start();
  const { taken_at, system, agents, daemon: own } = await now();
  expect(Math.abs(Date.parse(taken_at) - Date.now())).toBeLessThan(30_000);
  expect(system.cpu_pct).toBeGreaterThanOrEqual(0);
  expect(system.cpu_pct).toBeLessThanOrEqual(100);
  expect(system.mem_used).toBeGreaterThan(0);
  expect(system.mem_used).toBeLessThan(system.mem_total);
  expect(agents).toEqual([]);
  expect(own.rss).toBeGreaterThan(10_000_000);
  expect(own.uptime_s).toBeGreaterThan(0);
});

test('the first sample is recorded at the start, and is still there after a restart', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-metrics-'));
  const first = await start({ home });
  const count = async ({ history }: typeof first) => (await history('?since=1h')).samples.length;
  await expect.poll(() => count(first), { timeout: 60_000 }).toBeGreaterThan(0);
  await daemon!.stop();
  const second = await start({ home, flags: { metrics: 'off' } });
  const stored = await count(second);
  expect(stored).toBeGreaterThan(0);
  expect((await second.now()).system.cpu_pct).not.toBeNull();
  expect(await count(second)).toBe(stored);
});

test('metrics: when off nothing is recorded, and current usage is reported', async () => {
  const { now, history } = await start({ flags: { metrics: 'off' } });
  expect((await now()).agents).toEqual([]);
  expect(await history()).toEqual({ samples: [], step_s: 60 });
});

test('since and step are heeded, and what they cannot be is refused', async () => {
  const { api, history } = await start();
  expect((await history('?since=6h')).step_s).toBe(15);
  expect((await history('?since=6h&step=5m')).step_s).toBe(300);
  expect((await history('?since=7d&step=1')).step_s).toBe(420);
  const later = new Date(Date.now() + 3_600_000).toISOString();
  expect((await history(`?since=${later}`)).samples).toEqual([]);
  for (const query of ['since=soon', 'since=0h', 'step=0', 'step=5w', 'step=1.5', 'sincee=1h']) {
    await api.refused({ path: `/api/v1/metrics/history?${query}` }, 400, 'INVALID_REQUEST');
  }
});

test.runIf(platform() === 'linux')('a live agent is counted with its children', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-metrics-'));
  const clis = new FakeClis(join(home, 'bin'));
  // A parent that idles and a child that works.
  clis.add(
    'claude',
    `const { spawn } = require('node:child_process');
     spawn(process.execPath, ['-e', 'for (;;) Math.random()'], { stdio: 'ignore' });
     console.log('busy'); setInterval(() => {}, 1000);`,
  );
  const { api, now } = await start({ home, path: `${clis.path}:/usr/bin:/bin` });
  const body = { prompt: 'x', backend: 'claude', driver: 'headless', cwd: home };
  const spawned = await api.send({ method: 'POST', path: '/api/v1/spawn', body });
  expect([spawned.status, spawned.text]).toEqual([201, spawned.text]);
  const { id } = spawned.json;
  try {
    let agent: { id: string; cpu_pct: number | null; rss: number | null } | undefined;
    const busy = async () => {
      [agent] = (await now()).agents;
      return agent?.cpu_pct ?? 0;
    };
    await expect.poll(busy, { timeout: 60_000, interval: 300 }).toBeGreaterThan(5);
    expect(agent!.id).toBe(id);
    // Two processes of Node.
    expect(agent!.rss).toBeGreaterThan(50_000_000);
  } finally {
    await api.ok('DELETE', `/api/v1/sessions/${id}`);
  }
  expect((await api.ok('GET', '/api/v1/metrics')).agents.length).toBeLessThanOrEqual(1);
  await expect.poll(async () => (await now()).agents, { timeout: 60_000 }).toEqual([]);
});
