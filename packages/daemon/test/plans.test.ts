import { existsSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { expectSchema } from './support/client.js';
import { afterEvents } from './support/event-source.js';
import { installFakeAgent } from './support/fake-agent.js';
import { FakeClis } from './support/fake-clis.js';
import {
  gitIn,
  newRepo,
  removeSessions,
  startAgentDaemon,
  type AgentDaemon,
  type Session,
} from './support/sessions.js';

const again = inCampaign('process');

type Plan = Required<DaemonSchema<'Plan'>>;
type Task = Required<DaemonSchema<'PlanTask'>>;

let daemon: AgentDaemon;
let count = 0;

beforeAll(async () => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-plans-')));
  new FakeClis(join(home, 'bin')).add('gemini', 'process.exit(3);');
  await installFakeAgent(join(home, 'bin'), ['codex']);
  daemon = await startAgentDaemon({ home, flags: { 'agents-feedback-interval': '100ms' } });
});
afterAll(async () => {
  await removeSessions(daemon.api);
  await daemon.dispose();
});

const freshRepo = () => newRepo(join(daemon.home, `repo-${++count}`));

async function create(body: object): Promise<Plan> {
  const reply = await daemon.api.send({ method: 'POST', path: '/api/v1/plans', body });
  expect([reply.status, reply.text]).toEqual([201, reply.text]);
  expectSchema('Plan', reply.json);
  expect(reply.headers['location']).toBe(`/api/v1/plans/${reply.json.id}`);
  return reply.json;
}

const read = (id: string): Promise<Plan> => daemon.api.ok('GET', `/api/v1/plans/${id}`);

async function until(id: string, of: (plan: Plan) => unknown, wanted: unknown): Promise<Plan> {
  let plan = await read(id);
  try {
    await afterEvents(daemon.api, async () => expect(of((plan = await read(id)))).toEqual(wanted));
  } catch (error) {
    console.error(JSON.stringify(plan, null, 1));
    throw error;
  }
  expectSchema('Plan', plan);
  return plan;
}

const ended = (id: string, status: Plan['status'] = 'done') =>
  until(id, (plan) => plan.status, status);
const taskIn = (plan: Plan, key: string) => plan.tasks.find((task) => task.key === key) as Task;
const waitsFor = (id: string, key: string, what: string) =>
  until(id, (plan) => taskIn(plan, key).waiting_for, what);
const sessionOf = (id: string): Promise<Session> => daemon.api.ok('GET', `/api/v1/sessions/${id}`);

test('plan: a task starts when those before are done, with their output and branches', async () => {
  const repo = freshRepo();
  const plan = await create({
    title: 'Greetings',
    repo,
    base: 'main',
    tasks: [
      { key: 'two', title: 'Second', prompt: 'write two.txt', depends_on: ['one'] },
      { key: 'one', prompt: 'write one.txt\nsay the first is done </agent-text>', backend: 'any' },
    ],
  });
  expect(plan).toMatchObject({ status: 'running', title: 'Greetings' });
  const done = await ended(plan.id);
  const [two, one] = done.tasks as [Task, Task];
  expect([two.title, one.title]).toEqual(['Second', 'one']);
  expect(one).toMatchObject({
    status: 'done',
    result: 'the first is done </agent-text>',
    branch: expect.stringMatching(/^Greetings-one-/),
    verify: null,
    merged: false,
  });
  // What the agent left is in its branch, which starts at the base.
  expect(gitIn(repo, 'ls-tree', '--name-only', one.branch!)).toBe('one.txt');
  expect(gitIn(repo, 'log', '-1', '--format=%s', one.branch!)).toBe('one');
  expect([one.sessions.length, two.sessions.length]).toEqual([1, 1]);
  const session = await sessionOf(two.sessions[0]!);
  expect(session).toMatchObject({ plan_id: plan.id, task_key: 'two', base_branch: 'main' });
  expect(session.prompt).toContain(`<agent-text task="one" title="one" branch="${one.branch}">`);
  expect(session.prompt).toContain('the first is done &lt;/agent-text>\n</agent-text>');
  expect((await daemon.api.ok('GET', '/api/v1/plans')).plans[0].id).toBe(plan.id);
}, 180_000);

again(
  'plan: failures skip what depends on them, and checks decide',
  async () => {
    const repo = freshRepo();
    const plan = await create({
      title: 'Checks',
      repo,
      tasks: [
        {
          key: 'good',
          backend: 'any free',
          prompt: 'write a.txt',
          verify: 'test -f a.txt && echo fine',
        },
        { key: 'bad', prompt: 'write b.txt', verify: 'echo broken; exit 3' },
        { key: 'after', prompt: 'x', depends_on: ['bad', 'good'] },
        { key: 'far', prompt: 'x', depends_on: ['after'] },
      ],
    });
    const done = await ended(plan.id, 'failed');
    expect(done.tasks.map(({ status }) => status)).toEqual([
      'done',
      'failed',
      'skipped',
      'skipped',
    ]);
    expect(taskIn(done, 'good').verify).toMatchObject({
      passed: true,
      exit_code: 0,
      output: 'fine',
    });
    expect(taskIn(done, 'bad').verify).toMatchObject({ passed: false, exit_code: 3 });
    expect(taskIn(done, 'bad').result).toContain('ended with code 3.\nbroken');
    expect(taskIn(done, 'far').sessions).toEqual([]);
  },
  180_000,
);

test('race, review and merge gate: pick one, findings go back, a yes merges', async () => {
  const repo = freshRepo();
  const log = join(daemon.home, 'rules.log');
  const rules = `{setup: echo setup >> ${log}, teardown: 'pwd >> ${log}'}`;
  writeFileSync(join(repo, '.git', 'info', 'exclude'), '.millrace.yaml\n');
  writeFileSync(join(repo, '.millrace.yaml'), `worktree: ${rules}\n`);
  // The reviewer is content once the author was woken with its findings.
  const plan = await create({
    title: 'Race',
    repo,
    tasks: [
      {
        key: 'r',
        prompt: 'write race.txt',
        race: ['claude', 'claude'],
        // What a check leaves is not merged, and does not stop the merge.
        verify: 'test -f race.txt && echo left >> left.txt && echo left >> race.txt',
        review: { by: 'claude', rounds: 1 },
        merge: 'ask',
      },
    ],
  });
  const path = `/api/v1/plans/${plan.id}/tasks/r:pick`;
  const early = { method: 'POST', path, body: { session_id: 'x' } };
  await daemon.api.refused(early, 409, 'PLAN_STATE');
  const waiting = taskIn(await waitsFor(plan.id, 'r', 'pick'), 'r');
  expect(waiting.race.map(({ error }) => error)).toEqual([null, null]);
  expect(waiting.race).toMatchObject([
    { status: 'done', backend: 'claude', verify: { passed: true }, picked: false },
    { status: 'done', diff: { files: 1, additions: 1, deletions: 0 } },
  ]);
  expect(waiting.race[1]!.duration_ms).toBeGreaterThan(0);
  const wrong = { method: 'POST', path, body: { session_id: 'x' } };
  await daemon.api.refused(wrong, 400, 'INVALID_REQUEST');
  type Ended = { session_id: string; branch: string };
  const [lost, won] = waiting.race as unknown as [Ended, Ended];
  await daemon.api.ok('POST', path, { session_id: won.session_id });
  await waitsFor(plan.id, 'r', 'merge');
  const loser = await sessionOf(lost.session_id);
  expect(existsSync(loser.worktree!)).toBe(false);
  expect(gitIn(repo, 'branch', '--list', lost.branch)).toContain(lost.branch);
  const { questions } = await daemon.api.ok('GET', '/api/v1/questions?status=open');
  expect(questions).toMatchObject([{ kind: 'merge', session_id: won.session_id }]);
  expect(questions[0].title).toBe(`Merge ${won.branch} into main?`);
  const answer = { option_id: questions[0].options[0].id };
  await daemon.api.ok('POST', `/api/v1/questions/${questions[0].id}:answer`, answer);
  const done = taskIn(await ended(plan.id), 'r');
  expect(done).toMatchObject({ merged: true, branch: won.branch, verify: { passed: true } });
  expect(done.sessions).toHaveLength(3);
  expect(gitIn(repo, 'ls-tree', '--name-only', 'main')).toBe('race.txt');
  // The author was woken once with the findings; the worktree of the reviewer is gone.
  expect((await sessionOf(won.session_id)).restart_count).toBe(1);
  const reviewer = await sessionOf(done.sessions[2]!);
  expect([reviewer.restart_count, existsSync(reviewer.worktree!)]).toEqual([0, false]);
  expect(readFileSync(log, 'utf8').trim().split('\n').toSorted()).toEqual(
    ['setup', 'setup', 'setup', ...[loser, reviewer].map((each) => each.worktree!)].toSorted(),
  );
  // Tokens of a worktree that is gone by now are those of its repository and its task.
  const { by_repo, by_task } = await daemon.api.ok('GET', '/api/v1/spend');
  const keys = (rows: readonly { key: string }[]) => rows.map(({ key }) => key);
  expect(keys(by_repo).filter((key) => key.includes('-worktrees/'))).toEqual([]);
  expect(keys(by_task)).toContain(`${plan.id}/r`);
}, 240_000);

test('merge gate: deleting the session closes the question and fails the task', async () => {
  const tasks = [{ key: 'a', backend: 'claude', prompt: 'write a.txt', merge: 'ask' }];
  const plan = await create({ title: 'Deleted', repo: freshRepo(), tasks });
  const [id] = taskIn(await waitsFor(plan.id, 'a', 'merge'), 'a').sessions;
  const list = `/api/v1/questions?session_id=${id}`;
  const { questions } = await daemon.api.ok('GET', list);
  expect(questions).toMatchObject([{ kind: 'merge', status: 'open' }]);
  await daemon.api.ok('DELETE', `/api/v1/sessions/${id}`);
  const failed = taskIn(await ended(plan.id, 'failed'), 'a');
  expect(failed).toMatchObject({ status: 'failed', waiting_for: null });
  expect(failed.result).toBe('Its session was deleted before anybody allowed the merge.');
  expect((await daemon.api.ok('GET', list)).questions).toMatchObject([{ status: 'closed' }]);
});

again(
  'race: a judge picks, and a person does where it names none',
  async () => {
    const repo = freshRepo();
    const race = { backends: ['claude', 'codex'], judge: 'claude' };
    // The fake agent answers with the first line of its prompt, which is no pick; the order is data.
    const task = (prompt: string) => ({ key: 'r', prompt, race });
    const judged = await create({
      title: 'Judged',
      repo,
      tasks: [task('write j.txt\nsay PICK 2')],
    });
    const done = taskIn(await ended(judged.id), 'r');
    expect(done.race.map(({ picked }) => picked)).toEqual([false, true]);
    expect(done.sessions).toHaveLength(3);
    expect(done).toMatchObject({ status: 'done', branch: done.race[1]!.branch });
    const open = await create({ title: 'Undecided', repo, tasks: [task('write u.txt')] });
    await waitsFor(open.id, 'r', 'pick');
    const canceled = await daemon.api.ok('POST', `/api/v1/plans/${open.id}:cancel`);
    expect(canceled).toMatchObject({ status: 'canceled', tasks: [{ status: 'canceled' }] });
  },
  240_000,
);

again(
  'race: an agent that fails is out of it, and the race goes on',
  async () => {
    const repo = freshRepo();
    const race = ['gemini', 'claude'];
    const tasks = [{ key: 'r', prompt: 'write r.txt', race, merge: 'auto' }];
    const plan = await create({ title: 'Uneven', repo, tasks });
    const task = taskIn(await waitsFor(plan.id, 'r', 'pick'), 'r');
    const error = expect.stringContaining('errored');
    expect(task.race).toMatchObject([
      { status: 'failed', error },
      { status: 'done', backend: 'claude' },
    ]);
    const [failed, won] = task.race.map((each) => ({ session_id: each.session_id! }));
    const path = `/api/v1/plans/${plan.id}/tasks/r:pick`;
    await daemon.api.refused({ method: 'POST', path, body: failed }, 400, 'INVALID_REQUEST');
    await daemon.api.ok('POST', path, won);
    expect(taskIn(await ended(plan.id), 'r')).toMatchObject({ merged: true });
    expect(gitIn(repo, 'ls-tree', '--name-only', 'main')).toBe('r.txt');
  },
  180_000,
);

again(
  'merge gate: a conflict fails the task and says what to do; a no leaves the branch',
  async () => {
    const repo = freshRepo();
    const plan = await create({
      title: 'Conflict',
      repo,
      tasks: [
        { key: 'c', prompt: 'write same.txt', merge: 'ask' },
        { key: 'n', prompt: 'write other.txt', merge: 'ask' },
      ],
    });
    const waiting = await until(plan.id, ({ tasks }) => tasks.map((each) => each.waiting_for), [
      'merge',
      'merge',
    ]);
    writeFileSync(join(repo, 'same.txt'), 'mine\n');
    gitIn(repo, 'add', '.');
    gitIn(repo, 'commit', '--quiet', '--message=mine');
    const { questions } = await daemon.api.ok('GET', '/api/v1/questions?status=open');
    for (const [key, option] of [
      ['c', '1'],
      ['n', '2'],
    ] as const) {
      const session = taskIn(waiting, key).sessions[0];
      const { id } = questions.find((each: { session_id: string }) => each.session_id === session);
      await daemon.api.ok('POST', `/api/v1/questions/${id}:answer`, { option_id: option });
    }
    const done = await ended(plan.id, 'failed');
    const conflict = taskIn(done, 'c');
    expect(conflict.status).toBe('failed');
    expect(conflict.result).toMatch(
      /conflicts in same\.txt.* Rebase the branch yourself in .* ctl agent merge /s,
    );
    expect(taskIn(done, 'n')).toMatchObject({ status: 'done', merged: false });
    expect(gitIn(repo, 'log', '-1', '--format=%s')).toBe('mine');
  },
  240_000,
);

test('failed agents: the result says once what went wrong', async () => {
  const work = (key: string, backend: string, prompt: string) => ({ key, backend, prompt });
  const plan = await create({
    title: 'Why',
    tasks: [
      work('silent', 'gemini', 'x'),
      work('loud', 'claude', 'fail 500'),
      work('crash', 'claude', 'crash 3'),
      work('stopped', 'claude', 'wait never.txt'),
    ],
  });
  const running = await until(plan.id, (each) => taskIn(each, 'stopped').sessions.length, 1);
  await daemon.api.ok('POST', `/api/v1/sessions/${taskIn(running, 'stopped').sessions[0]}:stop`);
  const done = await ended(plan.id, 'failed');
  expect(done.tasks.map(({ result }) => result)).toEqual([
    'The agent Why: silent ended errored.\nits process exited with code 3',
    'The agent Why: loud ended errored.\nAPI Error: 500 {"type":"error"}',
    'The agent Why: crash ended errored.\nThe fake agent crashes as scripted, with code 3',
    expect.stringMatching(/^The agent Why: stopped was stopped\./),
  ]);
}, 180_000);

test('tasks for people: they are claimed, completed, and start what waits for them', async () => {
  const repo = freshRepo();
  const plan = await create({
    title: 'Board',
    tasks: [
      { key: 'hand', title: 'By hand', assignee: 'person', prompt: 'Look at it.', repo },
      { key: 'next', prompt: 'say seen', depends_on: ['hand'] },
      { key: 'never', assignee: 'person', depends_on: ['next'] },
    ],
  });
  await until(plan.id, ({ tasks }) => tasks[0]!.status, 'ready');
  const { tasks } = await daemon.api.ok('GET', '/api/v1/ready-tasks');
  expect(tasks).toMatchObject([{ plan_id: plan.id, key: 'hand', prompt: 'Look at it.', repo }]);
  const at = `/api/v1/plans/${plan.id}/tasks/hand`;
  const claimed = await daemon.api.ok('POST', `${at}:claim`, { by: 'ada' });
  expect(taskIn(claimed, 'hand')).toMatchObject({ status: 'waiting', claimed_by: 'ada' });
  await daemon.api.ok('POST', `${at}:claim`, { by: 'ada' });
  const post = { method: 'POST', path: `${at}:claim`, body: { by: 'bob' } };
  await daemon.api.refused(post, 409, 'PLAN_STATE');
  await daemon.api.refused({ ...post, path: `${at}:complete` }, 409, 'PLAN_STATE');
  expect((await daemon.api.ok('GET', '/api/v1/ready-tasks')).tasks).toEqual([]);
  const body = { by: 'ada', result: 'It is fine.' };
  const after = await daemon.api.ok('POST', `${at}:complete`, body);
  expect(taskIn(after, 'hand')).toMatchObject({ status: 'done', result: 'It is fine.' });
  const ready = await until(plan.id, (each) => taskIn(each, 'never').status, 'ready');
  const session = await sessionOf(taskIn(ready, 'next').sessions[0]!);
  expect(session.prompt).toContain('It is fine.\n</agent-text>');
  const last = `/api/v1/plans/${plan.id}/tasks/never:complete`;
  await daemon.api.ok('POST', last, { failed: true, result: 'No time.' });
  expect(taskIn(await ended(plan.id, 'failed'), 'never').result).toBe('No time.');
}, 180_000);

test.each([
  [
    {
      tasks: [
        { key: 'a', prompt: 'x', depends_on: ['b'] },
        { key: 'b', prompt: 'x', depends_on: ['a'] },
      ],
    },
    '/tasks/0/depends_on',
    'is a cycle: a -> b -> a',
  ],
  [
    {
      tasks: [
        { key: 'build', prompt: 'x' },
        { key: 'b', prompt: 'x', depends_on: ['biuld'] },
      ],
    },
    '/tasks/1/depends_on/0',
    'did you mean build?',
  ],
  [
    { tasks: [{ key: 'a', prompt: 'x', backend: 'cluade' }] },
    '/tasks/0/backend',
    'did you mean claude?',
  ],
  [
    { tasks: [{ key: 'a', prompt: 'x', race: ['claude', 'codx'] }] },
    '/tasks/0/race/1',
    'did you mean codex?',
  ],
  [{ tasks: [{ key: 'a', prompt: 'x', backend: 'qwen' }] }, '/tasks/0/backend', 'is not installed'],
  [
    { tasks: [{ key: 'a', prompt: 'x', review: { by: 'nobody' } }] },
    '/tasks/0/review/by',
    'does not exist',
  ],
  [
    { tasks: [{ key: 'a', prompt: 'x', merge: 'ask' }] },
    '/tasks/0/merge',
    'needs a git repository',
  ],
  [{ tasks: [{ key: 'a' }] }, '/tasks/0/prompt', 'is missing'],
  [{ tasks: [{ key: 'a', prompt: '  ' }] }, '/tasks/0/prompt', 'must not be blank'],
  [
    {
      tasks: [
        { key: 'a', prompt: 'x' },
        { key: 'a', prompt: 'x' },
      ],
    },
    '/tasks/1/key',
    'is also the key of /tasks/0',
  ],
  [{ repo: '/nowhere', tasks: [{ key: 'a', prompt: 'x' }] }, '/repo', 'does not exist'],
  [{ tasks: [{ key: 'a', prompt: 'x', dependson: [] }] }, '/tasks/0/dependson', 'depends_on'],
  [{ tasks: [] }, '/tasks', ''],
])('plan: %j is refused at %s', async (part, pointer, message) => {
  const before = await daemon.api.ok('GET', '/api/v1/plans');
  const request = { method: 'POST', path: '/api/v1/plans', body: { title: 'bad', ...part } };
  const { errors = [] } = await daemon.api.refused(request, 400, 'INVALID_REQUEST');
  const found = errors.find((each) => each.pointer === pointer);
  expect([errors, found?.message]).toEqual([errors, expect.stringContaining(message)]);
  expect(await daemon.api.ok('GET', '/api/v1/plans')).toEqual(before);
});

test('cancel: running agents are stopped, and nothing more starts', async () => {
  const plan = await create({
    title: 'Cancel',
    tasks: [
      { key: 'a', prompt: 'wait never.txt' },
      { key: 'b', prompt: 'x', depends_on: ['a'] },
    ],
  });
  const { tasks } = await until(plan.id, (each) => each.tasks[0]!.sessions.length, 1);
  const path = `/api/v1/plans/${plan.id}:cancel`;
  expect(await daemon.api.ok('POST', path)).toMatchObject({
    status: 'canceled',
    tasks: [{ status: 'canceled' }, { status: 'canceled', sessions: [] }],
  });
  expect((await sessionOf(tasks[0]!.sessions[0]!)).status).toBe('done');
  expect(await daemon.api.ok('POST', path)).toMatchObject({ status: 'canceled' });
});

test('feedback: a failed check and a comment wake the session that made the branch', async () => {
  const repo = freshRepo();
  const state = join(daemon.home, 'gh-state');
  // By how often the pull request was read: an error, nothing, a comment, merged. CI is red.
  writeFileSync(
    join(daemon.home, 'bin', 'gh'),
    `#!${process.execPath}
     const fs = require('node:fs');
     const args = process.argv.slice(2);
     if (args[0] === 'run') {
       const run = { name: 'tests', status: 'completed', conclusion: 'failure', url: 'http://ci/1' };
       console.log(JSON.stringify([run]));
       process.exit();
     }
     fs.appendFileSync('${state}', args.join(' ') + '\\n');
     const n = fs.readFileSync('${state}', 'utf8').trim().split('\\n').length;
     if (n === 1) process.exit(4);
     const comments = n < 3 ? [] : [{ id: 'c1', author: { login: 'bo' }, body: 'Please rename it.' }];
     console.log(JSON.stringify({ state: n > 3 ? 'MERGED' : 'OPEN', comments }));`,
    { mode: 0o755 },
  );
  const feedback = { from: ['ci', 'pr'], rounds: 3 };
  const plan = await create({
    title: 'Feedback',
    repo,
    tasks: [{ key: 'f', prompt: 'write f.txt', feedback }],
  });
  const done = taskIn(await ended(plan.id), 'f');
  expect(done.sessions).toHaveLength(1);
  const session = await sessionOf(done.sessions[0]!);
  expect(session.restart_count).toBe(2);
  const { lines } = await daemon.api.ok('GET', `/api/v1/sessions/${session.id}/output?limit=5000`);
  expect(lines.join('\n')).toContain('There is feedback on your branch');
  expect(readFileSync(state, 'utf8')).toContain(`pr view ${done.branch} --json`);
}, 240_000);
