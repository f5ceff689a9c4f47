import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { describe, expect, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { expectSchema, type ApiClient } from './support/client.js';
import { EventSource } from './support/event-source.js';
import { agentTest as test, noTmux, spawn, startAgentDaemon, until } from './support/sessions.js';

const again = inCampaign('process', test);

type Question = DaemonSchema<'Question'>;

const patience = { timeout: 60_000, interval: 50 };

async function openQuestion(api: ApiClient, sessionId: string): Promise<Question> {
  const path = `/api/v1/questions?status=open&session_id=${sessionId}`;
  return vi.waitFor(async () => {
    const list = await api.ok('GET', path);
    expectSchema('QuestionList', list);
    expect(list.questions).toHaveLength(1);
    return list.questions[0] as Question;
  }, patience);
}

describe.skipIf(noTmux).concurrent(`questions in tmux${noTmux ? ` (${noTmux})` : ''}`, () => {
  test('a permission dialog is answered over REST', async ({ newDaemon }) => {
    const { api, workdir, url } = await newDaemon();
    const events = await EventSource.open(url);
    const prompt = 'ask "$ make test", then write notes.txt';
    const { id } = await spawn(api, { prompt, backend: 'claude', cwd: workdir });
    const question = await openQuestion(api, id);
    expect(question).toMatchObject({
      session_id: id,
      kind: 'permission',
      title: 'Do you want to proceed?',
      body: 'make test',
      tool: 'execute',
      options: [
        { id: '1', label: 'Yes', kind: 'allow_once' },
        { id: '2', kind: 'reject' },
      ],
    });
    await until(api, id, 'waiting_for_input');
    const inbox = await vi.waitFor(async () => {
      const found = await api.ok('GET', '/api/v1/inbox');
      expect(found.notes).toHaveLength(1);
      return found;
    }, patience);
    expect(inbox.notes[0]).toMatchObject({ kind: 'waiting_for_input', question_id: question.id });

    const path = `/api/v1/questions/${question.id}`;
    const wrong = { method: 'POST', path: `${path}:answer`, body: { option_id: '7' } };
    expect((await api.send(wrong)).json).toMatchObject({ code: 'UNKNOWN_OPTION', status: 422 });
    const answered = await api.ok('POST', `${path}:answer`, { option_id: '1' });
    expect(answered).toMatchObject({ status: 'answered', answered_by: 'anyone', answer: '1' });
    expect(await api.ok('GET', path)).toEqual(answered);
    const again = { ...wrong, body: { option_id: '1' } };
    expect((await api.send(again)).json).toMatchObject({ code: 'QUESTION_CLOSED', status: 409 });
    await until(api, id, 'idle');
    expect(existsSync(join(workdir, 'notes.txt'))).toBe(true);
    const seen = await events.see(2, 'question.changed');
    for (const event of seen) expectSchema('Event', event);
    expect(seen.map(({ data }) => (data as Question).status)).toEqual(['open', 'answered']);
    events.cut();
  });

  again(
    'an answer at the terminal closes the question, and so does the end',
    async ({ newDaemon }) => {
      const { api, workdir } = await newDaemon();
      const { id } = await spawn(api, { prompt: 'ask', backend: 'claude', cwd: workdir });
      const first = await openQuestion(api, id);
      await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: '1' });
      await until(api, id, 'idle');
      const read = (question: Question) => api.ok('GET', `/api/v1/questions/${question.id}`);
      await vi.waitFor(async () => {
        expect(await read(first)).toMatchObject({ status: 'answered', answered_by: 'terminal' });
      }, patience);
      await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'ask once more' });
      const second = await openQuestion(api, id);
      await api.ok('POST', `/api/v1/sessions/${id}:stop`);
      await vi.waitFor(async () => {
        expect(await read(second)).toMatchObject({ status: 'closed', answered_by: null });
      }, patience);
    },
  );

  test('an open question survives a restart of the daemon', async ({ newDaemon }) => {
    const before = await startAgentDaemon();
    const { workdir, home } = before;
    const { id } = await spawn(before.api, { prompt: 'ask', backend: 'claude', cwd: workdir });
    const question = await openQuestion(before.api, id);
    await until(before.api, id, 'waiting_for_input');
    await before.stop();
    const { api } = await newDaemon({ home });
    expect(await openQuestion(api, id)).toEqual(question);
    await api.ok('POST', `/api/v1/questions/${question.id}:answer`, { option_id: '2' });
    await until(api, id, 'idle');
    const { questions } = await api.ok('GET', '/api/v1/questions');
    expect(questions).toHaveLength(1);
  });

  again('a policy answers without a person, and says so', async ({ newDaemon }) => {
    const policy = '[{tool: "Bash(make *)", action: allow}, {tool: execute, action: deny}]';
    const { api, workdir, log } = await newDaemon({ flags: { 'permissions-policy': policy } });
    const answerTo = async (prompt: string) => {
      const { id } = await spawn(api, { prompt, backend: 'claude', cwd: workdir });
      await until(api, id, 'idle');
      const { questions } = await api.ok('GET', `/api/v1/questions?session_id=${id}`);
      return questions as Question[];
    };
    expect(await answerTo('ask "$ make test"')).toMatchObject([
      { status: 'answered', answered_by: 'policy', answer: '1' },
    ]);
    expect(await answerTo('ask "$ curl example.org"')).toMatchObject([
      { status: 'answered', answered_by: 'policy', answer: '2' },
    ]);
    const applied = log.lines.filter(({ message }) => message === 'policy applied');
    expect(applied.map(({ fields }) => [fields['action'], fields['body']])).toEqual([
      ['allow', 'make test'],
      ['deny', 'curl example.org'],
    ]);
    expect((await api.ok('GET', '/api/v1/inbox')).notes).toEqual([]);
  });
});
