import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from './support/markdown.js';
import { anyPorts, Up } from './support/up.js';

/* The rules and the dashboard in packaging/, held against what the servers export. */

const prometheus = join(root, 'packaging', 'prometheus');
const alerts = parse(readFileSync(join(prometheus, 'alerts.yaml'), 'utf8')) as {
  groups: { rules: { alert: string; expr: string }[] }[];
};
const dashboards = ['millrace.json', 'daemon.json'].map(
  (name) =>
    JSON.parse(readFileSync(join(root, 'packaging', 'grafana', name), 'utf8')) as {
      panels: { targets: { expr: string }[] }[];
    },
);

let data = '';
let up: Up;
const exported: string[] = [];
beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), 'millrace-monitoring-'));
  up = await new Up(data, anyPorts, false).ready();
  for (const url of [up.url('queue', 'metrics'), up.url('db')]) {
    exported.push(await (await fetch(`${url}/metrics`)).text());
  }
  const token = readFileSync(join(data, 'daemon.token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}` };
  exported.push(await (await fetch(`${up.url('daemon')}/metrics`, { headers })).text());
});
afterAll(async () => {
  await up.stop();
  rmSync(data, { recursive: true, force: true });
});

function hasPromtool(): boolean {
  return spawnSync('promtool', ['--version']).error === undefined;
}

test('every metric of the alerts and the dashboard is exported', () => {
  const types = exported.join('').matchAll(/^# TYPE (\S+) (\S+)$/gm);
  const known = new Set(
    Array.from(types).flatMap(([, name, type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
    ),
  );
  const rules = alerts.groups.flatMap((group) => group.rules.map(({ expr }) => expr));
  const panels = dashboards.flatMap((dashboard) =>
    dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  );
  expect([rules.length, panels.length].every((count) => count >= 10)).toBe(true);
  const used = [...rules, ...panels].flatMap((expr) => expr.match(/millrace_\w+/g) ?? []);
  expect(used.filter((name) => !known.has(name))).toEqual([]);
  // The dashboard of the daemon has every series of it.
  const own = [...known].filter((name) => /^millrace_daemon_(?!process)/.test(name!));
  const shown = own.filter((name) => used.includes(name!) || name!.endsWith('_sum'));
  expect([own.length > 5, own.filter((name) => !shown.includes(name))]).toEqual([true, []]);
});

test('metrics are what promtool calls good', (context) => {
  if (!hasPromtool()) context.skip('promtool is not installed');
  for (const input of exported) {
    const run = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
    expect(run.status, run.stderr).toBe(0);
  }
});

test('rules and scrape config are what promtool calls good', (context) => {
  if (!hasPromtool()) context.skip('promtool is not installed');
  for (const args of [
    ['check', 'rules', 'alerts.yaml'],
    ['check', 'config', 'prometheus.yaml'],
    ['test', 'rules', 'alerts.test.yaml'],
  ]) {
    const run = spawnSync('promtool', args, { cwd: prometheus, encoding: 'utf8' });
    expect(run.status, run.stderr + run.stdout).toBe(0);
  }
});
