import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { DaemonServer, faultsOf } from './daemon-server.js';
import { CTL } from './run-ctl.js';
import { TmuxTerminal } from './tmux-terminal.js';

const again = inCampaign('process');

const agentProgram = fileURLToPath(
  new URL('../../daemon/dist/fake-agent/main.js', import.meta.url),
);
const tmux = spawnSync('which', ['tmux'], { encoding: 'utf8' }).stdout.trim();
const hasScript = spawnSync('script', ['--version']).status === 0;
const patient = { timeout: 90_000, interval: 100 };

/** A real daemon with the made-up agent on its search path. */
const server = new DaemonServer();
beforeAll(async () => {
  const shell = 'PATH=/usr/local/bin:/usr/bin:/bin';
  server.install('claude', `${shell} exec '${process.execPath}' '${agentProgram}' "$@"`);
  if (tmux !== '') server.install('tmux', `${shell} exec '${tmux}' "$@"`);
  await server.start();
  await server.json(['backend', 'default', 'claude']);
});
afterAll(async () => {
  for (const { id } of (await server.json(['agent', 'list'])).sessions) {
    await server.ctl(['agent', 'rm', id, '--yes']);
  }
  await server.remove();
});

const statusOf = async (name: string) => (await server.json(['agent', 'show', name])).status;

/** Starts an agent and answers backend session. */
async function spawnAgent(name: string, prompt: string, ...flags: string[]) {
  const session = await server.json(['agent', 'spawn', prompt, '--name', name, ...flags]);
  expect(faultsOf('Session', session)).toEqual([]);
  return session;
}

describe('a headless run', () => {
  test('is spawned, followed to its end, explained, restarted and removed', async () => {
    await spawnAgent('greet', 'sleep 1 say Hello there', '--driver', 'headless');
    const followed = await server.ctl(['agent', 'logs', '-f', 'greet']);
    expect(followed).toMatchObject({ code: 0, err: '' });
    expect(followed.out).toContain('Hello there');
    await expect.poll(() => statusOf('greet'), patient).toBe('done');
    const { out } = await server.ctl(['agent', 'explain', 'greet'], { COLUMNS: '80' });
    expect(out).toMatch(/^status +done: it finished, or was stopped$/m);
    expect((await server.ctl(['agent', 'attach', 'greet'])).err).toMatch(
      /uses the headless driver and has no terminal\./,
    );
    expect((await server.ctl(['agent', 'restart', 'greet'])).out).toMatch(
      /^greet is running again.*restarted once\.\n$/,
    );
    await expect.poll(() => statusOf('greet'), patient).toBe('done');
    const compact = await server.json(['agent', 'compact', 'set', 'greet', 'on']);
    expect(compact).toMatchObject({ state: 'on', effective: true });
    expect((await server.ctl(['agent', 'remove', 'greet'])).out).toBe('Removed greet.\n');
    expect((await server.ctl(['agent', 'show', 'greet'])).code).toBe(1);
  });

  again('that fails says so, with what it last said', async () => {
    await spawnAgent('fail', 'crash 3', '--driver', 'headless');
    await expect.poll(() => statusOf('fail'), patient).toBe('errored');
    const failed = await server.json(['agent', 'explain', 'fail']);
    expect(failed).toMatchObject({ status: 'errored', exit_code: 3 });
    expect(failed.advice.join('\n')).toContain('ctl agent restart');
    const list = await server.json(['agent', 'list', '--status', 'errored']);
    expect(list.sessions.map(({ name }: { name: string }) => name)).toEqual(['fail']);
  });
});

describe.skipIf(tmux === '' || !hasScript)('in tmux', () => {
  test('one asks, is answered, attached to and stopped (needs tmux and script of util-linux)', async () => {
    await spawnAgent('talk', 'ask "May I?"', '--driver', 'tmux');
    await expect.poll(() => statusOf('talk'), patient).toBe('waiting_for_input');
    const { out } = await server.ctl(['agent', 'explain', 'talk']);
    expect(out).toMatch(/next steps +Answer it: ctl agent send/);
    expect((await server.ctl(['agent', 'send', 'talk', '1'])).code).toBe(0);
    await expect.poll(() => statusOf('talk'), patient).toBe('idle');

    const { socket, id } = await server.json(['agent', 'attach', 'talk']);
    // A terminal of its own, in which a person would sit.
    const command = `'${process.execPath}' '${CTL}' agent attach talk`;
    const seat = spawn('script', ['-qec', command, '/dev/null'], {
      env: { ...server.env, PATH: process.env['PATH'], TERM: 'xterm', TMUX: '/other,1,1' },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const left = new Promise((resolve) => seat.on('exit', resolve));
    const clients = () =>
      execFileSync(tmux, ['-S', socket, 'list-clients', '-t', `=${id}`], { encoding: 'utf8' });
    await expect.poll(clients, patient).not.toBe('');
    execFileSync(tmux, ['-S', socket, 'detach-client', '-s', `=${id}`]);
    expect(await left).toBe(0);
    expect(await statusOf('talk')).toBe('idle');

    expect((await server.ctl(['agent', 'stop', 'talk'])).out).toMatch(/^talk was stopped/);
  });

  again('one is attached to from the terminal dashboard, which comes back', async () => {
    await spawnAgent('watched', 'ask "Shall I?"', '--driver', 'tmux');
    await expect.poll(() => statusOf('watched'), patient).toBe('waiting_for_input');
    const terminal = new TmuxTerminal({ columns: 80, rows: 24 }, { HOME: server.home });
    try {
      terminal.run(`'${process.execPath}' '${CTL}' tui`);
      await expect.poll(() => terminal.screen(), patient).toMatch(/> watched/);
      terminal.press('Enter');
      await expect.poll(() => terminal.screen(), patient).toMatch(/^(?![^]*1 Fleet)[^]*Shall I\?/);
      // Keys reach the agent, not the dashboard.
      terminal.press('1');
      await expect.poll(() => statusOf('watched'), patient).toBe('idle');
      const { socket, id } = await server.json(['agent', 'attach', 'watched']);
      execFileSync(tmux, ['-S', socket, 'detach-client', '-s', `=${id}`]);
      await expect.poll(() => terminal.screen(), patient).toMatch(/> watched +idle/);
      terminal.press('k');
      await expect.poll(() => terminal.screen(), patient).toContain('Stop this agent? [y/N]');
      terminal.press('y');
      await expect.poll(() => statusOf('watched'), patient).toBe('done');
      terminal.press('q');
      await expect.poll(() => terminal.isAlternate, patient).toBe(false);
    } finally {
      terminal.close();
    }
  });
});

again('a pipeline runs its jobs in their order, and shows them so', async () => {
  const file = join(server.home, 'chain.yaml');
  writeFileSync(
    file,
    'name: chain\njobs:\n  - {id: one, prompt: say First}\n' +
      '  - {id: two, prompt: say Second, depends_on: [one]}\n' +
      '  - {id: never, prompt: say Third, depends_on: [one], run_if: failure}\n',
  );
  const { code, out, err } = await server.ctl(['pipeline', 'run', file, '--wait']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/^one +done .*\n {2}two +done .*\n {2}never +skipped /m);
  const shown = await server.ctl(['pipeline', 'show', 'chain', '--output']);
  expect(shown.out).toMatch(/\ntwo\n[^]*Second/);
  const broken = join(server.home, 'broken.yaml');
  writeFileSync(broken, 'name: x\njobs:\n  - id: a\n    prompt: p\n    depends_on: [b]\n');
  const refused = await server.ctl(['pipeline', 'run', broken]);
  expect(refused.code).toBe(1);
  expect(refused.err).toMatch(/broken\.yaml:5: /);
});

test('what went wrong is in the inbox until it is read', async () => {
  await expect
    .poll(async () => (await server.json(['inbox', '--unread'])).notes.length, patient)
    .toBeGreaterThan(0);
  const { notes } = await server.json(['inbox', 'read', '--all']);
  expect(notes.every(({ read }: { read: boolean }) => read)).toBe(true);
  expect((await server.ctl(['inbox', '--unread'])).out).toBe('No unread notifications.\n');
});
