import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Database } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memorySessions, type MemorySessions } from '../sessions/sessions.test-support.js';
import { ManualClock } from './manual-clock.test-support.js';
import { History } from './history.js';
import { Metrics, type MetricsParts } from './metrics.js';
import type { ProcessRow } from './processes.js';
import { tiers } from './tiers.js';

let directory: string;
let clock: ManualClock;
let database: Database;
let sessions: MemorySessions;
let processes: ProcessRow[];
let samples: number;
let metrics: Metrics;
const log = memoryLog();

/** Waits as long as a busy machine may take. */
const eventually = <Value>(read: () => Value) => expect.poll(read, { timeout: 60_000 });

beforeEach(async () => {
  log.lines.length = 0;
  directory = mkdtempSync(join(tmpdir(), 'mr-metrics-'));
  clock = new ManualClock();
  database = await open(directory, { clock: { ...systemClock, now: clock.now } });
  sessions = memorySessions({ clock });
  processes = [];
  samples = 0;
  metrics = await openMetrics();
});
afterEach(async () => {
  await metrics.close();
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function openMetrics(partial: Partial<MetricsParts> = {}): Promise<Metrics> {
  return Metrics.open({
    database,
    clock,
    log,
    sessions,
    isRecording: true,
    // Two cores, of which a quarter is busy.
    cpuTimes: () => ({ busyMs: clock.monotonic() / 2, totalMs: clock.monotonic() * 2 }),
    memoryAndLoad: () => ({ mem_used: 600, mem_total: 1_000, load: 1.5 }),
    processes: async () => {
      samples += 1;
      return processes;
    },
    daemonRss: () => 90_000_000,
    loopP99Ms: () => 4.2,
    letGo: () => {},
    ...partial,
  });
}

const row = (pid: number, parent: number, cpuMs: number): ProcessRow => ({
  pid,
  parent,
  session: 0,
  cpuMs,
  rss: 1_000,
});

const latest = async () => (await database.collection('metrics').findByKey('latest'))?.data;

/** Lets the recorder take this many samples, one each 15 seconds. */
async function record(count: number): Promise<void> {
  for (let each = 0; each < count; each++) {
    await eventually(() => clock.timers.length).toBe(1);
    clock.ring();
  }
  await eventually(() => clock.timers.length).toBe(1);
}

test('a first look takes a moment, so that there is something to measure', async () => {
  expect(await metrics.read()).toEqual({
    taken_at: '2026-01-15T09:30:00.200Z',
    system: { cpu_pct: 25, mem_used: 600, mem_total: 1_000, load: 1.5 },
    agents: [],
    daemon: { rss: 90_000_000, event_loop_p99_ms: 4.2, uptime_s: 0.2 },
  });
  expect(samples).toBe(0);
});

test('each live agent has the figures of its whole tree, and those who ended are not there', async () => {
  const live = sessions.add({ pid: 10, status: 'working', context_tokens: 118_000 });
  const gone = sessions.add({ pid: 99, status: 'idle' });
  const none = sessions.add({ pid: null, status: 'spawning' });
  sessions.add({ pid: 10, status: 'done', exit_code: 0 });
  sessions.add({ pid: null, status: 'rate_limited', exit_code: 1 });
  processes = [row(10, 1, 1_000), row(11, 10, 500)];
  await metrics.read();
  clock.pass(10_000);
  // One more child, and 2.5 seconds of work on 10 seconds.
  processes = [row(10, 1, 2_000), row(11, 10, 1_500), row(12, 11, 500)];
  const { agents } = await metrics.read();
  const unknown = { cpu_pct: null, rss: null, context_tokens: null };
  expect(agents).toEqual(
    [
      { id: live.id, cpu_pct: 25, rss: 3_000, context_tokens: 118_000 },
      { id: gone.id, ...unknown },
      { id: none.id, ...unknown },
    ].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  );
});

test('metrics: frequent callers share one measurement', async () => {
  sessions.add({ pid: 10, status: 'working' });
  const [first, ...others] = await Promise.all(Array.from({ length: 20 }, () => metrics.read()));
  const before = samples;
  expect(await metrics.read()).toBe(others.at(-1));
  expect(samples).toBe(before);
  expect(before).toBeLessThan(5);
  clock.pass(600);
  expect((await metrics.read()).taken_at).not.toBe(first!.taken_at);
});

test('a look that was long ago is not measured against', async () => {
  sessions.add({ pid: 10, status: 'working' });
  processes = [row(10, 1, 0)];
  await metrics.read();
  clock.pass(3_600_000);
  processes = [row(10, 1, 3_600_000)];
  const { agents, taken_at } = await metrics.read();
  expect(agents[0]!.cpu_pct).toBe(0);
  expect(taken_at).toBe('2026-01-15T10:30:00.400Z');
});

test('what a lost child had used is not counted as less than nothing', async () => {
  sessions.add({ pid: 10, status: 'working' });
  processes = [row(10, 1, 5_000)];
  await metrics.read();
  clock.pass(1_000);
  processes = [row(10, 1, 100)];
  expect((await metrics.read()).agents[0]!.cpu_pct).toBe(0);
});

test('a system that hides its processes leaves the figures unknown, and is complained of once', async () => {
  metrics = await openMetrics({ processes: () => Promise.reject(new Error('no /proc')) });
  sessions.add({ pid: 10, status: 'working' });
  for (let each = 0; each < 3; each++) {
    expect((await metrics.read()).agents).toMatchObject([{ cpu_pct: null, rss: null }]);
    clock.pass(5_000);
  }
  expect(log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
});

test('a sample is recorded every 15 seconds, and the newest is there for those who watch', async () => {
  metrics.start();
  await record(8);
  expect(clock.timers[0]!.delayMs).toBeLessThanOrEqual(15_500);
  const { samples, step_s } = await metrics.history({ since: '1h' });
  expect(step_s).toBe(15);
  expect(samples.map(({ taken_at }) => taken_at.slice(14, 19))).toEqual([
    '30:00',
    '30:15',
    '30:30',
    '30:45',
    '31:00',
    '31:15',
    '31:30',
    '31:45',
    '32:00',
  ]);
  expect(samples[3]).toEqual({
    taken_at: '2026-01-15T09:30:45.000Z',
    system: { cpu_pct: 25, mem_used: 600, mem_total: 1_000, load: 1.5 },
    agents: [],
    daemon: { rss: 90_000_000, event_loop_p99_ms: 4.2, uptime_s: 45.5 },
  });
  expect(await latest()).toMatchObject({ taken_at: '2026-01-15T09:32:00.500Z' });
});

test('history is averaged over the step, and a stretch without a record is absent', async () => {
  const live = sessions.add({ pid: null, status: 'working', context_tokens: 100 });
  metrics.start();
  await record(3);
  sessions.set(live.id, { context_tokens: 200 });
  clock.pass(600_000);
  await record(1);
  const { samples, step_s } = await metrics.history({ since: '1h', step: '1m' });
  expect(step_s).toBe(60);
  expect(samples.map(({ taken_at, agents }) => [taken_at.slice(11, 19), agents])).toEqual([
    ['09:30:00', [{ id: live.id, cpu_pct: null, rss: null, context_tokens: 100 }]],
    ['09:41:00', [{ id: live.id, cpu_pct: null, rss: null, context_tokens: 200 }]],
  ]);
  const whole = await metrics.history({ since: '2h', step: '1d' });
  expect(whole.step_s).toBe(86_400);
  expect(whole.samples).toHaveLength(1);
  expect(whole.samples[0]!.agents[0]!.context_tokens).toBe(120);
  // No sample starts before the requested range.
  expect(whole.samples[0]!.taken_at >= '2026-01-15T07:00').toBe(true);
  expect((await metrics.history({ since: '2026-01-15T09:40:00Z' })).samples).toHaveLength(1);
  expect((await metrics.history({ since: '2027-01-01T00:00:00Z' })).samples).toEqual([]);
});

test('what is recorded outlives a restart and a recorder that was switched off', async () => {
  metrics.start();
  await record(2);
  await metrics.close();
  expect(clock.timers).toEqual([]);
  const before = await latest();
  clock.pass(60_000);
  metrics = await openMetrics({ isRecording: false });
  metrics.start();
  expect((await metrics.read()).system.cpu_pct).toBe(25);
  await metrics.close();
  expect(clock.timers).toEqual([]);
  expect((await metrics.history({})).samples).toHaveLength(1);
  expect(await latest()).toEqual(before);
});

test('old samples are thinned out and forgotten at last', async () => {
  metrics.start();
  const rows = () => database.readRows((all) => [...all.range(range)].length);
  const range = { start: Buffer.from('metrics:'), end: Buffer.from('metrics;') };
  await record(40);
  expect(rows()).toBe(41 + 11 + 2);
  const start = clock.now();
  clock.pass(tiers[0].retentionMs);
  await record(2);
  // The fine ones are gone, the minutes are left.
  expect((await metrics.history({ since: '1d', step: '15s' })).step_s).toBe(60);
  const since = new Date(start - 600_000).toISOString();
  expect((await metrics.history({ since, step: '30' })).samples.length).toBeGreaterThan(9);
  clock.pass(tiers[1].retentionMs);
  await record(2);
  expect((await metrics.history({ since: '2w', step: '10m' })).samples.length).toBeGreaterThan(2);
  clock.pass(tiers[2].retentionMs);
  await record(2);
  expect((await metrics.history({ since: '52w' })).samples.length).toBeLessThan(4);
  expect(rows()).toBeLessThan(12);
});

test('a long history is read in pieces, and none of it is lost or told twice', async () => {
  const history = new History(database);
  const sample = await metrics.read();
  const count = 1_200;
  const start = clock.now() - count * 15_000;
  await Promise.all(
    Array.from({ length: count }, (_, at) => {
      const taken_at = new Date(start + at * 15_000).toISOString();
      return history.add({ ...sample, taken_at, daemon: { ...sample.daemon, rss: at } });
    }),
  );
  const { samples, step_s } = await metrics.history({ since: '6h' });
  expect(step_s).toBe(15);
  expect(samples.map(({ daemon }) => daemon.rss)).toEqual(
    Array.from({ length: count }, (_, at) => at),
  );
  const wide = await metrics.history({ since: '6h', step: '1h' });
  expect(wide.samples.map(({ daemon }) => daemon.rss)).toEqual(
    [59.5, 239.5, 479.5, 719.5, 959.5, 1139.5].map(Math.round),
  );
});

test('a sample that cannot be kept is missing, and the next is taken all the same', async () => {
  let isBroken = true;
  metrics = await openMetrics({
    daemonRss: () => {
      if (isBroken) throw new Error('broken');
      return 1;
    },
  });
  metrics.start();
  await record(1);
  isBroken = false;
  await record(1);
  expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(2);
  expect((await metrics.history({ since: '1h' })).samples).toHaveLength(1);
  log.lines.length = 0;
});

test('a step or a start that cannot be read is refused in words', async () => {
  await expect(metrics.history({ step: 'soon' })).rejects.toThrow(/step must be a width such as/);
  await expect(metrics.history({ since: 'yesterday' })).rejects.toThrow(/since must be a duration/);
});
