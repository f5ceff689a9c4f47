import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { describe, expect, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { expectSchema, type ApiClient } from './support/client.js';
import { agentTest as test, spawn, startAgentDaemon, until } from './support/sessions.js';

const again = inCampaign('process', test);

/* A headless claude asks through its permission prompt tool. */

type Question = DaemonSchema<'Question'>;

const patience = { timeout: 60_000, interval: 50 };
const run = { backend: 'claude', driver: 'headless' };

async function questionsOf(api: ApiClient, id: string, status?: string): Promise<Question[]> {
  const more = status === undefined ? '' : `&status=${status}`;
  const list = await api.ok('GET', `/api/v1/questions?session_id=${id}${more}`);
  expectSchema('QuestionList', list);
  return list.questions as Question[];
}

async function openQuestion(api: ApiClient, id: string): Promise<Question> {
  return vi.waitFor(async () => {
    const open = await questionsOf(api, id, 'open');
    expect(open).toHaveLength(1);
    return open[0]!;
  }, patience);
}

const answer = (api: ApiClient, question: Question, option: string) =>
  api.ok('POST', `/api/v1/questions/${question.id}:answer`, { option_id: option });

describe.concurrent('questions of headless runs', () => {
  test('headless question: an allowed command is run', async ({ newDaemon }) => {
    const { api, workdir, log } = await newDaemon();
    const prompt = 'ask "$ make test", then write notes.txt';
    const { id } = await spawn(api, { ...run, prompt, cwd: workdir });
    const question = await openQuestion(api, id);
    expect(question).toMatchObject({
      kind: 'permission',
      title: 'Bash',
      body: 'make test',
      tool: 'execute',
      options: [
        { id: 'allow', label: 'Allow', kind: 'allow_once' },
        { id: 'reject', label: 'Reject', kind: 'reject' },
      ],
    });
    const waiting = await until(api, id, 'waiting_for_input');
    expect(waiting.status_reason).toBe('it asks: Bash (make test)');
    await vi.waitFor(async () => {
      const { notes } = await api.ok('GET', '/api/v1/inbox');
      expect(notes).toMatchObject([{ kind: 'waiting_for_input', question_id: question.id }]);
    }, patience);
    expect(existsSync(join(workdir, 'notes.txt'))).toBe(false);
    const answered = await answer(api, question, 'allow');
    expect(answered).toMatchObject({ status: 'answered', answered_by: 'anyone', answer: 'allow' });
    await until(api, id, 'done');
    expect(existsSync(join(workdir, 'notes.txt'))).toBe(true);
    const ended = log.lines.find(({ message }) => message === 'question ended');
    expect(ended?.fields).toMatchObject({ by: 'anyone', option: 'allow_once', tool: 'execute' });
  });

  again('headless question: a rejected command is named as the reason', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const { id } = await spawn(api, { ...run, prompt: 'ask "$ make test"', cwd: workdir });
    await answer(api, await openQuestion(api, id), 'reject');
    const ended = await until(api, id, 'errored');
    expect(ended.last_error).toBe('permission denied: [Bash] make test');
  });

  again('headless question: a policy answers without a person', async ({ newDaemon }) => {
    const policy = '[{tool: "Bash(make *)", action: allow}, {tool: execute, action: deny}]';
    const { api, workdir, log } = await newDaemon({ flags: { 'permissions-policy': policy } });
    const allowed = await spawn(api, { ...run, prompt: 'ask "$ make test"', cwd: workdir });
    const denied = await spawn(api, { ...run, prompt: 'ask "$ make a; rm b"', cwd: workdir });
    await until(api, allowed.id, 'done');
    await until(api, denied.id, 'errored');
    const answers = await Promise.all([allowed, denied].map(({ id }) => questionsOf(api, id)));
    expect(answers).toMatchObject([
      [{ status: 'answered', answered_by: 'policy', answer: 'allow' }],
      [{ status: 'answered', answered_by: 'policy', answer: 'reject' }],
    ]);
    expect(log.lines.filter(({ message }) => message === 'policy applied')).toHaveLength(2);
    // Nobody was asked.
    const { notes } = await api.ok('GET', '/api/v1/inbox');
    const kinds = (notes as { kind: string }[]).map(({ kind }) => kind);
    expect(kinds).not.toContain('waiting_for_input');
  });

  test('headless question: without an answer it is denied', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon({ flags: { 'permissions-timeout': '1s' } });
    const { id } = await spawn(api, { ...run, prompt: 'ask "$ make test"', cwd: workdir });
    await until(api, id, 'errored');
    expect(await questionsOf(api, id)).toMatchObject([
      { status: 'answered', answered_by: 'timeout', answer: 'reject' },
    ]);
  });

  again('headless question: survives a restart of the daemon', async ({ newDaemon }) => {
    const before = await startAgentDaemon();
    const { workdir, home } = before;
    const prompt = 'ask "$ make test", then write notes.txt';
    const { id } = await spawn(before.api, { ...run, prompt, cwd: workdir });
    const question = await openQuestion(before.api, id);
    await until(before.api, id, 'waiting_for_input');
    await before.stop();
    const { api } = await newDaemon({ home });
    expect(await openQuestion(api, id)).toEqual(question);
    await until(api, id, 'waiting_for_input');
    await answer(api, question, 'allow');
    await until(api, id, 'done');
    expect(existsSync(join(workdir, 'notes.txt'))).toBe(true);
    expect(await questionsOf(api, id)).toMatchObject([{ status: 'answered' }]);
  });

  test('headless question: is closed when the agent is stopped', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const { id } = await spawn(api, { ...run, prompt: 'ask', cwd: workdir });
    const question = await openQuestion(api, id);
    await api.ok('POST', `/api/v1/sessions/${id}:stop`);
    await vi.waitFor(async () => {
      expect(await questionsOf(api, id)).toMatchObject([{ status: 'closed', answered_by: null }]);
    }, patience);
    const late = { method: 'POST', path: `/api/v1/questions/${question.id}:answer` };
    const reply = await api.send({ ...late, body: { option_id: 'allow' } });
    expect(reply.json).toMatchObject({ code: 'QUESTION_CLOSED', status: 409 });
  });

  again('headless question: a run takes no input but its answer', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const prompt = 'ask "$ make one", then wait go.txt, then ask "$ make two"';
    const { id } = await spawn(api, { ...run, prompt, cwd: workdir });
    const first = await openQuestion(api, id);
    const path = `/api/v1/sessions/${id}:send`;
    const sent = await api.send({ method: 'POST', path, body: { text: 'yes' } });
    expect(sent.json).toMatchObject({ code: 'SESSION_STATE' });
    await answer(api, first, 'allow');
    await until(api, id, 'working');
    writeFileSync(join(workdir, 'go.txt'), '');
    const second = await openQuestion(api, id);
    expect(second.body).toBe('make two');
    await answer(api, second, 'allow');
    await until(api, id, 'done');
  });
});
