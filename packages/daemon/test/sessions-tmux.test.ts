import { existsSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tmuxSocket } from '@millrace/daemon/config';
import { describe, expect, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { listProcesses } from '../src/sessions/drivers/headless.js';
import {
  agentTest as test,
  noTmux,
  removeSessions,
  spawn,
  until,
  untilIs,
} from './support/sessions.js';

const again = inCampaign('process', test);

const likeGemini = {
  'backends-extra': '[{id: asks-trust, binary: asks-trust, like: gemini}]',
};

/** Asks for trust as gemini does, then takes prompts; those in its arguments would show. */
const trustDialog = `#!${process.execPath}
const say = (line) => process.stdout.write(line + '\\r\\n');
if (process.argv.includes('--help')) {
  say('  --skip-trust  Trust the current workspace');
  process.exit(0);
}
for (const arg of process.argv.slice(2)) say('prompt: ' + arg);
process.stdin.setRawMode(true);
say(' Do you trust the files in this folder?');
say(' ● 1. Trust folder');
let typed;
process.stdin.on('data', (chunk) => {
  if (typed === undefined) typed = '';
  else if (String(chunk) === '\\r') {
    process.stdout.write('\\r\\x1b[J');
    say('prompt: ' + typed);
    typed = '';
  } else typed += chunk;
  process.stdout.write('\\r\\x1b[J > ' + (typed || 'Type your message'));
});
`;

// Each has a daemon of its own, and they wait more than they work.
describe.skipIf(noTmux).concurrent(`in tmux${noTmux ? ` (${noTmux})` : ''}`, () => {
  test('an agent works, asks, is answered and finishes its turn', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const { id, driver } = await spawn(api, {
      prompt: 'sleep 1, then ask, then write notes.txt and say all is well',
      backend: 'claude',
      cwd: workdir,
    });
    expect(driver).toBe('tmux');
    await until(api, id, 'working');
    const asking = await until(api, id, 'waiting_for_input');
    expect(asking.status_reason).toBe('it asks: Do you want to proceed?');
    expect(asking.pid).toBeGreaterThan(1);
    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: '1' });
    const idle = await until(api, id, 'idle');
    expect(existsSync(join(workdir, 'notes.txt'))).toBe(true);
    expect(idle).toMatchObject({ context_state: 'ok', exit_code: null });
    const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    expect(lines).toContain('● all is well');

    // Ends the paste, and then the input of the agent.
    const keys = { method: 'POST', path: `/api/v1/sessions/${id}:send` };
    const text = 'say a\u001B[201~\u0004';
    await api.refused({ ...keys, body: { text } }, 400, 'INVALID_REQUEST');
    const sent = await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'context 450k' });
    expect(sent.status).toBe('working');
    await untilIs(api, id, (session) => session.context_state, 'critical');
    await until(api, id, 'idle');
    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: '/compact' });
    await untilIs(api, id, (session) => session.context_state, 'ok');
    const stopped = await api.ok('POST', `/api/v1/sessions/${id}:stop`);
    expect(stopped.status).toBe('done');
  });

  test('trust: the dialog is a question, and the prompt is sent once after it', async ({
    newDaemon,
  }) => {
    const { api, workdir, home } = await newDaemon({ flags: likeGemini });
    writeFileSync(join(home, 'bin', 'asks-trust'), trustDialog, { mode: 0o755 });
    await api.ok('POST', '/api/v1/backends/rescan');
    const { id } = await spawn(api, { prompt: 'hello', backend: 'asks-trust', cwd: workdir });
    const asking = await until(api, id, 'waiting_for_input');
    expect(asking.status_reason).toBe('it asks: Do you trust the files in this folder?');
    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: '1' });
    await until(api, id, 'idle');
    const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    expect(lines.filter((line: string) => line === 'prompt: hello')).toHaveLength(1);
  });

  again('an answer may be a text, and a permission may be denied', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const request = { prompt: 'ask then write a.txt', backend: 'claude', cwd: workdir };
    const [yes, no] = await Promise.all([spawn(api, request), spawn(api, request)]);
    for (const { id } of [yes, no]) await until(api, id, 'waiting_for_input');
    await api.ok('POST', `/api/v1/sessions/${no.id}:send`, { text: '2' });
    await until(api, no.id, 'idle');
    await api.ok('POST', `/api/v1/sessions/${yes.id}:send`, { text: 'yes, please' });
    await until(api, yes.id, 'idle');
    const { lines } = await api.ok('GET', `/api/v1/sessions/${no.id}/output`);
    expect(lines).toContain('● Then I leave it.');
  });

  again('a limit shows on the screen, and says when it ends', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const before = Date.now();
    const { id } = await spawn(api, { prompt: 'limit 45', backend: 'claude', cwd: workdir });
    const limited = await until(api, id, 'rate_limited');
    const minutes = (Date.parse(limited.limited_until!) - before) / 60_000;
    expect(minutes).toBeGreaterThan(43);
    expect(minutes).toBeLessThan(50);
    expect(limited).toMatchObject({ last_error: 'usage limit reached', exit_code: null });
    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'say better now' });
    const idle = await until(api, id, 'idle');
    expect(idle.limited_until).toBeNull();
  });

  again(
    'a turn that ends in an API error is a failed turn, until the next one',
    async ({ newDaemon }) => {
      const { api, workdir } = await newDaemon();
      const { id } = await spawn(api, { prompt: 'fail 500', backend: 'claude', cwd: workdir });
      const failed = await until(api, id, 'idle');
      const error = 'API Error: 500 {"type":"error"}';
      expect(failed).toMatchObject({ turn_error: error, last_error: error });
      await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'say better now' });
      const idle = await until(api, id, 'idle');
      expect(idle.turn_error).toBeNull();
    },
  );

  test('an agent that ends by itself is done or errored, by its code', async ({ newDaemon }) => {
    const { api, workdir } = await newDaemon();
    const request = (prompt: string) => ({ prompt, backend: 'claude', cwd: workdir });
    const [leaving, crashing] = await Promise.all([
      spawn(api, request('say bye')),
      spawn(api, request('sleep 0.3 crash 6')),
    ]);
    expect(await until(api, crashing.id, 'errored')).toMatchObject({
      exit_code: 6,
      pid: null,
      // Its prompt and the line of hints below it are drawn after these words.
      last_error: 'The fake agent crashes as scripted, with code 6',
    });
    await until(api, leaving.id, 'idle');
    await api.send({
      method: 'POST',
      path: `/api/v1/sessions/${leaving.id}:send`,
      body: { text: '/exit' },
    });
    expect(await until(api, leaving.id, 'done')).toMatchObject({ exit_code: 0, pid: null });
    const send = { method: 'POST', path: `/api/v1/sessions/${leaving.id}:send` };
    await api.refused({ ...send, body: { text: 'hello?' } }, 409, 'SESSION_STATE');
  });

  test('text for an agent that has just ended is refused, and the others go on', async ({
    newDaemon,
  }) => {
    const { api, workdir } = await newDaemon();
    const request = { prompt: 'say hello', backend: 'claude', cwd: workdir };
    const [killed, other] = await Promise.all([spawn(api, request), spawn(api, request)]);
    const { pid } = await until(api, killed.id, 'idle');
    const before = await until(api, other.id, 'idle');
    process.kill(pid!, 'SIGKILL');
    const send = { method: 'POST', path: `/api/v1/sessions/${killed.id}:send` };
    await api.refused({ ...send, body: { text: 'say more' } }, 409, 'SESSION_STATE');
    await until(api, killed.id, 'errored');
    await api.ok('POST', `/api/v1/sessions/${other.id}:send`, { text: 'say still here' });
    expect((await until(api, other.id, 'idle')).pid).toBe(before.pid);
  });

  test('a restarted agent goes on with its conversation, at rest if it was', async ({
    newDaemon,
  }) => {
    const { api, workdir } = await newDaemon();
    const { id } = await spawn(api, { prompt: 'say one', backend: 'claude', cwd: workdir });
    const idle = await until(api, id, 'idle');
    await api.ok('POST', `/api/v1/sessions/${id}:restart`);
    const again = await until(api, id, 'idle');
    expect(again.backend_session_id).toBe(idle.backend_session_id);
    expect(again.pid).not.toBe(idle.pid);
    expect(again.restart_count).toBe(1);
    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'say two' });
    await until(api, id, 'idle');
    const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    expect(lines).toContain('● two');
  });

  test('a busy agent whose context is critical is interrupted, compacted and sent on', async ({
    newDaemon,
  }) => {
    const { api, workdir } = await newDaemon();
    const { id } = await spawn(api, {
      prompt: 'context 450k write a.txt wait never.txt',
      backend: 'claude',
      cwd: workdir,
    });
    await untilIs(api, id, (session) => session.context_state, 'critical');
    await api.ok('PATCH', `/api/v1/sessions/${id}/force-compact`, { state: 'on' });
    await untilIs(api, id, (session) => session.context_state, 'ok');
    const hasGoneOn = async () => {
      const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
      const said = (lines as string[]).filter((line) => /^(?:●| *⎿)/.test(line));
      const compacted = ['  ⎿  Interrupted by user', '● Compacted the conversation'];
      expect(said).toEqual([...compacted, '● Done: continue']);
    };
    await vi.waitFor(hasGoneOn, { timeout: 60_000 });
  });

  again('a CLI with an unknown screen gets its prompt by paste', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const { api, workdir, home } = daemon;
    const program = '#!/bin/sh\nprintf "ready? "\nread -r line\necho "got: $line"\nread -r more\n';
    writeFileSync(join(home, 'bin', 'goose'), program, { mode: 0o755 });
    await api.ok('POST', '/api/v1/backends/rescan');
    const { id } = await spawn(api, {
      prompt: 'a $(long) `story`',
      backend: 'goose',
      cwd: workdir,
    });
    const working = await until(api, id, 'working');
    expect(working.context_tokens).toBeNull();
    const hasPrompt = async () => {
      const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
      expect(lines).toContain('got: a $(long) `story`');
    };
    await vi.waitFor(hasPrompt, { timeout: 60_000 });
    await untilIs(
      api,
      id,
      (session) => session.status_reason,
      'it runs; nothing is known of its screen, so it counts as working',
    );
  });

  again('an agent that does not take a text is said not to', async ({ newDaemon }) => {
    const { api, workdir, home } = await newDaemon();
    const noHelp = '[ "$1" = --help ] && exit 1';
    const program = `#!/bin/sh\n${noHelp}\nstty -echo -icanon\necho ready\nexec sleep 600\n`;
    writeFileSync(join(home, 'bin', 'goose'), program, { mode: 0o755 });
    await api.ok('POST', '/api/v1/backends/rescan');
    const { id } = await spawn(api, { prompt: 'hello', backend: 'goose', cwd: workdir });
    const sent = await until(api, id, 'working');
    expect(sent.last_error).toBe('its prompt was typed, but nothing shows that it was taken');
    const send = { method: 'POST', path: `/api/v1/sessions/${id}:send`, body: { text: 'hello?' } };
    const refusal = await api.refused(send, 409, 'SESSION_STATE');
    expect(refusal.detail).toContain('did not take the text');
  });

  again('a data directory with a long path has its socket elsewhere', async ({ newDaemon }) => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-long-')));
    const data = join(home, 'x'.repeat(60), 'it’s #1; "data"'.padEnd(60, 'y'));
    const { api, workdir } = await newDaemon({ home, flags: { data } });
    const socket = tmuxSocket(data);
    expect(Buffer.byteLength(socket)).toBeLessThan(100);
    const { id } = await spawn(api, { prompt: 'say hello', backend: 'claude', cwd: workdir });
    await until(api, id, 'idle');
    expect(existsSync(socket)).toBe(true);
    const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    expect(lines).toContain('● hello');
  });

  again(
    'requests that cross each other start and end an agent once at a time',
    async ({ newDaemon }) => {
      const { api, workdir } = await newDaemon();
      const { id } = await spawn(api, { prompt: 'say one', backend: 'claude', cwd: workdir });
      await until(api, id, 'idle');
      const post = (what: string) =>
        api.send({ method: 'POST', path: `/api/v1/sessions/${id}:${what}` });
      const replies = await Promise.all(['restart', 'restart', 'stop', 'restart'].map(post));
      for (const { status } of replies) expect([200, 409]).toContain(status);
      expect((await post('stop')).json.status).toBe('done');
      expect((await post('restart')).status).toBe(200);
      await until(api, id, 'idle');
      const agents = (await listProcesses()).filter(({ args }) => args[1]?.includes(id));
      expect(agents).toHaveLength(1);
    },
  );

  again('twenty agents work at once, and nothing of them is left behind', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const { api, workdir, home } = daemon;
    const names = Array.from({ length: 20 }, (_, n) => `agent-${n}`);
    const spawned = await Promise.all(
      names.map((name, n) =>
        spawn(api, {
          prompt: `wait go.txt say this is ${name}`,
          name,
          backend: 'claude',
          cwd: workdir,
          driver: n % 4 === 0 ? 'headless' : 'tmux',
        }),
      ),
    );
    for (const { id } of spawned) await until(api, id, 'working');
    writeFileSync(join(workdir, 'go.txt'), '');
    for (const { id, driver } of spawned) {
      await until(api, id, driver === 'tmux' ? 'idle' : 'done');
    }
    for (const { id, name } of spawned) {
      const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
      expect((lines as string[]).join('\n')).toContain(`this is ${name}`);
    }
    await removeSessions(api);
    const left = (await listProcesses()).map(({ args }) => args.join(' '));
    expect(left.filter((line) => line.includes(home) && line.includes('run.sh'))).toEqual([]);
    const folders = readdirSync(join(home, 'data', 'sessions'));
    expect(folders.filter((name) => name.length === 26)).toEqual([]);
  });
});
