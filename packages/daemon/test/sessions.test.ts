import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { listProcesses } from '../src/sessions/drivers/headless.js';
import {
  agentTest as test,
  gitIn,
  newRepo,
  spawn,
  until,
  untilIs,
  type AgentDaemon,
  type Session,
} from './support/sessions.js';

const again = inCampaign('process', test);

/** A request for a headless run of the fake agent. */
function headless(daemon: AgentDaemon, prompt: string, more: object = {}): object {
  return { prompt, backend: 'claude', driver: 'headless', cwd: daemon.workdir, ...more };
}

function go(daemon: AgentDaemon): void {
  writeFileSync(join(daemon.workdir, 'go.txt'), '');
}

test('a headless run is given its prompt, works, and is done', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { api, workdir } = daemon;
  const spawned = await spawn(api, headless(daemon, 'wait go.txt, write a.txt\nsay all is well'));
  expect(spawned).toMatchObject({
    status: 'spawning',
    name: 'wait go.txt, write a.txt',
    workdir,
    driver: 'headless',
    repo: null,
    pid: null,
    tags: [],
    force_compact: 'inherit',
  });
  const working = await untilIs(api, spawned.id, ({ model }) => model, 'claude-sonnet-4-5');
  expect(working.status).toBe('working');
  expect(working.status_reason).not.toBeNull();
  expect(working.backend_session_id).toMatch(/^[0-9a-f]{8}-/);
  const agent = (await listProcesses()).find(({ pid }) => pid === working.pid);
  expect(agent?.args.join(' ')).toContain(spawned.id);
  go(daemon);
  const done = await until(api, spawned.id, 'done');
  expect(done).toMatchObject({
    exit_code: 0,
    pid: null,
    last_error: null,
    context_state: 'ok',
    status_reason: 'its process exited with code 0',
  });
  expect(Date.parse(done.status_since)).toBeGreaterThanOrEqual(Date.parse(done.created_at));
  expect(existsSync(join(workdir, 'a.txt'))).toBe(true);
  const { lines, next } = await api.ok('GET', `/api/v1/sessions/${spawned.id}/output`);
  expect(lines).toEqual([`[Write] ${join(workdir, 'a.txt')}`, 'all is well']);
  const rest = await api.ok('GET', `/api/v1/sessions/${spawned.id}/output?after=${next}`);
  expect(rest).toEqual({ lines: [], next });
});

again('output is read on from where the last answer ended', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { id } = await spawn(daemon.api, headless(daemon, 'write a.txt write b.txt say three'));
  await until(daemon.api, id, 'done');
  const seen: string[] = [];
  let after = 0;
  for (;;) {
    const path = `/api/v1/sessions/${id}/output?after=${after}&limit=1`;
    const page = await daemon.api.ok('GET', path);
    const isNews = page.next > after;
    after = page.next;
    if (!isNews) break;
    if (page.lines.length === 0) continue;
    expect(page.lines).toHaveLength(1);
    seen.push(...(page.lines as string[]));
  }
  expect(seen).toHaveLength(3);
  expect(seen.at(-1)).toBe('three');
  const last = await daemon.api.ok('GET', `/api/v1/sessions/${id}/output?limit=1`);
  expect(last).toEqual({ lines: ['three'], next: after });
});

again('a run that fails says how', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { id } = await spawn(daemon.api, headless(daemon, 'crash 3'));
  expect(await until(daemon.api, id, 'errored')).toMatchObject({
    exit_code: 3,
    pid: null,
    last_error: 'The fake agent crashes as scripted, with code 3',
    status_reason: 'its process exited with code 3',
  });
});

test('a limit of the provider is no failure, and says when it ends', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const before = Date.now();
  const { id } = await spawn(daemon.api, headless(daemon, 'limit 90'));
  const limited = await until(daemon.api, id, 'rate_limited');
  const minutes = (Date.parse(limited.limited_until!) - before) / 60_000;
  expect(minutes).toBeGreaterThan(88);
  expect(minutes).toBeLessThan(95);
  expect(limited.last_error).not.toBeNull();
});

test('a run is stopped with all that it started', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { api } = daemon;
  const { id } = await spawn(api, headless(daemon, 'wait never.txt'));
  const working = await untilIs(api, id, ({ model }) => model !== null, true);
  const stopped = await api.ok('POST', `/api/v1/sessions/${id}:stop`);
  expect(stopped).toMatchObject({ status: 'done', status_reason: 'it was stopped', pid: null });
  expect(() => process.kill(-working.pid!, 0)).toThrow('ESRCH');
  expect(await api.ok('POST', `/api/v1/sessions/${id}:stop`)).toEqual(stopped);
});

test('a restarted run goes on with the session that the backend has', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { api } = daemon;
  const { id } = await spawn(api, headless(daemon, 'crash 4 unless go.txt say second time lucky'));
  const failed = await until(api, id, 'errored');
  go(daemon);
  const again: Session = await api.ok('POST', `/api/v1/sessions/${id}:restart`);
  expect(again).toMatchObject({ status: 'spawning', restart_count: 1, exit_code: null });
  const done = await until(api, id, 'done');
  expect(done.backend_session_id).toBe(failed.backend_session_id);
  expect(done.restart_count).toBe(1);
});

again('a run that asks for it is restarted by itself', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { api } = daemon;
  const { id } = await spawn(
    api,
    headless(daemon, 'crash 5 unless go.txt', { auto_restart: true }),
  );
  const failed = await until(api, id, 'errored');
  expect(failed.status_reason).toContain('its process exited with code 5');
  go(daemon);
  const done = await until(api, id, 'done');
  expect(done.restart_count).toBeGreaterThanOrEqual(1);
});

test('a command line that is gone still has a session, which says why it did not start', async ({
  newDaemon,
}) => {
  const daemon = await newDaemon();
  const { api, home } = daemon;
  rmSync(join(home, 'bin', 'claude'));
  const { id } = await spawn(api, headless(daemon, 'x'));
  const errored = await until(api, id, 'errored');
  expect(errored.status_reason).toContain('it did not start: the program is gone');
});

test('an agent finds out who it is, and nothing of the daemon’s settings', async ({
  newDaemon,
}) => {
  const environment = {
    MILLRACE_QUEUE_TOKEN: 'secret',
    TMUX: 'outer',
    COLOUR: 'blue',
    AWS_SECRET_ACCESS_KEY: 'secret',
    ANTHROPIC_API_KEY: 'secret',
    GEMINI_API_KEY: 'its own',
  };
  const daemon = await newDaemon({ environment, flags: { 'agents-env': '[COLOUR]' } });
  const { api, home } = daemon;
  writeFileSync(join(home, 'bin', 'gemini'), '#!/bin/sh\nenv | sort\n', { mode: 0o755 });
  await api.ok('POST', '/api/v1/backends/rescan');
  const { id } = await spawn(api, headless(daemon, 'x', { backend: 'gemini' }));
  await until(api, id, 'done');
  const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
  expect(lines).toContain(`MILLRACE_AGENT_ID=${id}`);
  expect(lines).toContain(`MILLRACE_DATA_DIR=${join(home, 'data')}`);
  expect(lines).toContain('COLOUR=blue');
  expect(lines).toContain('GEMINI_API_KEY=its own');
  const text = (lines as string[]).join('\n');
  expect(text).not.toContain('secret');
  expect(text).not.toMatch(/^TMUX=/m);
});

test('a worktree is made on its branch and goes with the session, unless work would be lost', async ({
  newDaemon,
}) => {
  const daemon = await newDaemon();
  const { api, home } = daemon;
  const repo = newRepo(join(home, 'mill'));
  const request = (branch: string, prompt: string) => ({
    prompt,
    backend: 'claude',
    driver: 'headless',
    repo,
    branch,
  });
  const clean = await spawn(api, request('feature/clean', 'say nothing to do'));
  expect(clean).toMatchObject({
    repo,
    branch: 'feature/clean',
    worktree: join(home, 'mill-worktrees', 'feature-clean'),
    workdir: join(home, 'mill-worktrees', 'feature-clean'),
  });
  const dirty = await spawn(api, request('dirty', 'write notes.txt'));
  const ahead = await spawn(api, request('ahead', 'write notes.txt commit'));
  const merged = await spawn(api, request('merged', 'write other.txt commit'));
  for (const { id } of [clean, dirty, ahead, merged]) await until(api, id, 'done');
  gitIn(repo, 'merge', '--quiet', 'merged');
  const remove = (session: Session) => api.ok('DELETE', `/api/v1/sessions/${session.id}`);
  expect(await remove(clean)).toEqual({
    id: clean.id,
    deleted: true,
    worktree: clean.worktree,
    worktree_kept: false,
    reason: null,
  });
  expect(await remove(dirty)).toMatchObject({
    worktree_kept: true,
    reason: 'the worktree has uncommitted changes',
  });
  expect(await remove(ahead)).toMatchObject({
    worktree_kept: true,
    reason: 'the branch ahead is not merged',
  });
  expect(await remove(merged)).toMatchObject({ worktree_kept: false, reason: null });
  expect([clean, dirty, ahead, merged].map(({ worktree }) => existsSync(worktree!))).toEqual([
    false,
    true,
    true,
    false,
  ]);
  const branches = gitIn(repo, 'branch', '--format=%(refname:short)').split('\n');
  expect(branches.sort()).toEqual(['ahead', 'dirty', 'main', 'merged']);
  await api.refused({ path: `/api/v1/sessions/${clean.id}` }, 404, 'SESSION_NOT_FOUND');
});

test('a worktree is worked in, also where a directory of the repository is named', async ({
  newDaemon,
}) => {
  const { api, home } = await newDaemon();
  const repo = newRepo(join(home, 'mill'));
  mkdirSync(join(repo, 'deep'));
  writeFileSync(join(repo, 'deep', 'kept.txt'), '');
  gitIn(repo, 'add', '.');
  gitIn(repo, 'commit', '--quiet', '--message=deep');
  mkdirSync(join(repo, 'not-in-git'));
  symlinkSync(repo, join(home, 'link'));
  const outside = join(home, 'work');
  const spawnIn = (branch: string, place: object) =>
    spawn(api, { prompt: 'write a.txt', backend: 'claude', driver: 'headless', branch, ...place });
  const worked = [
    await spawnIn('top', { cwd: repo }),
    await spawnIn('deep', { cwd: join(repo, 'deep') }),
    await spawnIn('linked', { cwd: join(home, 'link', 'deep') }),
    await spawnIn('unknown', { cwd: join(repo, 'not-in-git') }),
    await spawnIn('elsewhere', { repo, cwd: outside }),
  ];
  const worktree = (name: string) => join(home, 'mill-worktrees', name);
  expect(worked.map(({ workdir }) => workdir)).toEqual([
    worktree('top'),
    join(worktree('deep'), 'deep'),
    join(worktree('linked'), 'deep'),
    worktree('unknown'),
    outside,
  ]);
  for (const { id } of worked) await until(api, id, 'done');
  expect(gitIn(repo, 'status', '--porcelain')).toBe('');
  const { files } = await api.ok('GET', `/api/v1/sessions/${worked[1]!.id}/diff`);
  expect(files.map(({ path }: { path: string }) => path)).toEqual(['deep/a.txt']);
});

test('spawn: an invalid value is reported by its field', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { api, home } = daemon;
  const empty = join(home, 'empty');
  mkdirSync(empty);
  const file = join(home, 'file');
  writeFileSync(file, '');
  const repo = newRepo(join(home, 'mill'));
  const bare = join(home, 'no-commits');
  mkdirSync(bare);
  gitIn(bare, 'init', '--quiet');
  const cases: [object, string][] = [
    [{ repo: '/nowhere/at/all' }, '/repo'],
    [{ repo: 'relative' }, '/repo'],
    [{ repo: empty }, '/repo'],
    [{ repo: file }, '/repo'],
    [{ cwd: '/nowhere/at/all' }, '/cwd'],
    [{ cwd: file }, '/cwd'],
    [{ cwd: empty, branch: 'x' }, '/branch'],
    [{ cwd: empty, worktree: true }, '/worktree'],
    [{ repo, branch: 'main' }, '/branch'],
    [{ repo, branch: 'a..b' }, '/branch'],
    [{ repo: bare, branch: 'x' }, '/repo'],
    [{ parent_id: 'nobody' }, '/parent_id'],
    [{ prompt: '' }, '/prompt'],
    [{ prompt: ' \n' }, '/prompt'],
    [{ prompt: 7 }, '/prompt'],
    [{ tags: ['a b'] }, '/tags/0'],
    [{ driver: 'pty' }, '/driver'],
    [{ name: ' \u00A0 ' }, '/name'],
    [{ name: 'a\u001B[31m' }, '/name'],
    [{ name: 'a\u009B31m' }, '/name'],
    [{ name: 'two\nlines' }, '/name'],
    [{ nonsense: 1 }, '/nonsense'],
  ];
  for (const [change, pointer] of cases) {
    const body = { prompt: 'x', backend: 'claude', ...change };
    const reply = await api.send({ method: 'POST', path: '/api/v1/spawn', body });
    expect([change, reply.status, reply.json.code]).toEqual([change, 400, 'INVALID_REQUEST']);
    const pointers = reply.json.errors.map((each: { pointer: string }) => each.pointer);
    expect([change, pointers]).toEqual([change, [pointer]]);
  }
  expect((await api.ok('GET', '/api/v1/sessions')).sessions).toEqual([]);
  expect(existsSync(`${repo}-worktrees`) ? 'left behind' : 'clean').toBe('clean');
});

test('backends that cannot be used are refused, and a single usable one is the default', async ({
  newDaemon,
}) => {
  const daemon = await newDaemon();
  const { api } = daemon;
  const spawnOn = (change: object) => ({
    method: 'POST',
    path: '/api/v1/spawn',
    body: { prompt: 'x', driver: 'headless', cwd: daemon.workdir, ...change },
  });
  await api.refused(spawnOn({ backend: 'cluade' }), 404, 'BACKEND_NOT_FOUND');
  await api.refused(spawnOn({ backend: 'goose' }), 409, 'BACKEND_NOT_ELIGIBLE');
  await api.refused(spawnOn({ backend: 'local' }), 409, 'BACKEND_NOT_ELIGIBLE');
  const { id, backend } = await spawn(api, spawnOn({}).body);
  expect(backend).toBe('claude');
  await until(api, id, 'done');
  await api.ok('PATCH', '/api/v1/backends/claude', { enabled: false });
  await api.refused(spawnOn({ backend: 'claude' }), 409, 'BACKEND_NOT_ELIGIBLE');
  const none = await api.refused(spawnOn({}), 409, 'BACKEND_NOT_ELIGIBLE');
  expect(none.detail).toContain('ctl backend enable claude');
  const restart = { method: 'POST', path: `/api/v1/sessions/${id}:restart` };
  await api.refused(restart, 409, 'BACKEND_NOT_ELIGIBLE');
});

test('a key starts one session, however often and however closely it is sent', async ({
  newDaemon,
}) => {
  const daemon = await newDaemon();
  const { api } = daemon;
  const request = (body: object) =>
    api.send({
      method: 'POST',
      path: '/api/v1/spawn',
      headers: { 'idempotency-key': 'k1' },
      body,
    });
  const body = headless(daemon, 'say once');
  const replies = await Promise.all(Array.from({ length: 8 }, () => request(body)));
  expect(new Set(replies.map(({ json }) => json.id)).size).toBe(1);
  const replayed = replies.filter(({ headers }) => headers['idempotent-replayed'] === 'true');
  expect(replayed).toHaveLength(7);
  expect((await api.ok('GET', '/api/v1/sessions')).sessions).toHaveLength(1);
  const other = await request({ ...body, name: 'another' });
  expect([other.status, other.json.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT']);
});

/** An agent has spent that today, by its transcript. */
function spendEightCents(home: string): void {
  const projects = join(home, '.claude', 'projects', 'p');
  mkdirSync(projects, { recursive: true });
  const usage = { input_tokens: 16_000, output_tokens: 0 };
  const message = { id: 'm1', model: 'claude-opus-4-5', usage };
  const timestamp = new Date().toISOString();
  const line = { type: 'assistant', timestamp, sessionId: 'before', requestId: 'r1', message };
  writeFileSync(join(projects, 'before.jsonl'), `${JSON.stringify(line)}\n`);
}

test('spawns at the same moment cannot all slip under a cap', async ({ newDaemon }) => {
  const daemon = await newDaemon({ flags: { 'tokens-budget-daily-usd': '0.1' } });
  const { api, home } = daemon;
  // The next one is expected to cost as much.
  spendEightCents(home);
  await expect
    .poll(async () => (await api.ok('GET', '/api/v1/spend')).daily_usd, { timeout: 60_000 })
    .toBeCloseTo(0.08);
  const request = { method: 'POST', path: '/api/v1/spawn', body: headless(daemon, 'wait go.txt') };
  const replies = await Promise.all(Array.from({ length: 6 }, () => api.send(request)));
  const statuses = replies.map(({ status }) => status).sort((a, b) => a - b);
  expect(statuses).toEqual([201, 428, 428, 428, 428, 428]);
  const refused = replies.find(({ status }) => status === 428)!;
  expect(refused.json).toMatchObject({
    confirmation_required: true,
    gate: 'budget',
    verdict: { over: true, cap_daily: 0.1, cap_weekly: 0 },
  });
  expect(refused.json.verdict.daily_usd).toBeCloseTo(0.08);
  const forced = await api.send({ ...request, body: { ...request.body, force: true } });
  expect(forced.status).toBe(201);
  go(daemon);
});

test('a cap holds also where savings and insights are off, and not where the gate is', async ({
  newDaemon,
}) => {
  const off = { savings: 'off', insights: 'off' };
  const capped = await newDaemon({ flags: { ...off, 'tokens-budget-daily-usd': '0.05' } });
  spendEightCents(capped.home);
  const body = headless(capped, 'say free');
  const request = { method: 'POST', path: '/api/v1/spawn', body };
  // Figures may be a second old.
  await expect
    .poll(async () => (await capped.api.send(request)).status, { timeout: 60_000, interval: 500 })
    .toBe(428);
  await capped.api.refused({ path: '/api/v1/spend' }, 403, 'SAVINGS_DISABLED');
  const flags = { 'tokens-budget-daily-usd': '0.05', 'tokens-budget-gate': 'off' };
  const open = await newDaemon({ flags });
  spendEightCents(open.home);
  const { id } = await spawn(open.api, headless(open, 'say free'));
  await until(open.api, id, 'done');
});

again(
  'what became of sessions shows in the insights as soon as they have ended',
  async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const { api } = daemon;
    const well = await spawn(api, headless(daemon, 'say hello'));
    const badly = await spawn(api, headless(daemon, 'crash 3'));
    await until(api, well.id, 'done');
    await until(api, badly.id, 'errored');
    expect(await api.ok('GET', '/api/v1/insights')).toMatchObject({
      sessions: 2,
      durations: { overall: { sessions: 2 }, by_backend: [{ key: 'claude', sessions: 2 }] },
      error_rates: expect.arrayContaining([
        { by: 'backend', key: 'claude', sessions: 2, errors: 1, rate: 0.5 },
      ]),
    });
  },
);

test('without tmux the default is headless, and tmux is refused', async ({ newDaemon }) => {
  const agent = await newDaemon({ path: '/nowhere' });
  writeFileSync(join(agent.home, 'bin', 'claude'), '#!/bin/sh\necho hello\n', { mode: 0o755 });
  const request = { prompt: 'x', backend: 'claude', cwd: agent.workdir };
  const refusal = await agent.api.refused(
    { method: 'POST', path: '/api/v1/spawn', body: { ...request, driver: 'tmux' } },
    400,
    'INVALID_REQUEST',
  );
  expect(refusal.detail).toContain('tmux');
  const { id, driver } = await spawn(agent.api, request);
  expect(driver).toBe('headless');
  await until(agent.api, id, 'done');
  expect((await agent.api.ok('GET', `/api/v1/sessions/${id}/output`)).lines).toEqual(['hello']);
});

test('a headless run takes no input, and nobody can be found under a wrong id', async ({
  newDaemon,
}) => {
  const daemon = await newDaemon();
  const { api } = daemon;
  const { id } = await spawn(api, headless(daemon, 'wait go.txt'));
  await until(api, id, 'working');
  const send = { method: 'POST', body: { text: 'hello' } };
  const path = `/api/v1/sessions/${id}:send`;
  await api.refused({ ...send, path }, 409, 'SESSION_STATE');
  go(daemon);
  await until(api, id, 'done');
  await api.refused({ ...send, path }, 409, 'SESSION_STATE');
  const nobody = '/api/v1/sessions/01K9ZQ4M7T3V8X2B6C0D5E1F9G';
  await api.refused({ ...send, path: `${nobody}:send` }, 404, 'SESSION_NOT_FOUND');
  await api.refused({ method: 'DELETE', path: nobody }, 404, 'SESSION_NOT_FOUND');
  await api.refused({ path: `${nobody}/output` }, 404, 'SESSION_NOT_FOUND');
});

again('sessions are listed newest first and name their parents', async ({ newDaemon }) => {
  const daemon = await newDaemon();
  const { api } = daemon;
  const parent = await spawn(api, headless(daemon, 'say one', { name: 'first', tags: ['a', 'b'] }));
  const child = await spawn(api, headless(daemon, 'say two', { parent_id: parent.id }));
  expect(child.parent_id).toBe(parent.id);
  const { sessions } = await api.ok('GET', '/api/v1/sessions');
  expect(sessions.map(({ id }: Session) => id)).toEqual([child.id, parent.id]);
  expect(sessions[1]).toMatchObject({ name: 'first', tags: ['a', 'b'] });
});
