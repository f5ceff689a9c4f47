import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQueueApi } from '@millrace/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ctl } from '../packages/ctl/test/run-ctl.js';
import { installFakeAgent } from '../packages/daemon/test/support/fake-agent.js';
import { campaignSize, inCampaign } from './support/campaign.js';
import { anyPorts, patient, processes, Up } from './support/up.js';

const again = inCampaign('process');

/*
 * The whole product from outside: what goes in comes to its end although each server is killed
 * once, and what was backed up comes back as it was.
 */

let home: string;
let data: string;
let running: Up[];
let handler: Server;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'millrace-system-'));
  data = join(home, 'data');
  running = [];
  mkdirSync(data);
  handler = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(request.url === '/refuse' ? 422 : 200).end());
  });
  await new Promise<void>((resolve) => handler.listen(0, '127.0.0.1', resolve));
  const port = portOf(handler);
  const entry = { scheme: 'http', host: '127.0.0.1', port, networks: ['127.0.0.0/8'] };
  writeFileSync(join(data, 'queue.yaml'), JSON.stringify({ callback_allowlist: [entry] }));
  const bin = await installFakeAgent(join(mkdirIn(home, 'bin')), ['made-up']);
  const settings = mkdirIn(data, '.config', 'millrace');
  const extra = [{ id: 'made-up', binary: join(bin, 'made-up'), like: 'claude' }];
  writeFileSync(join(settings, 'config.yaml'), JSON.stringify({ backends: { extra } }));
});
afterEach(async () => {
  for (const up of running) {
    up.kill('SIGKILL');
    await up.ended;
  }
  await expect
    .poll(() => processes().filter(({ line }) => line.includes(home)), patient)
    .toEqual([]);
  handler.closeAllConnections();
  handler.close();
  rmSync(home, { recursive: true, force: true });
});

function mkdirIn(...parts: string[]): string {
  const folder = join(...parts);
  mkdirSync(folder, { recursive: true });
  return folder;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function start(): Promise<Up> {
  const up = new Up(data, anyPorts, false);
  running.push(up);
  return up.ready();
}

function clientOf(up: Up) {
  const token = readFileSync(join(data, 'queue.token'), 'utf8').trim();
  return createQueueApi({ url: up.url('queue'), token });
}

/** The database's owner key, which a restored directory has a new one of. */
function ownerOfDb(): { authorization: string } {
  const key = readFileSync(join(data, 'db', 'db.key'), 'utf8').trim();
  return { authorization: `Bearer ${key}` };
}

async function makeQueue(up: Up, name: string, path: string): Promise<void> {
  const callback = { url: `http://127.0.0.1:${portOf(handler)}${path}`, timeout_ms: 5_000 };
  const body = { callback, lease: { grace_ms: 500 }, retry: { initial_backoff_ms: 50 } };
  const { status } = await up.queue(`/v1/admin/queues/${name}/config`, 'PUT', body);
  expect(status).toBe(200);
}

async function leftIn(up: Up, queue: string): Promise<number> {
  const params = { path: { queue } };
  const stats = await clientOf(up).call('getStats', params);
  return stats.pending + stats.in_flight;
}

const perRound = campaignSize({ quick: 12, full: 100 });

test(`${10 * perRound} tasks, some of them agents, come to their ends although every server is killed`, async () => {
  const up = await start();
  await makeQueue(up, 'work', '/take');
  await makeQueue(up, 'doomed', '/refuse');
  const submit = (queue: string, task: object) =>
    clientOf(up).submit(queue, { handler_ref: 'x', ...task }, { attempts: 60 });
  const wanted = new Map<string, string>();
  const agent = {
    payload: btoa(JSON.stringify({ prompt: 'say done', backend: 'made-up', cwd: home })),
    payload_content_type: 'application/json',
  };
  const kills = ['queue', 'daemon', 'db'];
  for (let round = 0; round < 10; round++) {
    const batch = Array.from({ length: perRound }, async (_, i) => {
      const queue = i === 0 && round % 3 === 0 ? 'agents' : i % 20 === 1 ? 'doomed' : 'work';
      const { id } = await submit(queue, queue === 'agents' ? agent : {});
      wanted.set(id, queue === 'doomed' ? 'DEAD' : 'SUCCEEDED');
    });
    if (round % 3 === 1) process.kill(up.parts().get(kills.shift()!)!, 'SIGKILL');
    await Promise.all(batch);
  }
  expect(kills).toEqual([]);
  expect(wanted.size).toBe(10 * perRound);
  for (const queue of ['work', 'doomed', 'agents']) {
    await expect.poll(() => leftIn(up, queue), { ...patient, timeout: 170_000 }).toBe(0);
  }
  const client = clientOf(up);
  const wrong: string[] = [];
  for (const [id, status] of wanted) {
    const task = await client.call('getTask', { path: { id } });
    if (task.status !== status) wrong.push(`${id} is ${task.status}, not ${status}`);
  }
  expect(wrong).toEqual([]);
  expect((await up.stop()).code).toBe(0);
}, 400_000);

again('what was backed up comes back as it was', async () => {
  const up = await start();
  await makeQueue(up, 'work', '/take');
  const client = clientOf(up);
  const { id } = await client.submit('work', { handler_ref: 'x' });
  await expect.poll(() => leftIn(up, 'work'), patient).toBe(0);
  const url = `${up.url('db')}/v1/parts/keys`;
  const headers = { ...ownerOfDb(), 'content-type': 'application/json' };
  for (const key of ['wheel', 'shaft']) {
    const body = JSON.stringify({ key, data: { name: key, teeth: 12 } });
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200);
  }
  const answers = async (of: Up) => ({
    task: await clientOf(of).call('getTask', { path: { id } }),
    wheel: await (
      await fetch(`${of.url('db')}/v1/parts/keys/wheel`, { headers: ownerOfDb() })
    ).json(),
    backends: await (await of.daemon('/api/v1/backends')).json().then(preferences),
  });
  const patch = { method: 'PATCH', body: JSON.stringify({ tier: 'free' }) };
  expect((await up.daemon('/api/v1/backends/made-up', patch)).status).toBe(200);
  const before = await answers(up);
  const file = join(home, 'db.backup');
  const backup = ['db', 'backup', '--out', file, '--data', join(data, 'db')];
  expect(await ctl(backup)).toMatchObject({ code: 0 });
  expect((await up.stop()).code).toBe(0);

  const stored = join(home, 'kept');
  cpSync(data, stored, { recursive: true });
  rmSync(data, { recursive: true });
  cpSync(stored, data, { recursive: true, filter: (path) => path !== join(stored, 'db') });
  const restore = ['db', 'restore', '--from', file, '--data', join(data, 'db')];
  expect(await ctl(restore)).toMatchObject({ code: 0 });

  const again = await start();
  expect(await answers(again)).toEqual(before);
  expect((await again.stop()).code).toBe(0);
});

/** Without what a rescan finds out again. */
function preferences(registry: unknown): object[] {
  const { backends } = registry as { backends: { id: string; tier: string; enabled: boolean }[] };
  return backends.map(({ id, tier, enabled }) => ({ id, tier, enabled }));
}
