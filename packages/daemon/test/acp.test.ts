import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { describe, expect, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { acpSocket } from '../src/sessions/drivers/session-files.js';
import { installAcpAgent } from './support/acp.js';
import { expectSchema, type ApiClient } from './support/client.js';
import { EventSource } from './support/event-source.js';
import {
  agentTest as test,
  spawn,
  startAgentDaemon,
  until,
  type AgentDaemon,
} from './support/sessions.js';

const again = inCampaign('process', test);

type Question = DaemonSchema<'Question'>;

const patience = { timeout: 60_000, interval: 30 };

async function openQuestion(api: ApiClient, id: string): Promise<Question> {
  return vi.waitFor(async () => {
    const { questions } = await api.ok('GET', `/api/v1/questions?status=open&session_id=${id}`);
    expect(questions).toHaveLength(1);
    return questions[0] as Question;
  }, patience);
}

async function outputOf(api: ApiClient, id: string): Promise<string[]> {
  return (await api.ok('GET', `/api/v1/sessions/${id}/output`)).lines as string[];
}

describe.concurrent('over ACP', () => {
  const started = async (newDaemon: () => Promise<AgentDaemon>) => {
    const daemon = await newDaemon();
    await installAcpAgent(daemon);
    return daemon;
  };

  test('an agent asks, is answered over REST and finishes its turn', async ({ newDaemon }) => {
    const { api, workdir, home } = await started(newDaemon);
    expect(await api.row('gemini')).toMatchObject({
      acp: { via: 'native', command: [join(home, 'bin', 'gemini'), '--acp'] },
    });
    expect(await api.row('claude')).not.toHaveProperty('acp');
    const prompt = 'context 450k write notes.txt ask "$ make test" say all is well';
    const session = await spawn(api, { prompt, backend: 'gemini', cwd: workdir });
    expect(session.driver).toBe('acp');
    const { id } = session;
    const question = await openQuestion(api, id);
    expect(question).toMatchObject({
      kind: 'permission',
      title: '$ make test',
      body: 'make test',
      tool: 'execute',
      options: [
        { id: 'yes', label: 'Allow', kind: 'allow_once' },
        { id: 'always', label: 'Always allow', kind: 'allow_always' },
        { id: 'no', label: 'Reject', kind: 'reject' },
      ],
    });
    const asking = await until(api, id, 'waiting_for_input');
    expect(asking.status_reason).toBe('it asks: $ make test (make test)');
    const answer = { option_id: 'yes' };
    const answered = await api.ok('POST', `/api/v1/questions/${question.id}:answer`, answer);
    expect(answered).toMatchObject({ status: 'answered', answer: 'yes' });
    const idle = await until(api, id, 'idle');
    expectSchema('Session', idle);
    expect(idle).toMatchObject({
      status_reason: 'its turn ended: end_turn',
      context_tokens: 450_000,
      context_window: 500_000,
      context_state: 'critical',
      model: 'small',
      acp: { agent: 'fake-agent 1.0', mode: 'ask', models: [{ id: 'small' }, { id: 'large' }] },
    });
    expect(readFileSync(join(workdir, 'notes.txt'), 'utf8')).toBe('made by the fake agent\n');
    const lines = await outputOf(api, id);
    expect(lines).toEqual([
      'fake agent: ready',
      expect.stringMatching(/^> context 450k/),
      '[thought] Let me see.',
      '[edit] Write notes.txt',
      '[edit] Write notes.txt: completed',
      `[diff] ${join(workdir, 'notes.txt')}`,
      '+made by the fake agent',
      '+',
      '[execute] $ make test',
      '[question] $ make test',
      '[answer] Allow',
      '[execute] $ make test: completed',
      'The answer was yes',
      'all is well',
    ]);
    const socket = acpSocket(join(home, 'data'), id);
    expect(statSync(socket).mode & 0o777).toBe(0o600);

    const sent = await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'say more' });
    expect(sent.status).toBe('working');
    await until(api, id, 'idle');
    expect((await outputOf(api, id)).at(-1)).toBe('more');
    expect(await api.ok('POST', `/api/v1/sessions/${id}:stop`)).toMatchObject({ status: 'done' });
    expect(existsSync(socket)).toBe(false);
  });

  again('a model and a mode are chosen among those that it offers', async ({ newDaemon }) => {
    const { api, workdir } = await started(newDaemon);
    const request = { prompt: 'say hi', backend: 'gemini', driver: 'acp', cwd: workdir };
    const { id } = await spawn(api, { ...request, model: 'large', mode: 'code' });
    expect(await until(api, id, 'idle')).toMatchObject({ model: 'large', acp: { mode: 'code' } });
    const other = await spawn(api, { ...request, model: 'huge' });
    expect(await until(api, other.id, 'errored')).toMatchObject({
      last_error: expect.stringContaining('does not offer the model "huge", but: small, large'),
    });
  });

  test('files and terminals stay inside of the workspace', async ({ newDaemon }) => {
    const { api, workdir, home } = await started(newDaemon);
    const prompt = 'write ../outside.txt commit "pwd"';
    const { id } = await spawn(api, { prompt, backend: 'gemini', cwd: workdir });
    await until(api, id, 'idle');
    const lines = await outputOf(api, id);
    expect(lines.join('\n')).toContain('is outside of the workspace');
    expect(lines).toContain(`exit 0: ${workdir}`);
    expect(existsSync(join(home, 'outside.txt'))).toBe(false);
  });

  again('a failed turn, a limit and a crash are distinguished', async ({ newDaemon }) => {
    const { api, workdir } = await started(newDaemon);
    const request = { backend: 'gemini', cwd: workdir };
    const failed = await spawn(api, { ...request, prompt: 'fail 500' });
    expect(await until(api, failed.id, 'idle')).toMatchObject({
      turn_error: expect.stringContaining('API Error: 500'),
    });
    const limited = await spawn(api, { ...request, prompt: 'limit' });
    expect(await until(api, limited.id, 'rate_limited')).toMatchObject({
      limited_until: expect.any(String),
      pid: expect.any(Number),
    });
    const crashed = await spawn(api, { ...request, prompt: 'crash 3' });
    expect(await until(api, crashed.id, 'errored')).toMatchObject({ exit_code: 3 });
    const interrupted = await spawn(api, { ...request, prompt: 'ask' });
    const question = await openQuestion(api, interrupted.id);
    await api.ok('POST', `/api/v1/sessions/${interrupted.id}:stop`);
    await vi.waitFor(async () => {
      const now = await api.ok('GET', `/api/v1/questions/${question.id}`);
      expect(now.status).toBe('closed');
    }, patience);
  });

  again('a policy answers without a person', async ({ newDaemon }) => {
    const policy = '[{backend: gemini, tool: "execute(make *)", action: allow}]';
    const flags = { 'permissions-policy': policy };
    const { api, workdir } = await started(() => newDaemon({ flags }));
    const prompt = 'ask "$ make test" ask "$ make; rm x"';
    const { id } = await spawn(api, { prompt, backend: 'gemini', cwd: workdir });
    await vi.waitFor(async () => {
      expect(await openQuestion(api, id)).toMatchObject({ body: 'make; rm x' });
    }, patience);
    const { questions } = await api.ok('GET', '/api/v1/questions?status=answered');
    expect(questions).toMatchObject([{ body: 'make test', answered_by: 'policy', answer: 'yes' }]);
  });

  test('stop: the turn is cancelled before the process is ended', async ({ newDaemon }) => {
    const { api, workdir, url } = await started(newDaemon);
    const prompt = 'sleep 60';
    const { id } = await spawn(api, { prompt, backend: 'gemini', cwd: workdir });
    await vi.waitFor(async () => expect(await outputOf(api, id)).toContain('> sleep 60'), patience);
    const events = await EventSource.open(url);
    expect(await api.ok('POST', `/api/v1/sessions/${id}:stop`)).toMatchObject({ status: 'done' });
    expect((await outputOf(api, id)).at(-1)).toBe('[stop] cancelled');
    const statuses = () => events.events.map(({ data }) => (data as { status?: string }).status);
    await vi.waitFor(() => expect(statuses()).toContain('done'), patience);
    expect(statuses()).not.toContain('idle');
    events.cut();
  });

  test('a restart continues the session of the agent', async ({ newDaemon }) => {
    const { api, workdir } = await started(newDaemon);
    const { id } = await spawn(api, { prompt: 'say one', backend: 'gemini', cwd: workdir });
    const before = await until(api, id, 'idle');
    await api.ok('POST', `/api/v1/sessions/${id}:stop`);
    await api.ok('POST', `/api/v1/sessions/${id}:restart`);
    // Not the end of the turn before the restart.
    const after = await until(api, id, 'idle');
    expect(after.status_reason).toBe('its session is open');
    expect(after.backend_session_id).toBe(before.backend_session_id);
    const lines = await outputOf(api, id);
    // The agent repeats the conversation, which is not written again.
    expect(lines).not.toContain('a repeated answer');
    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'say two' });
    await until(api, id, 'idle');
    expect((await outputOf(api, id)).at(-1)).toBe('two');
  });

  test('the driver is refused for a backend that does not speak it', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const body = { prompt: 'x', backend: 'claude', driver: 'acp', cwd: workdir };
    const refused = await api.send({ method: 'POST', path: '/api/v1/spawn', body });
    expect(refused).toMatchObject({ status: 400, json: { code: 'INVALID_REQUEST' } });
    expect(refused.json.detail).toContain('agents.adapters');
  });

  again('a configured adapter speaks for a backend', async ({ newDaemon }) => {
    const flags = { 'agents-adapters': '{claude: [my-adapter, --acp]}' };
    const { api, workdir, home } = await newDaemon({ flags });
    symlinkSync('claude', join(home, 'bin', 'my-adapter'));
    const request = { prompt: 'say hi', backend: 'claude', driver: 'acp', cwd: workdir };
    const { id } = await spawn(api, request);
    await until(api, id, 'idle');
    expect((await outputOf(api, id)).at(-1)).toBe('hi');
  });

  again('drivers.default comes before acp', async ({ newDaemon }) => {
    const flags = { 'drivers-default': 'headless' };
    const { api, workdir } = await started(() => newDaemon({ flags }));
    const session = await spawn(api, { prompt: 'say hi', backend: 'gemini', cwd: workdir });
    expect(session.driver).toBe('headless');
  });
});

test('an agent over ACP and its question survive a restart of the daemon', async ({
  newDaemon,
}) => {
  const before = await startAgentDaemon();
  await installAcpAgent(before);
  const { workdir, home } = before;
  const prompt = 'ask "$ make" say done';
  const { id } = await spawn(before.api, { prompt, backend: 'gemini', cwd: workdir });
  const question = await openQuestion(before.api, id);
  const { pid } = await until(before.api, id, 'waiting_for_input');
  await before.stop();
  const { api } = await newDaemon({ home });
  expect(await openQuestion(api, id)).toEqual(question);
  expect(await until(api, id, 'waiting_for_input')).toMatchObject({ pid });
  await api.ok('POST', `/api/v1/questions/${question.id}:answer`, { option_id: 'no' });
  await until(api, id, 'idle');
  expect((await outputOf(api, id)).slice(-2)).toEqual(['The answer was no', 'done']);
});
