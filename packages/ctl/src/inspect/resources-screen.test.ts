import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { historyScreen } from './history-screen.js';
import { resourcesScreen } from './resources-screen.js';

const example = contractExample('Metrics');
const [agent] = example.agents;
const names = new Map([[agent!.id, 'retry-upload']]);
const metrics = {
  ...example,
  agents: [
    { id: '01K9ZQ5A2N4P6R8S0T1V3W5X7Y', cpu_pct: null, rss: null, context_tokens: null },
    agent!,
  ],
};
const screen = (columns: number, shown = metrics) =>
  resourcesScreen(shown, names, { columns, paint: plain });

test('at 80 columns there are the figures', () => {
  expect(screen(80)).toBe(
    `
MACHINE
CPU      37.5%
Memory   38.4%  6 GiB of 15.6 GiB
Load     1.42
Daemon   94 MiB, p99 of its event loop 4.2ms, up 1d
Scan     25% of the transcripts read, 12s left

AGENT                       CPU    MEMORY   CONTEXT  ID
retry-upload                21.5%  393 MiB  118k     01K9ZQ4M7T3V8X2B6C0D5E1F9G
01K9ZQ5A2N4P6R8S0T1V3W5X7Y      -        -     -
`.slice(1),
  );
});

test('at 140 columns there is room for bars', () => {
  expect(screen(140)).toBe(
    `
MACHINE
CPU      37.5%  ########............
Memory   38.4%  ########............  6 GiB of 15.6 GiB
Load     1.42
Daemon   94 MiB, p99 of its event loop 4.2ms, up 1d
Scan     25% of the transcripts read, 12s left

AGENT                       CPU                          MEMORY   CONTEXT  ID
retry-upload                21.5%  ####................  393 MiB  118k     01K9ZQ4M7T3V8X2B6C0D5E1F9G
01K9ZQ5A2N4P6R8S0T1V3W5X7Y      -                              -     -
`.slice(1),
  );
});

test('a machine without agents says so, and what is unknown is no zero', () => {
  const bare = structuredClone({ ...example, agents: [] });
  bare.system = { ...bare.system, cpu_pct: null, load: null };
  bare.daemon.event_loop_p99_ms = null;
  const text = screen(80, bare);
  expect(text).toContain('No live agents.\n');
  expect(text).toMatch(/^CPU +-$/m);
  expect(text).toMatch(/^Load +-$/m);
  expect(text).toContain('event loop -,');
});

const start = Date.parse('2026-01-15T06:00:00.000Z');
const past: DaemonSchema<'MetricsHistory'> = {
  step_s: 900,
  samples: [0, 1, 2, 3, 6, 7, 8, 9].map((at) => ({
    ...example,
    taken_at: new Date(start + at * 900_000).toISOString(),
    system: { ...example.system, cpu_pct: at * 10, load: at === 3 ? null : at / 4 },
    agents: at < 3 ? [] : [{ ...agent!, cpu_pct: at === 9 ? 150 : 25 }],
  })),
};
const hourMs = 3_600_000;
const history = (columns: number, shown = past, now = start + 24 * hourMs) =>
  historyScreen(shown, names, now, { columns, paint: plain });

const charts = `
2026-01-15 06:00 to 2026-01-15 08:30 UTC, 15m a bar

MACHINE                 MIN     MEAN    MAX
CPU         ▁▂▃▃  ▆▆▇█      0%     45%     90%
Memory      ████  ████   6 GiB   6 GiB   6 GiB
Load        ▁▂▃   ▆▆▇█       0    1.18    2.25
Daemon      ████  ████  94 MiB  94 MiB  94 MiB
Event loop  ████  ████   4.2ms   4.2ms   4.2ms

AGENT CPU                 MIN  MEAN  MAX
retry-upload     ▂  ▂▂▂█  25%  50%   150%
`.slice(1);

test('history at 80 columns is a small chart for each figure, with gaps where nothing is known', () => {
  expect(history(80)).toBe(charts);
});

test('history at 140 columns shows the same and has room for longer charts', () => {
  expect(history(140)).toBe(charts);
  const long = Array.from({ length: 200 }, (_, at) => ({
    ...example,
    taken_at: new Date(start + at * 900_000).toISOString(),
  }));
  const widest = Math.max(
    ...history(140, { ...past, samples: long })
      .split('\n')
      .map((line) => line.length),
  );
  expect(widest).toBeGreaterThan(100);
  expect(widest).toBeLessThanOrEqual(140);
});

test('history ends now, not at the end of a bar that is still being recorded', () => {
  const last = start + 9 * 900_000;
  expect(history(80, past, last + 120_000)).toMatch(/^2026-01-15 06:00 to 2026-01-15 08:17 UTC/);
  // The clock of the daemon may be ahead of ours.
  expect(history(80, past, last - hourMs)).toMatch(/ to 2026-01-15 08:15 UTC/);
});

test('history starts with the first bar shown', () => {
  const samples = Array.from({ length: 200 }, (_, at) => ({
    ...example,
    taken_at: new Date(start + at * 900_000).toISOString(),
  }));
  const text = history(80, { ...past, samples }, start + 1000 * hourMs);
  expect(text).toMatch(/^2026-01-17 00:30 to 2026-01-17 08:00 UTC, 15m a bar/);
});

test('where nothing was recorded it says how to find out why', () => {
  expect(history(80, { step_s: 60, samples: [] })).toBe(
    'Nothing was recorded in this time. Check with `ctl config metrics` that recording is on.\n',
  );
});
