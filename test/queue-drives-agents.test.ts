import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { queueConfig, serveQueue, type RunningQueue } from '@millrace/queue/serve';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { inCampaign } from './support/campaign.js';
import { startDaemon, type TestDaemon } from '../packages/daemon/test/support/daemon.js';
import { installFakeAgent } from '../packages/daemon/test/support/fake-agent.js';
import { FakeClis } from '../packages/daemon/test/support/fake-clis.js';
import { noTmux, removeSessions, until } from '../packages/daemon/test/support/sessions.js';

const again = inCampaign('process');

/** The whole way of a task: queue, signed callback, agent, report, and what is in between. */
const token = 'token-of-the-agents-queue';
const secret = `whsec_${Buffer.from('a secret for the agents queue').toString('base64')}`;
const patience = { timeout: 90_000, interval: 50 };

let home: string;
let clis: FakeClis;
let queue: RunningQueue;
let queueUrl: string;
let daemon: TestDaemon;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'mr-drive-'));
  clis = new FakeClis(join(home, 'bin'));
  clis.add(
    'gemini',
    `const { existsSync } = require('node:fs');
     console.log('I was sent: ' + prompt);
     if (/please fail/.test(prompt)) process.exit(3);
     const wait = /wait for (\\S+)/.exec(prompt);
     if (wait) setInterval(() => existsSync(wait[1]) && process.exit(0), 20);`,
  );
  await startQueue('127.0.0.1:0');
  await startAgents();
});
afterEach(async () => {
  await removeSessions(daemon.api);
  await daemon.dispose();
  await queue.stop();
  rmSync(home, { recursive: true, force: true });
});

async function startQueue(listen: string): Promise<void> {
  const grants = [{ queue: '*', role: 'admin' }];
  const tokens = [{ id: 'test', principal: 'test', token, grants }];
  const secrets = [{ name: 'agents', value: secret, queues: ['agents'] }];
  const allowed = { scheme: 'http', host: '127.0.0.1', port: '*', networks: ['127.0.0.0/8'] };
  writeFileSync(join(home, 'tokens.yaml'), JSON.stringify({ tokens }), { mode: 0o600 });
  writeFileSync(join(home, 'secrets.yaml'), JSON.stringify({ secrets }), { mode: 0o600 });
  const config = {
    listen,
    data: join(home, 'queue'),
    tokens_file: join(home, 'tokens.yaml'),
    secrets_file: join(home, 'secrets.yaml'),
    callback_allowlist: [allowed],
    metrics_listen: '127.0.0.1:0',
  };
  writeFileSync(join(home, 'queue.yaml'), JSON.stringify(config));
  const { values } = loadConfig(queueConfig, {
    environment: {},
    flags: { config: join(home, 'queue.yaml') },
  });
  const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
  queue = await serveQueue(values, world);
  queueUrl = queue.listeners.find(({ listener }) => listener === 'http')!.url;
}

/** Starts the daemon and shows the queue where it is. */
async function startAgents(flags: Record<string, string> = {}): Promise<void> {
  daemon = await startDaemon({
    home,
    path: `${clis.path}:${process.env['PATH']}`,
    flags: {
      'queue-url': queueUrl,
      'queue-token': token,
      'queue-callback-secret': secret,
      ...flags,
    },
  });
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'gemini' });
  await request('PUT', '/v1/admin/queues/agents/config', {
    callback: {
      url: `${daemon.url}/api/v1/queue/callback`,
      signing: { scheme: 'standard_webhooks', secret_refs: ['agents'] },
    },
    retry: { max_attempts: 2, initial_backoff_ms: 50, max_backoff_ms: 100 },
  });
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

/** Submits a payload; text is the prompt, anything else a SpawnRequest. */
async function submit(payload: unknown): Promise<string> {
  const isText = typeof payload === 'string';
  const bytes = isText ? payload : JSON.stringify(payload);
  const { id } = await request('POST', '/v1/queues/agents/tasks', {
    handler_ref: 'agent/work',
    payload: Buffer.from(bytes).toString('base64'),
    payload_content_type: isText ? 'text/plain' : 'application/json',
  });
  return id as string;
}

async function become(id: string, status: string): Promise<any> {
  const read = () => request('GET', `/v1/tasks/${id}`);
  await vi.waitFor(async () => {
    const task = await read();
    expect([task.status, task.last_error, task.attempts]).toEqual([
      status,
      task.last_error,
      task.attempts,
    ]);
  }, patience);
  return read();
}

async function sessions(): Promise<any[]> {
  return (await daemon.api.ok('GET', '/api/v1/sessions')).sessions;
}

async function working(): Promise<any> {
  await vi.waitFor(async () => expect((await sessions())[0]?.pid).toBeGreaterThan(0), patience);
  return (await sessions())[0];
}

test('a task is worked on by an agent, and succeeds when the agent is done', async () => {
  const id = await submit('Say hello.');
  const task = await become(id, 'SUCCEEDED');
  expect(task.attempts).toMatchObject([{ attempt: 1, outcome: 'SUCCEEDED', http_status: 202 }]);
  const [session, ...others] = await sessions();
  expect(others).toEqual([]);
  expect(session).toMatchObject({
    status: 'done',
    prompt: 'Say hello.',
    driver: 'headless',
    tags: [`queue-task:${id}`],
  });
});

test('an agent that fails is tried again, and the dead letter says what it said last', async () => {
  const id = await submit({ prompt: 'please fail', name: 'to-fail' });
  const task = await become(id, 'DEAD');
  expect(task.dead_reason).toBe('ATTEMPTS_EXHAUSTED');
  expect(task.attempts).toMatchObject([
    { attempt: 1, outcome: 'FAILED', error_type: 'AGENT_FAILED' },
    { attempt: 2, outcome: 'FAILED', error_type: 'AGENT_FAILED' },
  ]);
  expect(task.last_error.message).toContain('I was sent: please fail');
  expect((await sessions()).map(({ name }) => name)).toEqual(['to-fail', 'to-fail']);
});

again('what cannot be asked for is dead at once, and starts nothing', async () => {
  const wrong = await become(await submit({ prompt: 'x', backend: 'nobody' }), 'DEAD');
  expect(wrong.attempts).toMatchObject([{ http_status: 404 }]);
  const unreadable = await become(await submit({ promt: 'x' }), 'DEAD');
  expect(unreadable.attempts).toMatchObject([{ http_status: 400 }]);
  expect(unreadable.attempts[0].response_snippet).toContain('/promt');
  expect(await sessions()).toEqual([]);
});

again('a session that a person stops ends its task for good', async () => {
  const id = await submit(`wait for ${join(home, 'never')}`);
  const { id: session } = await working();
  await daemon.api.ok('POST', `/api/v1/sessions/${session}:stop`);
  const task = await become(id, 'DEAD');
  expect(task).toMatchObject({
    dead_reason: 'PERMANENT',
    last_error: { error_type: 'AGENT_STOPPED' },
  });
});

/** Puts an agent there that holds conversations and has limits. */
async function addClaude(): Promise<void> {
  await installFakeAgent(clis.directory, ['claude']);
  await daemon.api.ok('POST', '/api/v1/backends/rescan');
}

again('a task whose agent is at a limit waits until the limit ends', async () => {
  await addClaude();
  const before = Date.now();
  const id = await submit({ prompt: 'limit 45', backend: 'claude', cwd: home });
  await vi.waitFor(async () => {
    const task = await request('GET', `/v1/tasks/${id}`);
    expect(task).toMatchObject({ status: 'PENDING', waiting_for: 'time' });
    expect(task.last_error).toMatchObject({ error_type: 'RATE_LIMITED' });
    const minutes = (Date.parse(task.next_attempt_at) - before) / 60_000;
    expect(minutes).toBeGreaterThan(40);
    expect(minutes).toBeLessThan(55);
  }, patience);
});

test.skipIf(noTmux)('a conversation keeps its task until its turn is over', async () => {
  await addClaude();
  const spawn = {
    prompt: 'ask, then say all is well',
    backend: 'claude',
    driver: 'tmux',
    cwd: home,
  };
  const id = await submit(spawn);
  await vi.waitFor(async () => expect((await sessions()).length).toBe(1), patience);
  const [{ id: session }] = await sessions();
  await until(daemon.api, session, 'waiting_for_input');
  expect(await request('GET', `/v1/tasks/${id}`)).toMatchObject({ status: 'IN_FLIGHT' });
  await daemon.api.ok('POST', `/api/v1/sessions/${session}:send`, { text: '1' });
  await become(id, 'SUCCEEDED');
  const { status_reason } = await until(daemon.api, session, 'done');
  expect(status_reason).toBe('it was stopped');
});

test('a task outlives the daemon that began it', async () => {
  const go = join(home, 'go');
  const id = await submit(`wait for ${go}`);
  await working();
  await daemon.stop();
  writeFileSync(go, '');
  await startAgents();
  const task = await become(id, 'SUCCEEDED');
  expect(task.attempts.length).toBe(1);
  expect((await sessions()).length).toBe(1);
});

test('a queue that was away when the agent was done is reported when it is back', async () => {
  const go = join(home, 'go');
  const id = await submit(`wait for ${go}`);
  await working();
  await queue.stop();
  writeFileSync(go, '');
  await vi.waitFor(async () => expect((await sessions())[0].status).toBe('done'), patience);
  await startQueue(new URL(queueUrl).host);
  const task = await become(id, 'SUCCEEDED');
  expect(task.attempts.length).toBe(1);
});

again('over the budget a task waits in the queue', async () => {
  await daemon.stop();
  const project = join(home, '.claude', 'projects', 'p');
  mkdirSync(project, { recursive: true });
  const line = {
    type: 'assistant',
    timestamp: new Date().toISOString(),
    requestId: 'r1',
    sessionId: 's1',
    message: {
      id: 'm1',
      model: 'claude-opus-4-1',
      usage: { input_tokens: 1_000_000, output_tokens: 1_000_000 },
    },
  };
  writeFileSync(join(project, 's1.jsonl'), `${JSON.stringify(line)}\n`);
  await startAgents({ 'tokens-budget-daily-usd': '0.01' });
  const id = await submit('Spend more.');
  await vi.waitFor(async () => {
    const task = await request('GET', `/v1/tasks/${id}`);
    expect(task).toMatchObject({ status: 'PENDING', waiting_for: 'time', attempt: 0 });
    expect(task.last_error).toMatchObject({ error_type: 'RATE_LIMITED', http_status: 429 });
    expect(Date.parse(task.next_attempt_at)).toBeGreaterThan(Date.now());
  }, patience);
  expect(await sessions()).toEqual([]);
});

again(
  'agents in a flow: the example merges what was chosen, though it is killed twice',
  async () => {
    await addClaude();
    await request('PUT', '/v1/admin/queues/features/config', { callback: { protocol: 'pull' } });
    const repo = join(home, 'repo');
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], {
        cwd: repo,
        encoding: 'utf8',
      });
    mkdirSync(repo);
    git('init', '--quiet', '--initial-branch', 'main');
    git('commit', '--quiet', '--allow-empty', '--message', 'Start');
    const payload = {
      repo,
      backend: 'claude',
      prompt: 'write notes.txt, sleep 1, commit',
      choose: 'say two',
      test: 'test -f notes.txt',
    };
    const program = join(import.meta.dirname, '..', 'examples', 'agents-in-a-flow', 'main.mjs');
    expect(readFileSync(program, 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(60);
    let out = '';
    const start = () => {
      const env = { ...process.env, QUEUE_URL: queueUrl, QUEUE_TOKEN: token };
      const child = spawn(process.execPath, [program, JSON.stringify(payload)], { env });
      onTestFinished(() => void child.kill('SIGKILL'));
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (bytes: Buffer) => (out += bytes.toString()));
      }
      return child;
    };
    const kill = async (child: ChildProcess) => {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGKILL');
      await closed;
    };
    const first = start();
    // The three agents are at work.
    await vi.waitFor(async () => expect((await sessions()).length).toBeGreaterThan(2), patience);
    await kill(first);
    const second = start();
    await vi.waitFor(() => expect(out).toContain('Approve '), patience);
    const [, best, id] = /Approve (\S+): ctl queue signal (\S+)/.exec(out)!;
    await kill(second);
    await request('POST', `/v1/tasks/${id}/signals`, { name: 'approved', payload: true });
    const third = start();
    const ended = new Promise((resolve) => third.once('close', resolve));
    await vi.waitFor(() => expect(out).toContain('Merged'), patience);
    await ended;
    expect(best).toMatch(/-two$/);
    expect(out).toContain(`Merged ${best}.`);
    expect(git('branch', '--merged', 'main')).toContain(best);
    // No agent ran twice.
    expect(new Set((await sessions()).map(({ branch }) => branch.slice(7)))).toEqual(
      new Set(['judge', 'one', 'plan', 'three', 'two']),
    );
  },
  240_000,
);
