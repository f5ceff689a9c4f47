import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { queueConfig, serveQueue, type RunningQueue } from '@millrace/queue/serve';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { inCampaign } from './support/campaign.js';
import {
  noLocalModel,
  startDaemon,
  type TestDaemon,
} from '../packages/daemon/test/support/daemon.js';
import { FakeClis } from '../packages/daemon/test/support/fake-clis.js';
import { removeSessions } from '../packages/daemon/test/support/sessions.js';

const again = inCampaign('process');

/* Daemons that claim their tasks from one queue. */

const token = 'token-of-the-agents-queue';
const workerToken = 'token-of-the-pulling-daemons';
const patience = { timeout: 90_000, interval: 50 };

const ctl = fileURLToPath(new URL('../bin/ctl', import.meta.url));

let home: string;
let queue: RunningQueue;
let queueUrl: string;
const daemons: TestDaemon[] = [];
/** How far the clock of the queue is ahead. */
let aheadMs = 0;

beforeEach(async () => {
  aheadMs = 0;
  home = mkdtempSync(join(tmpdir(), 'mr-pull-'));
  const worker = [{ queue: '*', role: 'worker' }];
  const tokens = [
    { id: 't', principal: 'test', token, grants: [{ queue: '*', role: 'admin' }] },
    { id: 'w', principal: 'daemons', token: workerToken, grants: worker },
  ];
  writeFileSync(join(home, 'tokens.yaml'), JSON.stringify({ tokens }), { mode: 0o600 });
  const config = {
    listen: '127.0.0.1:0',
    data: join(home, 'queue'),
    tokens_file: join(home, 'tokens.yaml'),
    metrics_listen: '127.0.0.1:0',
  };
  writeFileSync(join(home, 'queue.yaml'), JSON.stringify(config));
  const flags = { config: join(home, 'queue.yaml') };
  const { values } = loadConfig(queueConfig, { environment: {}, flags });
  queue = await serveQueue(values, {
    clock: { ...systemClock, now: () => systemClock.now() + aheadMs },
    random: systemRandom,
    log: memoryLog(),
  });
  queueUrl = queue.listeners.find(({ listener }) => listener === 'http')!.url;
  await request('PUT', '/v1/admin/queues/agents/config', {
    callback: { protocol: 'pull' },
    retry: { max_attempts: 2, initial_backoff_ms: 50, max_backoff_ms: 100 },
  });
});
afterEach(async () => {
  for (const daemon of daemons.splice(0)) {
    await removeSessions(daemon.api);
    await daemon.dispose();
  }
  await queue.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Agents write each of their starts here. */
const runsOf = (own: string) => join(own, 'runs');

/** The directory and the search path of a machine with a fake agent. */
function newMachine(): { own: string; path: string } {
  const own = mkdtempSync(join(home, 'machine-'));
  const clis = new FakeClis(join(own, 'bin'));
  clis.add(
    'gemini',
    `const { appendFileSync, existsSync } = require('node:fs');
     // Not for --help.
     if (/wait for/.test(prompt)) appendFileSync(${JSON.stringify(runsOf(own))}, 'run\\n');
     if (/please fail/.test(prompt)) process.exit(3);
     const wait = /wait for (\\S+)/.exec(prompt);
     if (wait) setInterval(() => existsSync(wait[1]) && process.exit(0), 20);`,
  );
  return { own, path: `${clis.path}:${process.env['PATH']}` };
}

/** The daemon's token has the role `worker` alone. */
const pullFlags = () => ({
  'queue-mode': 'pull',
  'queue-url': queueUrl,
  'queue-token': workerToken,
  // A busy machine must not let it expire.
  'queue-lease': '60s',
});

async function startPulling(
  flags: Record<string, string> = {},
  { own, path } = newMachine(),
): Promise<TestDaemon> {
  const daemon = await startDaemon({ home: own, path, flags: { ...pullFlags(), ...flags } });
  daemons.push(daemon);
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'gemini' });
  return daemon;
}

async function request(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await fetch(queueUrl + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect([path, answer.ok, text]).toEqual([path, true, text]);
  return JSON.parse(text);
}

async function submit(prompt: string, handler = 'agent', headers = {}): Promise<string> {
  const { id } = await request('POST', '/v1/queues/agents/tasks', {
    handler_ref: handler,
    headers,
    payload: Buffer.from(prompt).toString('base64'),
    payload_content_type: 'text/plain',
  });
  return id as string;
}

async function submitJson(body: object): Promise<string> {
  const { id } = await request('POST', '/v1/queues/agents/tasks', {
    handler_ref: 'agent',
    payload: Buffer.from(JSON.stringify(body)).toString('base64'),
    payload_content_type: 'application/json',
  });
  return id as string;
}

async function become(id: string, expected: object): Promise<any> {
  return vi.waitFor(async () => {
    const task = await request('GET', `/v1/tasks/${id}`);
    expect(task).toMatchObject(expected);
    return task;
  }, patience);
}

const sessionsOf = async ({ api }: TestDaemon) =>
  (await api.ok('GET', '/api/v1/sessions')).sessions as { status: string; tags: string[] }[];

test('pull: a daemon claims tasks, runs them and reports how they ended', async () => {
  const daemon = await startPulling();
  const [good, bad] = [await submit('do it'), await submit('please fail')];
  await become(good, { status: 'SUCCEEDED', attempt: 1 });
  await become(bad, { status: 'DEAD', attempt: 2, last_error: { error_type: 'AGENT_FAILED' } });
  const invalid = await submit('');
  await become(invalid, {
    status: 'DEAD',
    attempt: 1,
    last_error: { error_type: 'INVALID_REQUEST' },
  });
  expect(await sessionsOf(daemon)).toHaveLength(3);
  const { workers } = await request('GET', '/v1/queues/agents/workers');
  expect(workers).toMatchObject([{ in_flight: 0, completed: 1 }]);
});

test('pull: no more agents at once than queue.max_agents', async () => {
  const daemon = await startPulling({ 'queue-max-agents': '2' });
  const go = join(home, 'go');
  const ids = [];
  for (let each = 0; each < 5; each++) ids.push(await submit(`wait for ${go}`));
  await vi.waitFor(async () => expect(await sessionsOf(daemon)).toHaveLength(2), patience);
  const { tasks } = await request('GET', '/v1/queues/agents/tasks?status=PENDING');
  expect(tasks).toHaveLength(3);
  writeFileSync(go, '');
  for (const id of ids) await become(id, { status: 'SUCCEEDED', attempt: 1 });
});

/** Both machines would compete for the tasks every 15 seconds; what was handed back is due again. */
async function stop(daemon: TestDaemon): Promise<void> {
  daemons.splice(daemons.indexOf(daemon), 1);
  await daemon.stop();
  aheadMs = 20_000;
}

/** A lease that does not end on a busy machine, which would use an attempt. */
const longLease = { 'queue-lease': '10m' };

test('pull: a label decides which machine runs a task', async () => {
  const plain = await startPulling(longLease);
  const blocked = await submit('do it', 'agent.gpu:true', { 'x-agent-labels': 'gpu=true' });
  const anywhere = await submit('do it', 'agent', { 'x-agent-labels': 'gpu=true' });
  const wrong = await submit('do it', 'agent', { 'x-agent-labels': 'gpu' });
  // The first machine hands back what it cannot run, and the attempt does not count.
  await become(anywhere, { status: 'PENDING', last_error: { error_type: 'LABELS_MISSING' } });
  await become(wrong, { status: 'DEAD', last_error: { error_type: 'INVALID_REQUEST' } });
  expect(await request('GET', `/v1/tasks/${blocked}`)).toMatchObject({
    status: 'PENDING',
    last_error: null,
  });
  expect(await sessionsOf(plain)).toEqual([]);
  await stop(plain);
  const gpu = await startPulling({ 'queue-labels': '{gpu: "true"}' });
  await become(blocked, { status: 'SUCCEEDED', attempt: 1 });
  await become(anywhere, { status: 'SUCCEEDED', attempt: 1 });
  expect(await sessionsOf(gpu)).toMatchObject([{}, {}]);
});

again('pull: handing back for a second label never uses the last attempt', async () => {
  const config = { callback: { protocol: 'pull' }, retry: { max_attempts: 1 } };
  await request('PUT', '/v1/admin/queues/agents/config', config);
  const oneLabel = await startPulling({ 'queue-labels': '{gpu: "true"}' });
  const labels = { 'x-agent-labels': 'gpu=true,room=12' };
  const ids = [];
  for (let each = 0; each < 3; each++) ids.push(await submit('do it', 'agent.gpu:true', labels));
  const last_error = { error_type: 'LABELS_MISSING' };
  for (const id of ids) await become(id, { status: 'PENDING', last_error });
  expect(await sessionsOf(oneLabel)).toEqual([]);
  await stop(oneLabel);
  const both = { 'queue-labels': '{gpu: "true", room: "12"}' };
  const bothLabels = await startPulling(both);
  for (const id of ids) await become(id, { status: 'SUCCEEDED', attempt: 1 });
  expect(await sessionsOf(bothLabels)).toMatchObject([{}, {}, {}]);
});

test('pull: cancelling a task stops its agent; progress names the agent', async () => {
  // The next extension of the lease reports that the task was canceled.
  const daemon = await startPulling({ 'queue-lease': '3s' });
  const id = await submit(`wait for ${join(home, 'never')}`);
  const task = await become(id, { status: 'IN_FLIGHT', progress: { percent: null } });
  expect(task.progress.message).toMatch(/^\w+: wait for .* \(gemini, session \w+ on \S+-\w{6}\)$/);
  await request('POST', `/v1/tasks/${id}:cancel`);
  await vi.waitFor(async () => {
    expect(await sessionsOf(daemon)).toMatchObject([{ status: 'done' }]);
  }, patience);
});

again('pull: a queue that does not exist yet is waited for', async () => {
  const daemon = await startPulling({ 'queue-name': 'later' });
  await vi.waitFor(() => {
    const failed = daemon.log.lines.filter(({ message }) => message === 'failed to claim tasks');
    expect(failed.length).toBeGreaterThan(0);
  }, patience);
  await request('PUT', '/v1/admin/queues/later/config', { callback: { protocol: 'pull' } });
  const { id } = await request('POST', '/v1/queues/later/tasks', {
    handler_ref: 'agent',
    payload: Buffer.from('do it').toString('base64'),
    payload_content_type: 'text/plain',
  });
  await become(id, { status: 'SUCCEEDED' });
});

/** The task goes on with its agent at the daemon that was started last. */
async function expectResumed(id: string, own: string, go: string): Promise<void> {
  writeFileSync(go, '');
  await become(id, { status: 'SUCCEEDED', attempt: 1 });
  expect(readFileSync(runsOf(own), 'utf8')).toBe('run\n');
}

again('pull: a daemon that restarts continues with its agents', async () => {
  const machine = newMachine();
  const before = await startPulling(longLease, machine);
  const go = join(home, 'go');
  const id = await submit(`wait for ${go}`);
  await vi.waitFor(() => expect(readFileSync(runsOf(machine.own), 'utf8')).toBe('run\n'), patience);
  await before.stop();
  daemons.splice(daemons.indexOf(before), 1);
  expect(await request('GET', `/v1/tasks/${id}`)).toMatchObject({ status: 'IN_FLIGHT' });
  await startPulling(longLease, machine);
  await expectResumed(id, machine.own, go);
});

test('pull: a daemon that was killed continues with its agents', async () => {
  const { own, path } = newMachine();
  const flags = {
    listen: '127.0.0.1:0',
    data: join(own, 'data'),
    'backends-local-url': noLocalModel,
    ...pullFlags(),
    ...longLease,
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(process.execPath, [ctl, 'daemon', 'serve', '--auth=none', ...args], {
    env: { PATH: path, HOME: own },
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const go = join(home, 'go');
  const body = { prompt: `wait for ${go}`, backend: 'gemini' };
  const id = await submitJson(body);
  await vi.waitFor(() => expect(readFileSync(runsOf(own), 'utf8')).toBe('run\n'), patience);
  await become(id, { status: 'IN_FLIGHT' });
  child.kill('SIGKILL');
  await once(child, 'exit');
  await startPulling(longLease, { own, path });
  await expectResumed(id, own, go);
});
