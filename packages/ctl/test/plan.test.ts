import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { FakeDaemon } from './fake-daemon.js';
import { runCtl } from './queue-server.js';

const plan = contractExample('Plan');
const [task] = plan.tasks;
const sessions = contractExample('SessionList');
const at = `/api/v1/plans/${plan.id}`;
let daemon: FakeDaemon;
let folder = '';
beforeAll(async () => {
  daemon = await FakeDaemon.start();
  folder = mkdtempSync(join(tmpdir(), 'ctl-plan-'));
});
afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  daemon.requests.length = 0;
  daemon.routes.clear();
  daemon.routes.set('GET /api/v1/plans', { body: { plans: [plan] } });
  daemon.routes.set('GET /api/v1/sessions', { body: sessions });
  daemon.routes.set('POST /api/v1/plans', { status: 201, body: plan });
});

const ctl = (...args: string[]) =>
  runCtl(['agent', ...args], { env: { HOME: folder, MILLRACE_URL: daemon.url } });
const lastBody = () => JSON.parse(daemon.requests.at(-1)!.body) as Record<string, unknown>;

function file(text: string): string {
  const path = join(folder, 'plan.yaml');
  writeFileSync(path, text);
  return path;
}

const definition = `title: Retry uploads
repo: ./mill
tasks:
  - key: upload
    prompt: Retry it
  - key: docs
    repo: ../docs
    prompt: Describe it
    depends_on: [upload]
`;

test('plan --detach: sends the file with repositories relative to it, and returns', async () => {
  const { code, out } = await ctl('plan', file(definition), '--detach');
  expect([code, out]).toEqual([0, expect.stringMatching(/^upload +waiting \(pick\)/m)]);
  expect(lastBody()).toMatchObject({
    repo: join(folder, 'mill'),
    tasks: [{ key: 'upload' }, { repo: join(folder, '..', 'docs') }],
  });
});

test.each([
  ['done', 0],
  ['failed', 1],
  ['canceled', 1],
])('plan: follows until it is %s, and ends with %i', async (status, expected) => {
  const tasks = [{ ...task, status: status === 'done' ? 'done' : 'failed', result: 'It broke.' }];
  daemon.routes.set(`GET ${at}`, { body: { ...plan, status, tasks } });
  const { code, out } = await ctl('plan', file(definition));
  expect(code).toBe(expected);
  expect(out).toContain(`pick one: ctl agent pick ${plan.id} upload AGENT`);
  if (status !== 'done') expect(out).toContain('upload failed: It broke.');
});

test('plan: a wrong file ends with 2 and the line of each fault', async () => {
  const errors = [{ pointer: '/tasks/1/depends_on/0', message: 'names the task "x"' }];
  const problem = { type: 'about:blank', title: 'x', status: 400, code: 'INVALID_REQUEST' };
  const body = { ...problem, detail: 'x', error: 'x', errors };
  daemon.routes.set('POST /api/v1/plans', { status: 400, body });
  const { code, err } = await ctl('plan', file(definition));
  expect(code).toBe(2);
  expect(err).toMatch(/plan\.yaml:9: \/tasks\/1\/depends_on\/0 names the task "x"/);
  expect(await ctl('plan', file('title: ['))).toMatchObject({ code: 2 });
  expect((await ctl('plan', join(folder, 'none.yaml'))).code).not.toBe(0);
});

test('plan-show: lists them, and shows one with its race', async () => {
  expect((await ctl('plan-show')).out).toMatch(/Retry uploads +running +0 of 2 done/);
  const { out } = await ctl('plan-show', 'Retry uploads');
  expect(out).toContain('claude done, checks passed, 2 files +40 -3, $0.41');
  expect(JSON.parse((await ctl('plan-show', plan.id, '--json')).out)).toEqual(plan);
  expect((await ctl('plan-show', 'nope')).code).toBe(1);
});

test('pick, claim, complete and plan-cancel send what they say', async () => {
  const { id } = sessions.sessions[0]!;
  for (const act of ['pick', 'claim', 'complete']) {
    daemon.routes.set(`POST ${at}/tasks/upload:${act}`, { body: plan });
  }
  daemon.routes.set(`POST ${at}:cancel`, { body: plan });
  await ctl('pick', plan.id, 'upload', id);
  expect(lastBody()).toEqual({ session_id: id });
  await ctl('claim', plan.id, 'upload', '--as', 'ada');
  expect(lastBody()).toEqual({ by: 'ada' });
  await ctl('complete', plan.id, 'upload', '--result', 'fine', '--branch', 'b', '--failed');
  expect(lastBody()).toEqual({ result: 'fine', branch: 'b', failed: true });
  expect((await ctl('plan-cancel', plan.id)).code).toBe(0);
});
