import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { tmuxSocket } from '@millrace/daemon/config';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { runCtl, type Ran, type RunOptions } from './queue-server.js';

type Session = DaemonSchema<'Session'>;

const working = contractExample('Session');
const waiting = contractExample('SessionList').sessions[0]!;
let daemon: FakeDaemon;
let home = '';
beforeAll(async () => {
  daemon = await FakeDaemon.start();
  home = mkdtempSync(join(tmpdir(), 'ctl-agent-'));
});
afterAll(async () => {
  await daemon.stop();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  daemon.requests.length = 0;
  daemon.routes.clear();
  daemon.reply = { status: 404, body: problem(404, 'NOT_FOUND', 'no such path') };
  daemon.routes.set('GET /api/v1/sessions', { body: { sessions: [waiting, working] } });
});

function problem(status: number, code: string, detail: string, more: object = {}) {
  return { type: 'about:blank', title: 'x', status, code, detail, error: detail, ...more };
}

function ctl(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const env = { HOME: home, MILLRACE_URL: daemon.url };
  return runCtl(['agent', ...args], { ...options, env: { ...env, ...options.env } });
}

const pathOf = ({ id }: Session) => `/api/v1/sessions/${id}`;

/** What was sent last, with its body as JSON. */
function lastRequest(): { line: string; body: unknown } {
  const { line, body } = daemon.requests.at(-1)!;
  return { line, body: body === '' ? undefined : JSON.parse(body) };
}

describe('list, show and explain', () => {
  test('a status picks some of them', async () => {
    const { out } = await ctl(['list', '--status', 'working', '--json']);
    const answer = JSON.parse(out);
    expect(faultsOf('SessionList', answer)).toEqual([]);
    expect(answer.sessions.map(({ name }: Session) => name)).toEqual(['retry-upload']);
    expect((await ctl(['ls', '--status', 'orphaned'])).out).toBe(
      'No agent has the status orphaned.\n',
    );
  });

  test('an agent is found by its name, its id and the start of its id', async () => {
    for (const words of ['docs', waiting.id, '01k9zq5']) {
      const { code, out } = await ctl(['show', words, '--json']);
      expect([code, JSON.parse(out)]).toEqual([0, waiting]);
    }
    expect(await ctl(['show', '01K9ZQ'])).toMatchObject({ code: 1, out: '' });
    expect((await ctl(['show', 'doks'])).err).toBe(
      'ctl: no agent is called "doks"; did you mean "docs"?\n',
    );
  });

  test('explain shows next steps, also as data', async () => {
    const { out } = await ctl(['explain', 'docs', '--json']);
    expect(JSON.parse(out)).toMatchObject({
      status: 'waiting_for_input',
      evidence: 'asks whether it may run a command',
      advice: [expect.stringContaining(`ctl agent send ${waiting.id}`), expect.anything()],
    });
    expect((await ctl(['explain', 'docs'])).out).toMatch(/^next steps {2}Answer it/m);
  });
});

describe('spawn', () => {
  test('sends what the flags say, with whole paths, and shows how to look', async () => {
    daemon.routes.set('POST /api/v1/spawn', { status: 201, body: working });
    const flags = '--backend claude --model opus --repo . --branch b --name n --tag x --tag y';
    const { code, out } = await ctl(['spawn', 'Fix it', ...flags.split(' '), '--driver', 'tmux']);
    expect(code).toBe(0);
    expect(lastRequest().body).toEqual({
      prompt: 'Fix it',
      backend: 'claude',
      model: 'opus',
      repo: resolve('.'),
      branch: 'b',
      name: 'n',
      tags: ['x', 'y'],
      driver: 'tmux',
    });
    expect(faultsOf('SpawnRequest', lastRequest().body)).toEqual([]);
    expect(out).toBe(
      `Started retry-upload on claude in ${working.workdir}; it is working.\n` +
        `  ctl agent logs -f ${working.id}  follow its output\n` +
        `  ctl agent attach ${working.id}   open its terminal\n` +
        `  ctl agent explain ${working.id}  its status and the next steps\n`,
    );
  });

  test('without a place it works where the command was typed', async () => {
    daemon.routes.set('POST /api/v1/spawn', { status: 201, body: working });
    await ctl(['spawn', 'Fix it']);
    expect(lastRequest().body).toEqual({ prompt: 'Fix it', cwd: resolve('.') });
    await ctl(['spawn', '-', '--worktree', '--parent', 'docs'], { input: 'From\nstdin\n' });
    expect(lastRequest().body).toEqual({
      prompt: 'From\nstdin',
      repo: resolve('.'),
      worktree: true,
      parent_id: waiting.id,
    });
    expect(await ctl(['spawn', ' '])).toMatchObject({
      code: 2,
      err: 'ctl: The prompt is empty. Give it in quotes, or use - to read it from stdin.\n',
    });
  });

  const verdict = {
    over: true,
    daily_usd: 12.5,
    weekly_usd: 40,
    cap_daily: 10,
    cap_weekly: 0,
    reason: 'daily',
  };
  const gate = (body: string) =>
    (JSON.parse(body) as { force?: boolean }).force
      ? { status: 201, body: working }
      : {
          status: 428,
          body: problem(428, 'BUDGET_CONFIRMATION_REQUIRED', 'over', {
            confirmation_required: true,
            gate: 'budget',
            verdict,
          }),
        };

  test('over a spend cap, a person is shown the figures and asked', async () => {
    daemon.routes.set('POST /api/v1/spawn', gate);
    const yes = await ctl(['spawn', 'Fix it'], { typed: 'y\n' });
    expect(yes).toMatchObject({ code: 0, out: expect.stringContaining('Started') });
    // Whoever closes the input after the answer leaves the cursor on a new line.
    expect(yes.err.trimEnd()).toBe(
      'A spend cap is reached.\n' +
        'spent today      $12.50  of $10.00\n' +
        'spent in 7 days  $40.00\n' +
        'Spawn anyway? [y/N]',
    );
    expect(lastRequest().body).toMatchObject({ force: true });
    const no = await ctl(['spawn', 'Fix it'], { typed: 'n\n' });
    expect(no).toMatchObject({ code: 1, out: '' });
    expect(no.err).toMatch(/ctl: Nothing was started\.\n$/);
  });

  test('where nobody can be asked, it names the figures and --force', async () => {
    daemon.routes.set('POST /api/v1/spawn', gate);
    const { code, out, err } = await ctl(['spawn', 'Fix it']);
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      'ctl: A spend cap is reached: $12.50 today of $10.00, $40.00 in 7 days. ' +
        'Nothing was started. To start it anyway, add --force.\n',
    );
    expect(await ctl(['spawn', 'Fix it', '--force'])).toMatchObject({ code: 0, err: '' });
  });

  test('what the daemon refuses is reported in its words', async () => {
    daemon.routes.set('POST /api/v1/spawn', {
      status: 404,
      body: problem(404, 'BACKEND_NOT_FOUND', 'No backend is called nope.'),
    });
    expect(await ctl(['spawn', 'x', '--backend', 'nope'])).toMatchObject({
      code: 1,
      err: 'ctl: No backend is called nope. List them with `ctl backend list`.\n',
    });
  });
});

describe('acting', () => {
  test('send pastes the text, or what comes by stdin', async () => {
    daemon.routes.set(`POST ${pathOf(waiting)}:send`, { body: { ...waiting, status: 'working' } });
    const { out } = await ctl(['send', 'docs', 'Yes, go on.']);
    expect(out).toBe('docs received it and is working.\n');
    expect(lastRequest()).toEqual({
      line: `POST ${pathOf(waiting)}:send`,
      body: { text: 'Yes, go on.' },
    });
    await ctl(['send', 'docs'], { input: 'a\nb\n' });
    expect(lastRequest().body).toEqual({ text: 'a\nb' });
    expect((await ctl(['send', 'docs'], { typed: '' })).err).toMatch(/The text is missing/);
  });

  test('stop and restart say what became of it', async () => {
    daemon.routes.set(`POST ${pathOf(working)}:stop`, { body: { ...working, status: 'done' } });
    expect((await ctl(['stop', 'retry-upload'])).out).toBe(
      'retry-upload was stopped and is done.\n',
    );
    const again = { ...working, status: 'spawning', restart_count: 2 };
    daemon.routes.set(`POST ${pathOf(working)}:restart`, { body: again });
    expect((await ctl(['restart', 'retry-upload'])).out).toBe(
      'retry-upload is running again and is spawning; it was restarted 2 times.\n',
    );
    expect(JSON.parse((await ctl(['restart', 'retry-upload', '--json'])).out)).toEqual(again);
  });

  test('remove asks before it ends one that runs, and says why a worktree is kept', async () => {
    daemon.routes.set(`DELETE ${pathOf(working)}`, {
      body: {
        id: working.id,
        deleted: true,
        worktree: working.worktree,
        worktree_kept: true,
        reason: 'the worktree has uncommitted changes',
      },
    });
    const silent = await ctl(['rm', 'retry-upload']);
    expect(silent).toMatchObject({ code: 2, out: '' });
    expect(silent.err).toMatch(
      /retry-upload is working\. Not a terminal, so there is nobody to confirm\. Add --yes/,
    );
    expect((await ctl(['rm', 'retry-upload'], { typed: 'no\n' })).code).toBe(1);
    const requests = daemon.requests.filter(({ line }) => line.startsWith('DELETE'));
    expect(requests).toEqual([]);
    const retained = `its worktree ${working.worktree} is kept: the worktree has uncommitted changes`;
    const next = `git worktree remove --force ${working.worktree}`;
    expect((await ctl(['rm', 'retry-upload', '--yes'])).out).toBe(
      `Removed retry-upload; ${retained}. Delete it with \`${next}\` when you need nothing of it.\n`,
    );
  });

  test('compact set shows what the override comes to', async () => {
    const answer = { id: waiting.id, state: 'inherit', effective: false };
    daemon.routes.set(`PATCH ${pathOf(waiting)}/force-compact`, { body: answer });
    expect((await ctl(['compact', 'set', 'docs', 'inherit'])).out).toBe(
      'The override of docs is inherit: forced compaction is off for it.\n',
    );
    expect(lastRequest().body).toEqual({ state: 'inherit' });
    expect(await ctl(['compact', 'set', 'docs', 'maybe'])).toMatchObject({ code: 2 });
  });

  test('attach shows the command as data, and refuses what has no terminal', async () => {
    const headless = { ...working, id: '01K9ZQ9', name: 'run', driver: 'headless' };
    const ended = { ...working, id: '01K9ZQ8', name: 'over', status: 'done' };
    daemon.routes.set('GET /api/v1/sessions', { body: { sessions: [waiting, headless, ended] } });
    expect((await ctl(['attach', 'run'])).err).toMatch(/has no terminal.*ctl agent logs -f/);
    expect((await ctl(['attach', 'over'])).err).toMatch(/has ended \(done\)/);
    daemon.routes.set('GET /api/v1/config', { body: { ...contractExample('ConfigView') } });
    expect((await ctl(['attach', 'docs'])).err).toMatch(/Attach on the machine of the daemon\./);
  });

  test('attach: says that it needs a terminal', async () => {
    const socket = tmuxSocket(home);
    mkdirSync(dirname(socket), { recursive: true });
    writeFileSync(socket, '');
    const view = { ...contractExample('ConfigView'), data_dir: home };
    daemon.routes.set('GET /api/v1/config', { body: view });
    expect(await ctl(['attach', 'docs'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^ctl: ctl agent attach needs a terminal\..*`ctl agent logs /),
    });
  });
});

describe('logs', () => {
  const output = `GET ${pathOf(working)}/output`;

  test('shows the last lines, with control characters escaped', async () => {
    daemon.routes.set(output, { body: { lines: ['a\tb', 'red\u001B[31m', ''], next: 20 } });
    const { out } = await ctl(['logs', 'retry-upload', '--lines', '3']);
    expect(out).toBe('a\tb\nred\\u001b[31m\n\n');
    expect(daemon.requests.at(-1)?.line).toBe(`${output}?limit=3`);
    const { out: json } = await ctl(['logs', 'retry-upload', '--json']);
    expect(JSON.parse(json)).toMatchObject({ next: 20 });
    expect((await ctl(['logs', 'retry-upload', '--lines', '0'])).code).toBe(2);
  });

  test('-f goes on from where it was until the agent has ended and all is shown', async () => {
    const pieces = [['one'], [], ['two', 'three'], [], ['four']];
    const positions: (string | null)[] = [];
    daemon.routes.set(output, (_, { searchParams }) => {
      positions.push(searchParams.get('after'));
      const lines = pieces.shift() ?? [];
      return { body: { lines, next: Number(searchParams.get('after') ?? 0) + lines.length } };
    });
    daemon.routes.set(`GET ${pathOf(working)}`, () => ({
      body: { ...working, status: pieces.length > 1 ? 'working' : 'done' },
    }));
    const { code, out } = await ctl(['logs', '-f', 'retry-upload']);
    expect([code, out]).toEqual([0, 'one\ntwo\nthree\nfour\n']);
    expect(positions).toEqual([null, '1', '1', '3', '3', '4']);
  });

  test('-f ends when the agent is removed, and with --json writes a line for each piece', async () => {
    daemon.routes.set(output, { body: { lines: ['one'], next: 1 } });
    daemon.routes.set(`GET ${pathOf(working)}`, {
      status: 404,
      body: problem(404, 'SESSION_NOT_FOUND', 'gone'),
    });
    const { code, out } = await ctl(['logs', '--follow', 'retry-upload', '--json']);
    expect([code, out]).toEqual([0, '{"lines":["one"],"next":1}\n']);
  });
});
