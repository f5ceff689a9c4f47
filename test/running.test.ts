import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inCampaign } from './support/campaign.js';
import { ctl, startCtl } from '../packages/ctl/test/run-ctl.js';
import { anyPorts, areAlive, Up } from './support/up.js';

const again = inCampaign('process');

/* The commands that manage a running `ctl up`. */

let data = '';
let up: Up | undefined;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'millrace-running-'));
});
afterEach(async () => {
  up?.kill('SIGKILL');
  await up?.ended;
  up = undefined;
  rmSync(data, { recursive: true, force: true });
});

const here = (...args: string[]) => ctl([...args, '--data', data]);

test('version, logs, restart and down manage a running ctl up', async () => {
  up = await new Up(data, anyPorts, true).ready();
  const version = JSON.parse((await here('version', '--json')).out);
  const own: string = version.version;
  expect(version.servers).toEqual({ db: own, queue: own, daemon: own });

  const follower = startCtl(['logs', 'db', '--follow', '--json', '--data', data]);
  await follower.says('"msg":"node started"');

  const before = up.parts();
  const address = up.url('queue');
  const restarted = await here('restart', 'queue');
  expect(restarted).toMatchObject({ code: 0, err: '' });
  expect(restarted.out).toMatch(/^Restarted the queue, process \d+\.\n$/);
  expect(up.parts().get('db')).toBe(before.get('db'));
  expect(up.parts().get('queue')).not.toBe(before.get('queue'));
  expect(up.url('queue')).toBe(address);
  expect((await fetch(`${address}/readyz`)).status).toBe(200);

  const all = JSON.parse((await here('restart', '--json')).out);
  expect(Object.keys(all.restarted)).toEqual(['db', 'queue', 'daemon']);
  await follower.says('"msg":"drained"');
  follower.child.kill('SIGINT');
  expect(await follower.ended).toMatchObject({ code: 130, err: '' });

  const queueLines = await here('logs', 'queue', '--lines', '2');
  expect(queueLines.out.trimEnd().split('\n')).toHaveLength(2);
  for (const line of queueLines.out.trimEnd().split('\n')) expect(line).toMatch(/^queue /);

  const pids = [up.pid, ...up.parts().values()];
  expect(await here('down')).toMatchObject({ code: 0, out: `Stopped process ${up.pid}.\n` });
  expect(areAlive(pids)).toEqual([]);
  expect((await up.ended).code).toBe(0);
  expect((await here('down')).out).toContain('Nothing is running');
  expect(await here('restart')).toMatchObject({ code: 1 });
});

again('logs: without a log file it says what writes one', async () => {
  const { code, err } = await here('logs');
  expect([code, err]).toEqual([1, expect.stringContaining('`ctl up` writes it')]);
  expect((await here('logs', '--lines', 'x')).code).toBe(2);
});
