import { join } from 'node:path';
import { open, type Database } from '@millrace/engine';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { claudeLine, TranscriptHome, truth } from '../../test/support/transcripts.js';
import { Spend } from './spend.js';

let home: TranscriptHome;
let database: Database;
const log = memoryLog();
const at = Date.parse('2026-01-15T23:30:00Z');

beforeEach(async () => {
  log.lines.length = 0;
  home = new TranscriptHome();
  database = await open(join(home.home, 'spend'), { clock: { ...systemClock, now: () => at } });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await database.close();
  await home.remove();
});

/** Stands still; what is to happen later happens when the test says so. */
class StillClock implements Clock {
  readonly later: { delayMs: number; run: () => void }[] = [];
  isPatient = true;
  now = () => at + 1_000;
  monotonic = () => 0;
  after(delayMs: number, run: () => void) {
    this.later.push({ delayMs, run });
    return { cancel: () => void this.later.splice(0) };
  }
  sleep = (_delayMs: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (!this.isPatient) setImmediate(resolve);
      signal?.addEventListener('abort', () => reject(new Error('aborted')));
    });
}

function spendWith(clock: Clock): Spend {
  return new Spend({
    database,
    clock,
    log,
    environment: { HOME: home.home },
    basis: async () => 'HEURISTIC',
  });
}

const scans = () => log.lines.filter(({ message }) => message === 'transcripts read');
const write = (id: string) => home.append(home.claude('session-1'), claudeLine(truth(id, { at })));

test('the transcripts are read at the start and every thirty seconds', async () => {
  const clock = new StillClock();
  const spend = spendWith(clock);
  write('m1');
  spend.start();
  await expect.poll(() => clock.later).toHaveLength(1);
  expect(scans()).toHaveLength(1);
  write('m2');
  const [next] = clock.later.splice(0);
  expect(next!.delayMs).toBe(30_000);
  next!.run();
  await expect.poll(() => scans()).toHaveLength(2);
  await spend.close();
  expect(clock.later.filter(({ delayMs }) => delayMs === 30_000)).toEqual([]);
});

test('spend: days are those of the time zone of the machine', async () => {
  write('m1');
  vi.stubEnv('TZ', 'Europe/Berlin');
  const berlin = spendWith(new StillClock());
  expect((await berlin.read()).by_day.map(({ key }) => key)).toEqual(['2026-01-16']);
  // Another zone later: nothing was fixed by the first.
  vi.stubEnv('TZ', 'America/New_York');
  const newYork = spendWith(new StillClock());
  const rollup = await newYork.read();
  expect(rollup.by_day.map(({ key }) => key)).toEqual(['2026-01-15']);
  expect(rollup).toMatchObject({ daily_usd: rollup.total_usd, weekly_usd: 0.00055 });
});

test('spend: a read during a long scan returns the known figures', async () => {
  for (let each = 0; each < 500; each++) write(`m${each}`);
  const clock = new StillClock();
  clock.isPatient = false;
  const spend = spendWith(clock);
  const { total_usd: early } = await spend.read();
  expect(early).toBeLessThan(500 * 0.00055);
  expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn' }));
  await spend.refresh();
  clock.isPatient = true;
  expect((await spend.read()).total_usd).toBe(0.275);
});

test('it ends in the midst of reading, and goes on from there', async () => {
  for (let each = 0; each < 3_000; each++) write(`m${each}`);
  const first = spendWith(systemClock);
  first.start();
  await new Promise((resolve) => setImmediate(resolve));
  await first.close();
  expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  const second = spendWith(new StillClock());
  expect((await second.read()).total_usd).toBe(1.65);
});
