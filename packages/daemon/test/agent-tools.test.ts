import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { ApiClient } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

const token = 'the-token-of-these-tests';
const patience = { timeout: 60_000, interval: 50 };

let daemon: TestDaemon;
let api: ApiClient;
let home: string;

/** Writes down what it was given; works until it is stopped, unless its prompt is "end". */
const program = `
  require('node:fs').writeFileSync(
    require('node:path').join('${'$'}{HOME}', 'seen-' + process.env.MILLRACE_AGENT_ID + '.json'),
    JSON.stringify({ args, url: process.env.MILLRACE_URL, token: process.env.MILLRACE_TOKEN }),
  );
  const text = prompt.includes('tell all') ? '日'.repeat(6_000) : 'hello';
  console.log(JSON.stringify({ type: 'assistant', message: { content: [{ type: 'text', text }] } }));
  if (!prompt.includes('end')) setInterval(() => {}, 1000);`;

/** The search path of a daemon with this home. */
function pathIn(directory: string): string {
  const clis = new FakeClis(join(directory, 'bin'));
  clis.add('claude', program.replace('${HOME}', directory));
  return clis.path;
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'mr-tools-'));
  const flags = { token, 'agents-max-children': '2' };
  daemon = await startDaemon({ home, path: pathIn(home), flags });
  api = daemon.api.withHeaders({ authorization: `Bearer ${token}` });
});
afterAll(async () => {
  // Agents outlive their daemon.
  const { sessions } = await api.ok('GET', '/api/v1/sessions');
  for (const { id } of sessions) {
    await api.send({ method: 'POST', path: `/api/v1/sessions/${id}:stop` });
  }
  await daemon.dispose();
});

const request = (part: object = {}) => ({
  prompt: 'go on',
  backend: 'claude',
  driver: 'headless',
  cwd: home,
  ...part,
});

interface Started {
  id: string;
  /** What its process was given. */
  args: string[];
  token: string;
  as: ApiClient;
}

async function started(id: string): Promise<Started> {
  const file = join(home, `seen-${id}.json`);
  await vi.waitFor(
    () => expect(existsSync(file) && readFileSync(file, 'utf8')).toBeTruthy(),
    patience,
  );
  const seen = JSON.parse(readFileSync(file, 'utf8'));
  expect(seen.url).toBe(daemon.url);
  return { id, ...seen, as: daemon.api.withHeaders({ authorization: `Bearer ${seen.token}` }) };
}

async function spawn(part: object = {}): Promise<Started> {
  const { json } = await api.send({ method: 'POST', path: '/api/v1/spawn', body: request(part) });
  const { id } = json;
  const agent = await started(id);
  onTestFinished(
    async () => void (await api.send({ method: 'POST', path: `/api/v1/sessions/${id}:stop` })),
  );
  return agent;
}

async function mcp(bearer: string, at = daemon.url) {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${bearer}` };
  const url = new URL(`${at}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
  await client.connect(transport as unknown as Transport);
  onTestFinished(() => client.close());
  return async (name: string, args: object = {}) => {
    const result: any = await client.callTool({ name, arguments: args as Record<string, unknown> });
    return result.isError ? result.content[0].text : result.structuredContent;
  };
}

test('an agent gets the tools, and starts, watches and stops agents of its own', async () => {
  const parent = await spawn({ name: 'parent' });
  expect(parent.args.join(' ')).toContain(`${daemon.url}/mcp`);
  expect(parent.args.join(' ')).not.toContain(parent.token);
  const call = await mcp(parent.token);
  const child = await call('spawn_agent', {
    prompt: 'work',
    backend: 'claude',
    driver: 'headless',
  });
  expect(child).toMatchObject({ parent_id: parent.id });
  await started(child.id);
  expect((await call('list_agents')).sessions.map(({ id }: any) => id)).toEqual([child.id]);
  expect(await call('wait_for_agent', { id: child.id, timeout_ms: 10 })).toMatchObject({
    timed_out: true,
    session: { id: child.id },
  });
  const waiting = call('wait_for_agent', { id: child.id, timeout_ms: 60_000 });
  expect(await call('stop_agent', { id: child.id })).toMatchObject({ status: 'done' });
  expect(await waiting).toMatchObject({ timed_out: false, session: { status: 'done' } });
  expect(await call('read_agent', { id: child.id })).toMatchObject({
    session: { status: 'done' },
    output: expect.stringContaining('hello'),
    diff: null,
  });
});

test('a long answer is read from the start of a character', async () => {
  const { id } = await spawn({ prompt: 'tell all, then end' });
  const { timed_out: isOut } = await api.ok('POST', `/api/v1/sessions/${id}:wait`, {});
  expect(isOut).toBe(false);
  const { output } = await (await mcp(token))('read_agent', { id });
  expect(output).toBe('日'.repeat(5_461));
});

test('a parent may be named by its name, and one name may not mean two', async () => {
  const parent = await spawn({ name: 'of the family' });
  const as = (part: object) =>
    api.send({
      method: 'POST',
      path: '/api/v1/spawn',
      headers: { 'idempotency-key': 'by-name' },
      body: request({ parent_id: 'of the family', name: 'twin', prompt: 'end', ...part }),
    });
  const child = await as({});
  expect(child.json).toMatchObject({ parent_id: parent.id });
  expect((await as({})).json.id).toBe(child.json.id);
  await api.ok('POST', `/api/v1/sessions/${child.json.id}:stop`);
  const twin = await spawn({ name: 'twin' });
  for (const { id } of [child.json, twin]) await api.ok('POST', `/api/v1/sessions/${id}:stop`);
  expect((await as({ parent_id: 'twin' })).json.code).toBe('IDEMPOTENCY_CONFLICT');
  const refused = { method: 'POST', path: '/api/v1/spawn', body: request({ parent_id: 'twin' }) };
  const { detail } = await api.refused(refused, 400, 'INVALID_REQUEST');
  expect(detail).toMatch(/`parent_id` means 2 sessions/);
});

test('its token reaches only its own agents, and ends with it', async () => {
  const [parent, other] = [await spawn(), await spawn()];
  const path = `/api/v1/sessions/${other.id}`;
  expect(await parent.as.ok('GET', '/api/v1/sessions')).toEqual({ sessions: [] });
  for (const [method, at, body] of [
    ['GET', path, undefined],
    ['GET', `${path}/summary`, undefined],
    ['POST', `${path}:stop`, undefined],
    ['POST', `${path}:send`, { text: 'x' }],
    ['DELETE', path, undefined],
    ['GET', '/api/v1/config', undefined],
    ['GET', '/api/v1/questions', undefined],
    ['POST', '/api/v1/questions', { session_id: other.id, title: 'x' }],
    ['PUT', '/api/v1/backends/default', { id: 'claude' }],
  ] as const) {
    const { status, json } = await parent.as.send({ method, path: at, ...(body && { body }) });
    expect([at, status, json.code]).toEqual([at, 403, 'FORBIDDEN']);
  }
  const call = await mcp(parent.token);
  expect(await call('read_agent', { id: other.id })).toMatch(/^FORBIDDEN: /);
  // A child with the id of another's as its name gives no way to it.
  const child = await call('spawn_agent', {
    prompt: 'x',
    backend: 'claude',
    driver: 'headless',
    name: other.id,
  });
  expect(await call('stop_agent', { id: other.id })).toMatch(/^FORBIDDEN: /);
  expect(await call('stop_agent', { id: child.id })).toMatchObject({ status: 'done' });
  await api.ok('POST', `/api/v1/sessions/${parent.id}:stop`);
  expect((await parent.as.send({ path: '/api/v1/sessions' })).status).toBe(401);
});

test('depth, number and budget of its agents are limited', async () => {
  const one = await spawn({ budget_usd: 0.001 });
  const child = async (of: Started) => {
    const { status, json } = await of.as.send({
      method: 'POST',
      path: '/api/v1/spawn',
      body: request({ force: true, parent_id: one.id }),
    });
    if (status !== 201) return json.detail as string;
    expect(json.parent_id).toBe(of.id);
    return started(json.id);
  };
  const two = (await child(one)) as Started;
  const three = (await child(two)) as Started;
  expect(await child(three)).toMatch(/at most 3 deep \(agents.max_depth\)/);
  await child(one);
  expect(await child(one)).toMatch(/2 running children.*agents.max_children/);
  for (const { id } of [two, three]) await api.ok('POST', `/api/v1/sessions/${id}:stop`);
  expect((await child(one)) as Started).toMatchObject({ id: expect.any(String) });
});

test('a session that is deleted stays between those above and below it', async () => {
  const one = await spawn();
  const child = async (of: Started) => {
    const spawning = { method: 'POST', path: '/api/v1/spawn', body: request() };
    return started((await of.as.send(spawning)).json.id);
  };
  const two = await child(one);
  const three = await child(two);
  const path = `/api/v1/sessions/${three.id}`;
  expect((await api.ok('GET', path)).ancestors).toEqual([two.id, one.id]);
  await api.ok('DELETE', `/api/v1/sessions/${two.id}`);
  const spawning = { method: 'POST', path: '/api/v1/spawn', body: request() };
  const { detail } = await three.as.refused(spawning, 403, 'FORBIDDEN');
  expect(detail).toMatch(/this one would be at depth 4/);
  expect(await one.as.ok('POST', `${path}:stop`)).toMatchObject({ status: 'done' });
});

test('agents that are started at the same moment count, too', async () => {
  const parent = await spawn();
  const spawning = { method: 'POST', path: '/api/v1/spawn', body: request() };
  const replies = await Promise.all(Array.from({ length: 6 }, () => parent.as.send(spawning)));
  expect(replies.filter(({ status }) => status === 201)).toHaveLength(2);
  expect(replies.filter(({ status }) => status === 403)).toHaveLength(4);
  const failing = { ...spawning, body: request({ cwd: '/nowhere/at/all' }) };
  const { sessions } = await parent.as.ok('GET', '/api/v1/sessions');
  for (const { id } of sessions) await api.ok('POST', `/api/v1/sessions/${id}:stop`);
  const refused = await Promise.all([failing, failing].map((each) => parent.as.send(each)));
  expect(refused.map(({ status }) => status)).toEqual([400, 400]);
  expect((await parent.as.send(spawning)).status).toBe(201);
});

test('agents do not share their idempotency keys', async () => {
  const [one, other] = [await spawn(), await spawn()];
  const headers = { 'idempotency-key': 'child-1' };
  const spawning = { method: 'POST', path: '/api/v1/spawn', headers, body: request() };
  const as = async (caller: ApiClient) => (await caller.send(spawning)).json;
  const first = await as(one.as);
  const second = await as(other.as);
  const own = await as(api);
  expect([first, second, own].map(({ parent_id: id }) => id)).toEqual([one.id, other.id, null]);
  expect((await as(one.as)).id).toBe(first.id);
  expect((await as(api)).id).toBe(own.id);
  for (const { id } of [first, second, own]) await api.ok('POST', `/api/v1/sessions/${id}:stop`);
});

test('a question of an agent goes to a person, and the answer comes back', async () => {
  const agent = await spawn({ name: 'the one who asks' });
  const call = await mcp(agent.token);
  const options = ['SQLite', 'PostgreSQL'];
  const question = await call('ask_person', { title: 'Which one?', options, timeout_ms: 0 });
  expect(question).toMatchObject({ status: 'open', kind: 'choice', session_id: agent.id });
  const waiting = call('ask_person', { id: question.id, timeout_ms: 60_000 });
  const full = await mcp(token);
  const named = { title: 'For it?', session_id: agent.id, timeout_ms: 0 };
  expect(await full('ask_person', named)).toMatchObject({ kind: 'text', session_id: agent.id });
  const byName = { ...named, session_id: 'the one who asks' };
  expect(await full('ask_person', byName)).toMatchObject({ session_id: agent.id });
  const { questions } = await api.ok('GET', '/api/v1/questions?status=open');
  expect(questions).toContainEqual(question);
  await api.ok('POST', `/api/v1/questions/${question.id}:answer`, { option_id: '2' });
  expect(await waiting).toMatchObject({ status: 'answered', answer: '2', answered_by: 'token' });
  const creation = { method: 'POST', path: '/api/v1/questions', body: { title: 'Why?' } };
  const { json: text } = await agent.as.send(creation);
  await api.ok('POST', `/api/v1/questions/${text.id}:answer`, { text: 'because' });
  expect(await agent.as.ok('POST', `/api/v1/questions/${text.id}:wait`, {})).toMatchObject({
    answer: 'because',
  });
});

test('plans of an agent: its sessions are its children, and others cannot reach them', async () => {
  const [agent, other] = [await spawn({ name: 'planner' }), await spawn()];
  const [call, foreign, full] = [await mcp(agent.token), await mcp(other.token), await mcp(token)];
  const work = { backend: 'claude', prompt: 'end' };
  const tasks = [
    { key: 'hand', assignee: 'person', prompt: 'Look.' },
    { key: 'next', ...work, depends_on: ['hand'] },
  ];
  const plan = await call('create_plan', { title: 'Mine', tasks });
  expect(plan).toMatchObject({ status: 'running', created_by: agent.id });
  const refused = { title: 'x', tasks: [{ key: 'a', ...work, verify: 'true' }] };
  expect(await call('create_plan', refused)).toMatch(/^FORBIDDEN: .*verify.*agents.token_rights/);
  expect(await call('create_plan', { title: 'x', tasks: [{ ...tasks[1] }] })).toMatch(
    /^INVALID_REQUEST: \/tasks\/0\/depends_on\/0 names the task "hand"/,
  );
  const ready = async () => (await call('list_ready_tasks')).tasks;
  expect(await ready()).toMatchObject([{ key: 'hand' }]);
  expect((await foreign('list_ready_tasks')).tasks).toEqual([]);
  expect((await full('list_ready_tasks')).tasks).toHaveLength(1);
  const at = { plan_id: plan.id, key: 'hand' };
  expect(await foreign('claim_task', at)).toMatch(/^FORBIDDEN: /);
  expect((await call('claim_task', { ...at, by: 'ada' })).tasks[0].claimed_by).toBe(agent.id);
  expect(await full('claim_task', at)).toMatch(/^PLAN_STATE: /);
  expect(await ready()).toEqual([]);
  const after = await call('complete_task', { ...at, result: 'Seen.' });
  expect(after.tasks[0]).toMatchObject({ status: 'done', result: 'Seen.' });
  const path = `/api/v1/plans/${plan.id}`;
  const status = async () => expect((await agent.as.ok('GET', path)).status).toBe('done');
  await vi.waitFor(status, patience);
  const { tasks: done } = await agent.as.ok('GET', path);
  const child = await api.ok('GET', `/api/v1/sessions/${done[1].sessions[0]}`);
  expect(child).toMatchObject({ parent_id: agent.id, plan_id: plan.id, task_key: 'next' });
  // Where its parent works, not where the daemon was started.
  expect(child.workdir).toBe(home);
  expect((await other.as.ok('GET', '/api/v1/plans')).plans).toEqual([]);
});

test.each([
  ['agents.token_rights: full', { token, 'agents-token-rights': 'full' }],
  ['auth: none', { auth: 'none' }],
])('%s: an agent may do everything, and is still itself', async (_, flags) => {
  const place = mkdtempSync(join(tmpdir(), 'mr-tools-'));
  const limits = { 'agents-max-children': '1' };
  const other = await startDaemon({
    home: place,
    path: pathIn(place),
    flags: { ...flags, ...limits },
  });
  const all = other.api.withHeaders({ authorization: `Bearer ${token}` });
  onTestFinished(async () => {
    const { sessions } = await all.ok('GET', '/api/v1/sessions');
    for (const { id } of sessions) await all.ok('POST', `/api/v1/sessions/${id}:stop`);
    await other.dispose();
  });
  const body = request({ cwd: place });
  const { json: agent } = await all.send({ method: 'POST', path: '/api/v1/spawn', body });
  const seen = join(place, `seen-${agent.id}.json`);
  await vi.waitFor(
    () => expect(existsSync(seen) && readFileSync(seen, 'utf8')).toBeTruthy(),
    patience,
  );
  const call = await mcp(JSON.parse(readFileSync(seen, 'utf8')).token, other.url);
  expect(await call('ask_person', { title: 'Why?', timeout_ms: 0 })).toMatchObject({
    session_id: agent.id,
  });
  const tasks = [{ key: 'hand', assignee: 'person', prompt: 'x' }];
  expect(await call('create_plan', { title: 'Mine', tasks })).toMatchObject({
    created_by: agent.id,
  });
  const work = { prompt: 'work', backend: 'claude', driver: 'headless' };
  const child = await call('spawn_agent', work);
  expect(child).toMatchObject({ parent_id: agent.id, workdir: place });
  expect(await call('spawn_agent', work)).toMatch(/agents.max_children/);
  // It is not limited to what it has started.
  expect((await call('list_agents')).sessions.map(({ id }: any) => id)).toContain(agent.id);
  const plan = { title: 'x', tasks: [{ key: 'a', prompt: 'end', verify: 'true' }] };
  await call('stop_agent', { id: child.id });
  expect(await call('create_plan', plan)).toMatchObject({ status: 'running' });
});

test('submit_task: a task of its own, for an agent or for whoever claims it', async () => {
  const call = await mcp(token);
  const one = await call('submit_task', { title: 'Look', prompt: 'Look.', assignee: 'person' });
  expect(one).toMatchObject({ title: 'Look', tasks: [{ key: 'task', assignee: 'person' }] });
  await api.ok('POST', `/api/v1/plans/${one.id}:cancel`);
  const { id } = await call('submit_task', { title: 'Do', prompt: 'end' });
  const done = async () => expect((await api.ok('GET', `/api/v1/plans/${id}`)).status).toBe('done');
  await vi.waitFor(done, patience);
});
