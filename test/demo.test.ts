import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inCampaign } from './support/campaign.js';
import { startCtl } from '../packages/ctl/test/run-ctl.js';
import { processes } from './support/processes.js';

const again = inCampaign('process');

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-demo-test-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Processes that have anything to do with the folder. */
function leftovers(): string[] {
  return processes()
    .map(({ line }) => line)
    .filter((line) => line.includes(folder));
}

const env = () => ({ HOME: join(folder, 'home'), TMPDIR: folder });

function eventsIn(out: string): any[] {
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

test('a task becomes an agent, a failing one dies, is redriven and succeeds, and nothing is left', async () => {
  const { code, out, err } = await startCtl(['demo', '--json'], env()).ended;
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const events = eventsIn(out);
  const tasks = events.filter(({ event, task }) => event === 'saw' && task !== undefined);
  const ends = tasks.filter(({ status }) => ['SUCCEEDED', 'DEAD'].includes(status));
  expect(ends.map(({ status }) => status)).toEqual(['SUCCEEDED', 'DEAD', 'SUCCEEDED']);
  // The one that died is the one that succeeded later.
  expect(ends[1].task).toBe(ends[2].task);
  expect(events.at(-1)).toEqual({
    event: 'end',
    tasks: 2,
    agents: 4,
    agents_done: 2,
    dlq_depth: 0,
  });
  expect(readdirSync(folder)).toEqual([]);
  expect(leftovers()).toEqual([]);
});

again('--keep leaves it running until Ctrl-C, told step by step', async () => {
  const demo = startCtl(['demo', '--keep'], { ...env(), COLUMNS: '80' });
  await demo.says('Ctrl-C stops');
  const [stage = ''] = readdirSync(folder);
  const data = join(folder, stage, 'data');
  const status = await startCtl(['status', '--json'], { MILLRACE_DATA_DIR: data }).ended;
  expect(JSON.parse(status.out)).toMatchObject({
    ok: true,
    queue: { queues: 1, totals: { pending: 0, dlq_depth: 0 } },
    daemon: { agents: { done: 2, errored: 2 } },
  });
  demo.child.kill('SIGINT');
  const { code, out, err } = await demo.ended;
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const steps = Array.from(out.matchAll(/^\d\. .+$/gm), ([line]) => line);
  expect(steps).toEqual([
    '1. Start the database, the queue and the daemon',
    '2. Queue work for an agent',
    '3. Queue work that fails',
    '4. Fix the cause and try again',
    '5. Summary',
    '6. Explore',
  ]);
  expect(readdirSync(folder)).toEqual([]);
  expect(leftovers()).toEqual([]);
});

again('Ctrl-C in the middle stops and removes everything', async () => {
  const demo = startCtl(['demo', '--json'], env());
  await demo.says('"status":"working"');
  demo.child.kill('SIGINT');
  const { code, err } = await demo.ended;
  expect(code).toBe(1);
  expect(JSON.parse(err)).toMatchObject({ error: { code: 'CANCELLED' } });
  expect(readdirSync(folder)).toEqual([]);
  await expect.poll(leftovers).toEqual([]);
});
