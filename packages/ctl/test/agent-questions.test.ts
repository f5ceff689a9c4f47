import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { runCtl, type Ran } from './queue-server.js';

type Question = DaemonSchema<'Question'>;

const open = contractExample('Question');
const answered: Question = {
  ...open,
  id: '01K9ZT4Q6R8S0T2V4W6X8Y0Z1B',
  status: 'answered',
  answered_at: '2026-01-15T09:28:12.000Z',
  answered_by: 'browser',
  answer: '1',
};
const agent = contractExample('SessionList').sessions[0]!;
let daemon: FakeDaemon;
let home = '';

beforeAll(async () => {
  daemon = await FakeDaemon.start();
  home = mkdtempSync(join(tmpdir(), 'ctl-questions-'));
});
afterAll(async () => {
  await daemon.stop();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  daemon.requests.length = 0;
  daemon.routes.clear();
  daemon.reply = { status: 404, body: { code: 'NOT_FOUND', detail: 'no such path' } };
  daemon.routes.set('GET /api/v1/sessions', { body: { sessions: [agent] } });
  daemon.routes.set('GET /api/v1/questions', (_body, url) => {
    const status = url.searchParams.get('status');
    const all = [answered, open];
    return {
      body: { questions: all.filter((each) => status === null || each.status === status) },
    };
  });
  daemon.routes.set(`POST /api/v1/questions/${open.id}:answer`, { body: answered });
});

function ctl(...args: string[]): Promise<Ran> {
  const env = { HOME: home, MILLRACE_URL: daemon.url };
  return runCtl(['agent', ...args], { env });
}

function lastBody(): unknown {
  const { body } = daemon.requests.at(-1)!;
  return JSON.parse(body);
}

test('questions: lists the open ones with their options', async () => {
  const { code, out } = await ctl('questions');
  expect(code).toBe(0);
  expect(out).toMatch(/^ID +AGENT +AGE +QUESTION +ANSWER$/m);
  expect(out).toContain(`${open.id}  docs`);
  expect(out).toContain('Do you want to proceed? npm publish --dry-run');
  expect(out).toContain('1: Yes; 2: Yes, and do not ask again; 3: No');
  expect(out).not.toContain(answered.id);
  const all = await ctl('questions', '--all');
  expect(all.out).toContain('Yes (by browser)');
  const json = JSON.parse((await ctl('questions', '--json')).out);
  expect(faultsOf('QuestionList', json)).toEqual([]);
  expect(json).toEqual({ questions: [open] });
});

test('questions: says so when there is none', async () => {
  daemon.routes.set('GET /api/v1/questions', { body: { questions: [] } });
  expect((await ctl('questions')).out).toBe('No agent waits for an answer.\n');
  expect((await ctl('questions', '--all')).out).toBe('No agent has asked anything yet.\n');
});

test('answer: by question or agent, with an option or its kind', async () => {
  const { code, out } = await ctl('answer', open.id, '1');
  expect([code, out]).toEqual([0, 'Answered "Do you want to proceed?" with "Yes".\n']);
  expect(lastBody()).toEqual({ option_id: '1' });
  await ctl('answer', 'docs', 'reject');
  expect(lastBody()).toEqual({ option_id: '3' });
  await ctl('answer', open.id.toLowerCase(), '--text', 'go on');
  expect(lastBody()).toEqual({ text: 'go on' });
  const json = await ctl('answer', open.id, '2', '--json');
  expect(JSON.parse(json.out)).toEqual(answered);
});

test('answer: without an option it says which there are', async () => {
  expect(await ctl('answer', open.id)).toMatchObject({
    code: 2,
    err:
      'ctl: It asks: Do you want to proceed? Choose one of: 1 (Yes), ' +
      '2 (Yes, and do not ask again), 3 (No).\n',
  });
  expect(await ctl('answer', open.id, '1', '--text', 'x')).toMatchObject({ code: 2 });
  expect(await ctl('answer', 'nope', '1')).toMatchObject({ code: 1, out: '' });
});
