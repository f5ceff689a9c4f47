import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { campaignSize, inCampaign } from '../../../test/support/campaign.js';

const again = inCampaign('store');

const script = fileURLToPath(new URL('../../../scripts/crash.mjs', import.meta.url));
const rounds = campaignSize({ quick: 1, full: 5 });

/** Set MILLRACE_SEED to repeat a failed run. */
const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 1_000_000);

/** `npm test` kills each kind of work on one store. */
const times = `killed ${rounds} times`;
const patience = 400_000;

/** Runs a campaign as its command does. */
async function crash(name: string, store: string): Promise<Record<string, number>> {
  const run = [name, '--no-build', '--quiet', '--store', store];
  const args = [...run, '--rounds', rounds, '--seed', seed];
  const child = spawn(process.execPath, [script, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { out: '', errors: '' };
  child.stdout.on('data', (text: Buffer) => (said.out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (said.errors += text.toString()));
  const [code] = (await once(child, 'close')) as [number];
  expect({ code, errors: code === 0 ? '' : said.errors }).toEqual({ code: 0, errors: '' });
  const report = JSON.parse(said.out) as Record<string, number>;
  expect(report).toMatchObject({ ok: true, seed, rounds });
  return report;
}

const workers = `workers and servers ${times} lose no task (seed ${seed})`;
test(`embedded: ${workers}`, () => crashWorkers('embedded'), patience);
again(`postgres: ${workers}`, () => crashWorkers('postgres'), patience);

async function crashWorkers(store: string): Promise<void> {
  const report = await crash('queue-workers', store);
  expect(report['serverKills']! + report['workerKills']!).toBeGreaterThanOrEqual(rounds);
  expect(report['tasks']).toBeGreaterThan(100);
}

const flows = `flows ${times} lose no step, signal or child (seed ${seed})`;
again(`embedded: ${flows}`, () => crashFlows('embedded'), patience);
test(`postgres: ${flows}`, () => crashFlows('postgres'), patience);

async function crashFlows(store: string): Promise<void> {
  const { serverKills, workerKills, databaseKills, ...report } = await crash('flows', store);
  expect(serverKills! + workerKills! + databaseKills!).toBeGreaterThanOrEqual(rounds);
  expect(report['steps']).toBeGreaterThanOrEqual(2 * report['flows']!);
}

const start = (attempt: number, more: object = {}) => ({
  id: 'a',
  attempt,
  leaseToken: `lease-${attempt}`,
  startedAt: attempt * 10_000,
  expiresAt: new Date(attempt * 10_000 + 2_000).toISOString(),
  ...more,
});
const done = {
  id: 'a',
  status: 'SUCCEEDED',
  result: { leaseToken: 'lease-2' },
  attempts: [
    { attempt: 1, outcome: 'LEASE_EXPIRED' },
    { attempt: 2, outcome: 'SUCCEEDED' },
  ],
};

test.each([
  ['a sound task', {}, [start(1), start(2)], undefined],
  ['a lost task', { status: 'PENDING' }, [start(1)], 'is PENDING'],
  ['a task that never ran', {}, [], 'never started'],
  [
    'two successes',
    { attempts: [done.attempts[1], done.attempts[1]] },
    [start(1), start(2)],
    'succeeded 2 times',
  ],
  ['a result of nobody', { result: null }, [start(1), start(2)], 'unknown lease'],
  [
    'a result of an older lease',
    { result: { leaseToken: 'lease-1' } },
    [start(1), start(2)],
    'attempt 1 settled attempt 2',
  ],
  ['two at once', {}, [start(1), start(2, { startedAt: 11_000 })], 'started twice'],
])('judge: %s', async (_name, more, starts, fault) => {
  const { checkTask } = await import(new URL('../crash/judge.mjs', import.meta.url).href);
  const check = () => checkTask({ ...done, ...more }, starts);
  if (fault === undefined) expect(check).not.toThrow();
  else expect(check).toThrow(fault);
});

test('judge: a lost lease that settles a task is found', async () => {
  const { checkFencing } = await import(new URL('../crash/judge.mjs', import.meta.url).href);
  const starts = [start(1), start(2)];
  const fenced = (_id: string, token: string) => (token === 'lease-2' ? 200 : 409);
  expect(await checkFencing(done, starts, fenced)).toBe(1);
  await expect(checkFencing(done, starts, () => 200)).rejects.toThrow('got 200 instead of 409');
});
