import { execFileSync, spawn as start, type ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tmuxSocket } from '@millrace/daemon/config';
import { afterEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { listProcesses } from '../src/sessions/drivers/headless.js';
import { ApiClient } from './support/client.js';
import { noLocalModel } from './support/daemon.js';
import { installFakeAgent } from './support/fake-agent.js';
import { gitIdentity, noTmux, removeSessions, spawn, until } from './support/sessions.js';

const again = inCampaign('process');

const ctl = fileURLToPath(new URL('../../../bin/ctl', import.meta.url));
const children: ChildProcess[] = [];
const homes: string[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const home of homes.splice(0)) {
    const left = await processesOf(home);
    // A test that failed must not leave agents behind, whatever it is to be blamed for.
    for (const { pid } of left) process.kill(pid, 'SIGKILL');
    rmSync(home, { recursive: true, force: true });
    expect(left.map(({ line }) => line)).toEqual([]);
  }
});

/** What still runs out of this directory. */
async function processesOf(home: string): Promise<{ pid: number; line: string }[]> {
  const rows = await listProcesses();
  return rows
    .map(({ pid, args }) => ({ pid, line: args.join(' ') }))
    .filter(({ line }) => line.includes(home));
}

async function newHome(): Promise<string> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-crash-')));
  homes.push(home);
  await installFakeAgent(join(home, 'bin'));
  mkdirSync(join(home, 'work'));
  return home;
}

interface Running {
  api: ApiClient;
  child: ChildProcess;
  ended: Promise<unknown>;
}

async function serve(home: string): Promise<Running> {
  const child = start(
    process.execPath,
    [
      ctl,
      'daemon',
      'serve',
      '--auth=none',
      '--listen=127.0.0.1:0',
      `--backends-local-url=${noLocalModel}`,
      `--data=${data(home)}`,
    ],
    { env: { PATH: `${join(home, 'bin')}:${process.env['PATH']}`, HOME: home, ...gitIdentity } },
  );
  children.push(child);
  let [out, err] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()));
  const ended = new Promise((resolve) => child.on('close', resolve));
  await expect
    .poll(() => (out.includes('\n') ? '' : `no line yet: ${err.slice(-500)}`), { timeout: 60_000 })
    .toBe('');
  return { api: new ApiClient(JSON.parse(out.split('\n')[0]!).url as string), child, ended };
}

const data = (home: string) => join(home, 'data');

async function kill({ child, ended }: Running): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

async function goneFrom(home: string, text: string): Promise<void> {
  const left = async () => (await processesOf(home)).filter(({ line }) => line.includes(text));
  await expect.poll(left, { timeout: 60_000 }).toEqual([]);
}

test('headless runs go on without the daemon, and the next one knows how they ended', async () => {
  const home = await newHome();
  const cwd = join(home, 'work');
  const first = await serve(home);
  const run = (prompt: string) =>
    spawn(first.api, { prompt, backend: 'claude', driver: 'headless', cwd });
  const slow = await run('wait go.txt and say it took a while');
  const crashing = await run('wait two.txt crash 7');
  const short = await run('wait two.txt and say so soon');
  const killed = await run('wait never.txt');
  for (const { id } of [slow, crashing, short, killed]) await until(first.api, id, 'working');
  const { pid } = await until(first.api, killed.id, 'working');
  await kill(first);
  writeFileSync(join(cwd, 'two.txt'), '');
  await goneFrom(home, crashing.id);
  await goneFrom(home, short.id);
  process.kill(-pid!, 'SIGKILL');
  await goneFrom(home, killed.id);

  const { api, child, ended } = await serve(home);
  expect(await until(api, crashing.id, 'errored')).toMatchObject({
    exit_code: 7,
    pid: null,
    last_error: 'The fake agent crashes as scripted, with code 7',
  });
  expect(await until(api, short.id, 'done')).toMatchObject({ exit_code: 0 });
  const orphan = await until(api, killed.id, 'orphaned');
  expect(orphan.status_reason).toBe('its process is gone and left no exit code');
  const { lines } = await api.ok('GET', `/api/v1/sessions/${short.id}/output`);
  expect(lines).toEqual(['so soon']);

  expect((await until(api, slow.id, 'working')).pid).toBeGreaterThan(1);
  writeFileSync(join(cwd, 'go.txt'), '');
  expect(await until(api, slow.id, 'done')).toMatchObject({ exit_code: 0 });
  const later = await api.ok('GET', `/api/v1/sessions/${slow.id}/output`);
  expect(later.lines).toEqual(['it took a while']);
  await removeSessions(api);
  expect(readdirSync(join(data(home), 'sessions')).filter((name) => name.length === 26)).toEqual(
    [],
  );
  child.kill('SIGTERM');
  await ended;
});

/** The open questions of a session, when there are as many as expected. */
async function openQuestions(api: ApiClient, id: string, count: number) {
  const path = `/api/v1/questions?status=open&session_id=${id}`;
  const read = async () => (await api.ok('GET', path)).questions as { id: string }[];
  await expect.poll(async () => (await read()).length, { timeout: 60_000 }).toBe(count);
  return read();
}

again('headless questions: can be answered after the daemon was killed', async () => {
  const home = await newHome();
  const cwd = join(home, 'work');
  const first = await serve(home);
  const run = (prompt: string) =>
    spawn(first.api, { prompt, backend: 'claude', driver: 'headless', cwd });
  const asking = await run('ask "$ make test", then write allowed.txt');
  const later = await run('wait go.txt, then ask "$ make later", then write later.txt');
  const dying = await run('ask "$ make never"');
  const [question] = await openQuestions(first.api, asking.id, 1);
  const [lost] = await openQuestions(first.api, dying.id, 1);
  await until(first.api, asking.id, 'waiting_for_input');
  await until(first.api, later.id, 'working');
  const { pid } = await until(first.api, dying.id, 'waiting_for_input');
  await kill(first);
  // One asks and one dies while no daemon runs.
  writeFileSync(join(cwd, 'go.txt'), '');
  const requests = join(data(home), 'sessions', later.id, 'permissions');
  await expect.poll(() => readdirSync(requests).length, { timeout: 60_000 }).toBe(1);
  process.kill(-pid!, 'SIGKILL');
  await goneFrom(home, dying.id);

  const { api, child, ended } = await serve(home);
  expect(await openQuestions(api, asking.id, 1)).toEqual([question]);
  await until(api, asking.id, 'waiting_for_input');
  expect(existsSync(join(cwd, 'allowed.txt'))).toBe(false);
  const [fresh] = await openQuestions(api, later.id, 1);
  for (const { id } of [question!, fresh!]) {
    const path = `/api/v1/questions/${id}:answer`;
    const answered = await api.ok('POST', path, { option_id: 'allow' });
    expect(answered).toMatchObject({ status: 'answered', answer: 'allow' });
  }
  for (const { id } of [asking, later]) {
    expect(await until(api, id, 'done')).toMatchObject({ exit_code: 0 });
  }
  expect(['allowed.txt', 'later.txt'].map((name) => existsSync(join(cwd, name)))).toEqual([
    true,
    true,
  ]);

  const orphan = await until(api, dying.id, 'orphaned');
  expect(orphan.status_reason).toBe('its process is gone and left no exit code');
  await openQuestions(api, dying.id, 0);
  const path = `/api/v1/questions/${lost!.id}:answer`;
  const late = await api.send({ method: 'POST', path, body: { option_id: 'allow' } });
  expect(late.json).toMatchObject({ code: 'QUESTION_CLOSED', status: 409 });
  await removeSessions(api);
  child.kill('SIGTERM');
  await ended;
});

describe.skipIf(noTmux)(`in tmux${noTmux ? ` (${noTmux})` : ''}`, () => {
  test('a daemon that was killed adopts its agents again and ends orphans', async () => {
    const home = await newHome();
    const cwd = join(home, 'work');
    const first = await serve(home);
    const run = (prompt: string) => spawn(first.api, { prompt, backend: 'claude', cwd });
    const asking = await run('wait go.txt then ask then say thank you');
    const resting = await run('say hello');
    const crashing = await run('wait go.txt crash 9');
    for (const { id } of [asking, crashing]) await until(first.api, id, 'working');
    const idle = await until(first.api, resting.id, 'idle');
    await kill(first);
    const socket = tmuxSocket(data(home));
    execFileSync('tmux', ['-S', socket, 'new-session', '-d', '-s', 'orphan', 'sleep 600']);
    writeFileSync(join(cwd, 'go.txt'), '');
    await goneFrom(home, crashing.id);

    const { api, child, ended } = await serve(home);
    expect(await until(api, crashing.id, 'errored')).toMatchObject({ exit_code: 9, pid: null });
    const waiting = await until(api, asking.id, 'waiting_for_input');
    expect(waiting.pid).toBeGreaterThan(1);
    const again = await until(api, resting.id, 'idle');
    expect([again.pid, again.backend_session_id]).toEqual([idle.pid, idle.backend_session_id]);
    const names = execFileSync('tmux', ['-S', socket, 'list-sessions', '-F', '#{session_name}'], {
      encoding: 'utf8',
    });
    expect(names.trim().split('\n').sort()).toEqual([asking.id, resting.id].sort());

    await api.ok('POST', `/api/v1/sessions/${asking.id}:send`, { text: '1' });
    await until(api, asking.id, 'idle');
    const { lines } = await api.ok('GET', `/api/v1/sessions/${asking.id}/output`);
    expect(lines).toContain('● thank you');
    await removeSessions(api);
    child.kill('SIGTERM');
    await ended;
    expect(existsSync(socket)).toBe(false);
  });
});
