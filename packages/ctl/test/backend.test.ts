import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DaemonServer, faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { CTL, startCtl } from './run-ctl.js';

const server = new DaemonServer();
beforeAll(async () => {
  server.install('claude');
  server.install('codex');
  await server.start();
});
afterAll(() => server.remove());

describe('with a daemon', () => {
  test('list shows every known command line and the thinking mode, at any width', async () => {
    await server.json(['backend', 'tier', 'claude', 'subscription']);
    await server.json(['backend', 'default', 'claude']);
    const screens = [];
    for (const COLUMNS of ['80', '140']) {
      const { code, out, err } = await server.ctl(['backend', 'list'], { COLUMNS });
      expect([code, err]).toEqual([0, '']);
      screens.push(out);
    }
    expect(screens[0]).toBe(
      `
ID            INSTALLED  TIER          DEFAULT  ENABLED  LIMITED
agy           no         unclassified  no       yes      no
aider         no         unclassified  no       yes      no
amp           no         unclassified  no       yes      no
auggie        no         unclassified  no       yes      no
claude        yes        subscription  yes      yes      no
codex         yes        unclassified  no       yes      no
copilot       no         unclassified  no       yes      no
crush         no         unclassified  no       yes      no
cursor-agent  no         unclassified  no       yes      no
droid         no         unclassified  no       yes      no
gemini        no         unclassified  no       yes      no
goose         no         unclassified  no       yes      no
kimi          no         unclassified  no       yes      no
kiro-cli      no         unclassified  no       yes      no
local         no         local         no       yes      no
opencode      no         unclassified  no       yes      no
qwen          no         unclassified  no       yes      no
Thinking mode: free_plus_local
`.slice(1),
    );
    expect(screens[1]).toBe(screens[0]);
    const alias = await server.ctl(['backend', 'ls']);
    expect(alias.out).toBe(screens[0]);
  });

  test('--json is the response of the REST API', async () => {
    const registry = await server.json(['backend', 'list']);
    expect(faultsOf('Registry', registry)).toEqual([]);
    expect(registry.backends).toHaveLength(17);
    const row = await server.json(['backend', 'tier', 'codex', 'pay_per_use']);
    expect(faultsOf('BackendRow', row)).toEqual([]);
    expect(row).toMatchObject({ id: 'codex', tier: 'pay_per_use' });
    const chosen = await server.json(['backend', 'default', 'codex']);
    expect(faultsOf('Registry', chosen)).toEqual([]);
    expect(chosen.backends.filter((each: any) => each.default)).toMatchObject([{ id: 'codex' }]);
    const settings = await server.json(['backend', 'thinking-mode', 'local_only']);
    expect(faultsOf('Settings', settings)).toEqual([]);
    expect(settings.internal_thinking_mode).toBe('local_only');
  });

  test('each change is reported in a sentence', async () => {
    const lines: [string[], string][] = [
      [['tier', 'codex', 'free'], 'The tier of codex is now free.\n'],
      [['disable', 'codex'], 'codex is now disabled.\n'],
      [['enable', 'codex'], 'codex is now enabled.\n'],
      [['default', 'codex'], 'The default is now codex.\n'],
      [['thinking-mode', 'free_plus_local'], 'The thinking mode is now free_plus_local.\n'],
    ];
    for (const [args, out] of lines) {
      expect(await server.ctl(['backend', ...args])).toMatchObject({ code: 0, out, err: '' });
    }
  });

  test('rescan sees what came and what went, and keeps the tiers', async () => {
    server.install('gemini');
    rmSync(join(server.home, 'bin', 'codex'));
    const { code, out } = await server.ctl(['backend', 'rescan']);
    expect(code).toBe(0);
    expect(out).toMatch(/^codex +no +free +yes +yes +no$/m);
    expect(out).toMatch(/^gemini +yes +unclassified +no +yes +no$/m);
    expect(out).toMatch(/\nThinking mode: free_plus_local\n2 of 17 are installed\.\n$/);
    const registry = await server.json(['backend', 'rescan']);
    expect(faultsOf('Registry', registry)).toEqual([]);
  });

  test('what the daemon refuses is exit code 1, with its code under --json', async () => {
    const cases: [string[], string, string][] = [
      [['tier', 'cladue', 'free'], 'BACKEND_NOT_FOUND', '"cladue"; did you mean "claude"?'],
      [['enable', 'nothing-like-it'], 'BACKEND_NOT_FOUND', 'Known backends: agy, aider,'],
      [['default', 'kodex'], 'BACKEND_NOT_FOUND', 'did you mean "codex"?'],
      [['default', 'local'], 'BACKEND_NOT_ELIGIBLE', ''],
      [['default', 'amp'], 'BACKEND_NOT_ELIGIBLE', 'not installed'],
      [['tier', 'local', 'free'], 'INVALID_REQUEST', ''],
      [['disable', '../default'], 'BACKEND_NOT_FOUND', '"../default"'],
    ];
    for (const [args, code, text] of cases) {
      const plain = await server.ctl(['backend', ...args]);
      expect([plain.code, plain.out], args.join(' ')).toEqual([1, '']);
      expect(plain.err).toContain(text);
      expect(plain.err).not.toContain('..\n');
      const json = await server.ctl(['backend', ...args, '--json']);
      expect([json.code, json.out]).toEqual([1, '']);
      expect(JSON.parse(json.err).error).toMatchObject({ code });
    }
  });

  test('a wrong word is exit code 2, before anything is asked', async () => {
    const cases: [string[], string][] = [
      [
        ['tier', 'claude', 'local'],
        "argument 'tier' cannot be 'local'. Allowed choices are free, subscription, pay_per_use",
      ],
      [['tier', 'claude'], "missing required argument 'tier'"],
      [['thinking-mode', 'paid'], 'Allowed choices are local_only, free_plus_local'],
      [['rescn'], "unknown command 'rescn'. Did you mean rescan?"],
      [['list', '--url', 'nowhere'], '--url must be a URL such as http://127.0.0.1:8765'],
    ];
    for (const [args, text] of cases) {
      const { code, out, err } = await server.ctl(['backend', ...args]);
      expect([code, out], args.join(' ')).toEqual([2, '']);
      expect(err).toContain(text);
    }
  });
});

test('list loads nothing that is slow to load', async () => {
  // The modules themselves, not the bundle: they have the names of what they are.
  const files = await filesRunBy([ctlOfThePackage]);
  expect(files.some((file) => file.includes('/ctl/dist/backend/backends.js'))).toBe(true);
  const slow =
    /node_modules\/(?!commander)|\/daemon\/dist\/|\/contract\/dist\/(?!(daemon|queue)\.js|lists\/|generated\/\w+\.(codes|operations)\.js)|\/kit\/dist\/(?!base\/(errors|units|clock)|config\/nearest)/;
  expect(files.filter((file) => slow.test(file))).toEqual([]);
  const bytes = (await filesRunBy([CTL])).map((file) => statSync(fileURLToPath(file)).size);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(265_000);
});

const ctlOfThePackage = fileURLToPath(new URL('../bin/ctl.js', import.meta.url));

/** Node's own note of every file that it ran for `ctl backend list`. */
async function filesRunBy(program: readonly string[]): Promise<string[]> {
  const notes = mkdtempSync(join(server.home, 'notes-'));
  const env = { ...server.env, NODE_V8_COVERAGE: notes };
  await promisify(execFile)(process.execPath, [...program, 'backend', 'list'], { env });
  const [note] = readdirSync(notes);
  const { result } = JSON.parse(readFileSync(join(notes, note!), 'utf8'));
  const urls: string[] = result.map(({ url }: { url: string }) => url);
  return urls.filter((url) => url.startsWith('file:'));
}

describe('finding the daemon', () => {
  test('by --url, by MILLRACE_URL and by the data directory', async () => {
    const nowhere = { HOME: '/nonexistent' };
    const token = readFileSync(join(server.data, 'daemon.token'), 'utf8').trim();
    const withToken = { ...nowhere, MILLRACE_TOKEN: token };
    const ways: [string[], Record<string, string>][] = [
      [['--url', server.url], withToken],
      [[], { ...withToken, MILLRACE_URL: server.url }],
      [['--data', server.data], nowhere],
      [[], { ...nowhere, MILLRACE_DATA_DIR: server.data }],
      [[], { HOME: server.home }],
    ];
    for (const [args, env] of ways) {
      const { code, err } = await startCtl(['backend', 'list', ...args], env).ended;
      expect({ code, err }, args.join(' ')).toEqual({ code: 0, err: '' });
    }
    const refused = await startCtl(['backend', 'list', '--url', server.url], nowhere).ended;
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain('requires a token. Set MILLRACE_TOKEN');
  });

  test('a directory without one is reported, also where another daemon runs', async () => {
    const args = ['--data', 'empty'];
    const none = `no daemon is running on the data in ${join(server.home, 'empty')}. `;
    for (const command of [['backend', 'list'], ['agent', 'list'], ['usage'], ['cost']]) {
      const { code, out, err } = await server.ctl([...command, ...args]);
      expect([code, out], command.join(' ')).toEqual([1, '']);
      expect(err).toBe(
        `ctl: ${none}Start one with \`ctl daemon serve\` or \`ctl up\`, or name another with --url.\n`,
      );
    }
    const status = await server.ctl(['daemon', 'status', ...args, '--json']);
    expect([status.code, status.err]).toEqual([1, '']);
    const shown = { running: false, url: null, reason: expect.stringContaining(none) };
    expect(JSON.parse(status.out)).toMatchObject(shown);
    const config = await server.ctl(['config', 'savings', ...args]);
    expect(config).toMatchObject({
      code: 0,
      err: expect.stringContaining('No daemon is running.'),
    });
  });

  test('refusals: a backend that is not found comes with the command that lists them', async () => {
    const { code, err } = await server.ctl(['agent', 'spawn', 'hi', '--backend', 'zzzzzz']);
    expect(code).toBe(1);
    expect(err).toMatch(
      /^ctl: There is no backend "zzzzzz".* List them with `ctl backend list`\.\n$/,
    );
  });

  test('without one it says how to start one', async () => {
    const url = 'http://127.0.0.1:1';
    const { code, out, err } = await server.ctl(['backend', 'list', '--url', url]);
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      `ctl: no daemon answers at ${url} (nothing listens there). ` +
        'Start one with `ctl daemon serve` or `ctl up`, or name another with --url.\n',
    );
    const json = await server.ctl(['backend', 'list', '--url', url, '--json']);
    expect(JSON.parse(json.err).error.code).toBe('UNAVAILABLE');
  });

  test('what answers but is no daemon is reported apart', async () => {
    const fake = await FakeDaemon.start();
    for (const reply of [
      { body: '<html>' },
      { status: 404, body: 'no' },
      { status: 502, body: {} },
    ]) {
      fake.reply = reply;
      const { code, err } = await server.ctl(['backend', 'list', '--url', fake.url]);
      expect(code).toBe(1);
      expect(err).toContain('is not a Millrace daemon. Name another with --url.');
    }
    await fake.stop();
  });
});

describe('test', () => {
  const own = new DaemonServer();
  const rows = [
    { id: 'mycli', binary: 'mycli', prompt: 'argument' },
    { id: 'broken', binary: 'broken' },
  ];
  beforeAll(async () => {
    own.install('mycli', 'echo "you said: $1"');
    own.install('broken', 'echo "no licence" >&2; exit 3');
    await own.start('--backends-extra', JSON.stringify(rows));
  });
  afterAll(() => own.remove());

  test('walks through start, prompt, answer and stop, and leaves nothing behind', async () => {
    // A process of its own, which must not end before the agent does.
    const words = ['backend', 'test', 'mycli', '--prompt', 'hello'];
    const options = { cwd: own.home, input: '' };
    const { code, out, err } = await startCtl(words, own.env, options).ended;
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^start {3}started with the driver headless/);
    expect(out).toContain('answer  | you said: hello\n');
    expect(out).toMatch(/^stop {4}had ended by itself\nThe backend mycli works\.\n$/m);
    const report = await own.json(['backend', 'test', 'mycli']);
    expect(report).toMatchObject({ backend: 'mycli', ok: true });
    expect(report.steps.map(({ step }: { step: string }) => step)).toEqual([
      'start',
      'prompt',
      'answer',
      'stop',
    ]);
    expect(await own.json(['agent', 'list'])).toMatchObject({ sessions: [] });
  });

  test('names the step that failed, with exit code 1', async () => {
    const { code, out } = await own.ctl(['backend', 'test', 'broken']);
    expect(code).toBe(1);
    expect(out).toMatch(/failed: no licence \(errored\)\nThe backend broken failed at the step /);
    const unknown = await own.ctl(['backend', 'test', 'nope']);
    expect([unknown.code, unknown.out]).toEqual([1, '']);
    expect(unknown.err).toContain('There is no backend "nope"');
  });
});
