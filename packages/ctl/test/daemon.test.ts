import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DaemonServer, faultsOf } from './daemon-server.js';
import { CTL, startCtl } from './run-ctl.js';
import { hasTmux, TmuxTerminal } from './tmux-terminal.js';

describe('without a daemon', () => {
  let server: DaemonServer;
  beforeEach(() => {
    server = new DaemonServer();
  });
  afterEach(() => server.remove());

  /** Keeps ctl from finding a daemon that the machine runs at the usual address. */
  const leaveStaleAddress = () => {
    server.write('.local/share/millrace/daemon.url', 'http://127.0.0.1:1\n');
  };

  const token = () => readFileSync(join(server.data, 'daemon.token'), 'utf8').trim();

  test('status says so, with exit code 1', async () => {
    const plain = await server.ctl(['daemon', 'status', '--url', 'http://127.0.0.1:1']);
    expect(plain).toMatchObject({ code: 1, err: '' });
    expect(plain.out).toMatch(
      /^daemon {2}down\nurl {5}http:\/\/127\.0\.0\.1:1\nreason {2}no daemon/,
    );
    const json = await server.ctl(['daemon', 'status', '--url', 'http://127.0.0.1:1', '--json']);
    expect(json).toMatchObject({ code: 1, err: '' });
    expect(JSON.parse(json.out)).toMatchObject({ running: false, version: null });
  });

  test('a token is made for its owner alone, shown, and replaced', async () => {
    const none = await server.ctl(['daemon', 'token', 'show']);
    expect(none).toMatchObject({ code: 1, out: '' });
    expect(none.err).toContain('Create one with `ctl daemon token generate`.');

    const made = await server.ctl(['daemon', 'token', 'generate']);
    const first = token();
    expect(first).toMatch(/^mr_[a-z0-9]+_[a-z0-9]{40,}$/);
    expect([made.code, made.out]).toEqual([0, `${first}\n`]);
    expect(made.err).toContain(`This token is in ${join(server.data, 'daemon.token')}.`);
    expect(made.err).not.toContain(first);
    expect(statSync(join(server.data, 'daemon.token')).mode & 0o777).toBe(0o600);
    expect(statSync(server.data).mode & 0o777).toBe(0o700);
    expect(await server.ctl(['daemon', 'token', 'show'])).toMatchObject({ out: `${first}\n` });

    const twice = await server.ctl(['daemon', 'token', 'generate']);
    expect([twice.code, token()]).toEqual([1, first]);
    expect(twice.err).toContain('ctl daemon token rotate');
    expect(twice.err).not.toContain(first);

    const rotated = await server.json(['daemon', 'token', 'rotate']);
    expect(rotated).toEqual({
      token: token(),
      read_only: false,
      file: join(server.data, 'daemon.token'),
    });
    expect(token()).not.toBe(first);
    expect(statSync(join(server.data, 'daemon.token')).mode & 0o777).toBe(0o600);
  });

  test('token rotate: the queue of ctl up gets the new token', async () => {
    await server.ctl(['daemon', 'token', 'generate']);
    const file = join(server.data, 'queue-secrets.yaml');
    const secrets = (value: string) =>
      `# Secrets\n${JSON.stringify({ secrets: [{ name: 'daemon-token', value, queues: ['agents'] }] }, null, 2)}\n`;
    writeFileSync(file, secrets(token()), { mode: 0o600 });
    const rotated = await server.ctl(['daemon', 'token', 'rotate']);
    expect(rotated.err).toContain('The queue of `ctl up` sends the new token from now on.');
    expect(readFileSync(file, 'utf8')).toBe(secrets(token()));
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('the token that may only read is another one', async () => {
    const nothing = await server.ctl(['daemon', 'token', 'rotate', '--read-only']);
    expect(nothing.code).toBe(1);
    expect(nothing.err).toContain('`ctl daemon token generate --read-only`');
    const made = await server.json(['daemon', 'token', 'generate', '--read-only']);
    expect(made).toMatchObject({ read_only: true, file: join(server.data, 'token-read-only') });
    expect((await server.ctl(['daemon', 'token', 'show'])).code).toBe(1);
    const shown = await server.json(['daemon', 'token', 'show', '--read-only']);
    expect(shown.token).toBe(made.token);
  });

  test('what the environment sets is shown, and told when it is in the way', async () => {
    const env = { MILLRACE_TOKEN: 'from-the-environment' };
    expect(await server.json(['daemon', 'token', 'show'], env)).toEqual({
      token: 'from-the-environment',
      read_only: false,
      source: '$MILLRACE_TOKEN',
    });
    const made = await server.ctl(['daemon', 'token', 'generate'], env);
    expect(made.code).toBe(0);
    expect(made.err).toContain('$MILLRACE_TOKEN sets another token');
  });

  test('the data directory of the settings is used', async () => {
    server.write('.config/millrace/config.yaml', 'data_dir: ../../elsewhere\n');
    const made = await server.json(['daemon', 'token', 'generate']);
    expect(made.file).toBe(join(server.home, 'elsewhere', 'daemon.token'));
    const named = await server.json(['daemon', 'token', 'generate', '--data', 'here']);
    expect(named.file).toBe(join(server.home, 'here', 'daemon.token'));
    const file = server.write('other.yaml', 'data_dir: there\n');
    const byFile = await server.json(['daemon', 'token', 'generate', '--config', file]);
    expect(byFile.file).toBe(join(server.home, 'there', 'daemon.token'));
  });

  test('config shows what a daemon would start with, secrets masked', async () => {
    leaveStaleAddress();
    const file = server.write(
      '.config/millrace/config.yaml',
      'tokens:\n  warn: 150k\ntoken: hush-hush-hush\nfoo: 1\n',
    );
    const env = { MILLRACE_SAVINGS: 'off', COLUMNS: '200' };
    const shown = await server.ctl(['config'], env);
    expect(shown.code).toBe(0);
    expect(shown.out).toMatch(/^KEY +VALUE +SOURCE\n/);
    expect(shown.out).toMatch(new RegExp(`^tokens\\.warn +150k +${file}$`, 'm'));
    expect(shown.out).toMatch(/^savings +off +\$MILLRACE_SAVINGS$/m);
    expect(shown.out).toMatch(/^tokens\.critical +400k +default$/m);
    expect(shown.out).toMatch(/^token +\*{8} +/m);
    expect(shown.err).toContain('Warning: ');
    expect(shown.err).toContain('foo');
    expect(shown.err).toContain('No daemon is running.');
    const view = await server.json(['config'], env);
    expect(faultsOf('ConfigView', view)).toEqual([]);
    expect(view.config_file).toBe(file);
    for (const text of [shown.out, shown.err, JSON.stringify(view)]) {
      expect(text).not.toContain('hush');
    }
    const narrow = await server.ctl(['config'], { COLUMNS: '80' });
    expect(Math.max(...narrow.out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test('config of one setting or group; a slip is exit code 2', async () => {
    leaveStaleAddress();
    const group = await server.ctl(['config', 'branches']);
    expect(group.out).toBe('KEY               VALUE  SOURCE\nbranches.enabled  on     default\n');
    const one = await server.json(['config', 'backends.limit_retry']);
    expect(one.entries).toEqual([
      { key: 'backends.limit_retry', value: '15m', source: 'default', origin: null, secret: false },
    ]);
    const slip = await server.ctl(['config', 'tokens.wran']);
    expect(slip).toMatchObject({ code: 2, out: '' });
    expect(slip.err).toContain('did you mean "tokens.warn"?');
  });

  test('config of a file shows what is wrong with it, by its line', async () => {
    const file = server.write('bad.yaml', 'savings: true\nbackends:\n  limit_retry: soon\n');
    const { code, out, err } = await server.ctl(['config', '--config', file]);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('bad.yaml:3: backends.limit_retry must be a duration');
  });

  test('config set: keeps comments, validates, and get prints the value', async () => {
    leaveStaleAddress();
    const file = server.write(
      '.config/millrace/config.yaml',
      '# ours\ntokens:\n  critical: 350k # hard\n',
    );
    const set = await server.ctl(['config', 'set', 'tokens.warn', '150k']);
    expect(set).toMatchObject({ code: 0, out: `Set tokens.warn in ${file}.\n`, err: '' });
    const text = '# ours\ntokens:\n  critical: 350k # hard\n  warn: 150k\n';
    expect(readFileSync(file, 'utf8')).toBe(text);
    expect((await server.ctl(['config', 'get', 'tokens.warn'])).out).toBe('150k\n');
    for (const [key, value, fault] of [
      ['tokens.warn', 'soon', 'config.yaml:4: tokens.warn'],
      ['tokens.wran', '1k', 'did you mean "tokens.warn"?'],
    ] as const) {
      const refused = await server.ctl(['config', 'set', key, value]);
      expect(refused).toMatchObject({ code: 2, out: '' });
      expect(refused.err).toContain(fault);
    }
    expect(readFileSync(file, 'utf8')).toBe(text);
    expect(readdirSync(dirname(file))).toEqual(['config.yaml']);
    expect((await server.ctl(['config', 'get', 'tokens'])).err).toContain('is a group');
    rmSync(file);
  });

  test('config edit: needs a terminal', async () => {
    const ended = await server.ctl(['config', 'edit'], { EDITOR: 'true' });
    expect(ended).toMatchObject({ code: 2, out: '' });
  });

  test.skipIf(!hasTmux)('config edit: stores a valid file alone (needs tmux)', async () => {
    const file = server.write('edited.yaml', 'savings: true\n');
    const terminal = new TmuxTerminal({ columns: 80, rows: 24 });
    const edit = (editor: string) =>
      terminal.run(
        `clear; EDITOR='${editor}' '${process.execPath}' '${CTL}' config edit --config ${file}; ` +
          'echo "code $?"',
      );
    const shows = (text: string | RegExp) =>
      expect.poll(() => terminal.screen(), { timeout: 60_000, interval: 100 }).toMatch(text);
    try {
      edit('sed -i s/true/false/');
      await shows(/^Saved .*\ncode 0/m);
      expect(readFileSync(file, 'utf8')).toBe('savings: false\n');
      edit('sed -i s/false/soon/');
      await shows('Edit it again? [y/N]');
      terminal.press('n', 'Enter');
      await shows(/was not changed\.\ncode 1/);
      expect(readFileSync(file, 'utf8')).toBe('savings: false\n');
    } finally {
      terminal.close();
    }
  });

  test('config of a daemon elsewhere is not guessed', async () => {
    const { code, out } = await server.ctl(['config', '--url', 'http://127.0.0.1:1']);
    expect([code, out]).toEqual([1, '']);
  });

  test('install writes a service file once, and prints it on demand', async () => {
    const args = [
      'daemon',
      'install',
      '--for',
      'systemd',
      '--listen',
      '127.0.0.1:9',
      '--data',
      'd',
    ];
    const printed = await server.ctl([...args, '--print']);
    expect([printed.code, printed.err]).toEqual([0, '']);
    const data = join(server.home, 'd');
    expect(printed.out).toContain(`daemon serve --data ${data} --listen 127.0.0.1:9\n`);
    const file = join(server.home, '.config/systemd/user/millrace-daemon.service');
    expect(() => statSync(file)).toThrow();

    const written = await server.ctl(args);
    expect([written.code, written.err]).toEqual([0, '']);
    expect(written.out).toContain(`Wrote ${file}.`);
    expect(written.out).toContain('  systemctl --user enable --now millrace-daemon.service\n');
    expect(readFileSync(file, 'utf8')).toBe(printed.out);
    expect(await server.json(args)).toMatchObject({ path: file, outcome: 'unchanged' });

    writeFileSync(file, 'mine');
    const refused = await server.ctl(args);
    expect([refused.code, readFileSync(file, 'utf8')]).toEqual([1, 'mine']);
    expect(refused.err).toContain('--force');
    expect(await server.json([...args, '--force'])).toMatchObject({ outcome: 'written' });
    expect(readFileSync(file, 'utf8')).toBe(printed.out);

    const mac = await server.json(['daemon', 'install', '--for', 'launchd', '--print']);
    expect(mac.path).toBe(join(server.home, 'Library/LaunchAgents/millrace.daemon.plist'));
  });

  test('serve refuses bad settings and an open door in one line', async () => {
    const cases: [string[], string][] = [
      [['--listen', 'nowhere'], '--listen must be an address'],
      [['--listen', '0.0.0.0:0'], 'token'],
      [['--config', 'none.yaml'], 'no such file'],
      [['--provider-url', 'claude'], '--provider-url must be a URL'],
      [['--lisen', 'x'], "unknown option '--lisen'. Did you mean --listen?"],
    ];
    for (const [args, text] of cases) {
      const { code, out, err } = await server.ctl(['daemon', 'serve', ...args]);
      expect([code, out], args.join(' ')).toEqual([2, '']);
      expect(err.split('\n')[0]).toContain(text);
    }
  });
});

describe('with a daemon', () => {
  const server = new DaemonServer();
  beforeAll(() => server.start('--no-savings', '--tokens-warn', '123k'));
  afterAll(() => server.remove());

  test('status tells where it is and what it knows', async () => {
    const { code, out } = await server.ctl(['daemon', 'status']);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^daemon +running\nurl +http:.*\nversion +\d.*\nbackends +0 of 17 installed\ndefault +none\n$/,
    );
    expect(await server.json(['daemon', 'status'])).toMatchObject({
      running: true,
      url: server.url,
      access: 'granted',
      backends: { known: 17, installed: 0 },
    });
  });

  test('config shows its live values, flags included', async () => {
    const { code, out, err } = await server.ctl(['config', 'tokens.warn']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^tokens\.warn +123k +--tokens-warn$/m);
    const view = await server.json(['config']);
    expect(faultsOf('ConfigView', view)).toEqual([]);
    const savings = view.entries.find(({ key }: { key: string }) => key === 'savings');
    expect(savings).toMatchObject({ value: false, source: 'flag' });
  });

  test('config set: another file does not concern the running daemon', async () => {
    const file = server.write('other.yaml', '');
    const set = await server.json(['config', 'set', 'tokens.critical', '333k', '--config', file]);
    expect(set).toMatchObject({ file, restart: [], overridden: [], applied: [] });
    const over = await server.ctl(['config', 'set', 'tokens.warn', '99k', '--config', file]);
    expect(over.out).toBe(`Set tokens.warn in ${file}.\n`);
  });

  test('config set: the running daemon applies it, or needs a restart', async () => {
    const get = async (key: string) => (await server.ctl(['config', 'get', key])).out;
    const set = (...args: string[]) => server.ctl(['config', 'set', ...args]);
    const applied = await set('tokens.critical', '350k');
    const { config_file: file } = await server.json(['config']);
    expect(applied).toMatchObject({
      code: 0,
      out: `Set tokens.critical in ${file}.\nThe running daemon applied it.\n`,
      err: '',
    });
    expect(await get('tokens.critical')).toBe('350k\n');
    expect(readFileSync(file, 'utf8')).toBe('tokens:\n  critical: 350k\n');
    const named = await server.json([
      'config',
      'set',
      'notify.stuck_after',
      '1h',
      '--config',
      file,
    ]);
    expect(named).toEqual({
      file,
      key: 'notify.stuck_after',
      restart: [],
      overridden: [],
      applied: ['notify.stuck_after'],
    });
    const invalid = await set('tokens.critical', 'soon');
    expect(invalid).toMatchObject({ code: 2, out: '' });
    expect(invalid.err).toContain('tokens.critical must be');
    const later = await set('metrics', 'false');
    expect(later.out).toContain('The running daemon reads metrics after: ctl restart daemon');
    expect(await get('metrics')).toBe('true\n');
    const overridden = await set('savings', 'true');
    expect(overridden.out).toContain('savings of the running daemon comes from ');
    rmSync(file);
  });

  test('the local view has the same settings as the live one', async () => {
    const live = await server.json(['config']);
    const { out } = await server.ctl(['config', '--json', '--config', '/dev/null']);
    const keys = (view: any) => view.entries.map(({ key }: { key: string }) => key);
    expect(keys(JSON.parse(out))).toEqual(keys(live));
  });

  test('the token that the first start made is found by ctl, and of no use when it is wrong', async () => {
    const list = (env?: Record<string, string>) => server.ctl(['backend', 'list'], env);
    const { token } = await server.json(['daemon', 'token', 'show']);
    expect((await list()).code).toBe(0);
    const wrong = await list({ MILLRACE_TOKEN: 'wrong' });
    expect([wrong.code, wrong.out]).toEqual([1, '']);
    expect(wrong.err).toContain('does not accept this token');
    const env = { HOME: '/nonexistent' };
    const stranger = await startCtl(['backend', 'list', '--url', server.url], env).ended;
    expect(stranger.code).toBe(1);
    expect(stranger.err).toContain('requires a token. Set MILLRACE_TOKEN');
    const status = await startCtl(['daemon', 'status', '--url', server.url, '--json'], env).ended;
    expect(status.code).toBe(0);
    expect(JSON.parse(status.out)).toMatchObject({ running: true, access: 'refused' });

    const rotated = await server.json(['daemon', 'token', 'rotate']);
    expect(rotated.token).not.toBe(token);
    expect((await list()).code).toBe(0);
    expect((await list({ MILLRACE_TOKEN: token })).code).toBe(1);
    const view = JSON.stringify(await server.json(['config']));
    for (const secret of [token, rotated.token]) expect(view + server.logged).not.toContain(secret);
  });

  test('open: prints a link that logs one browser in', async () => {
    const { out, code } = await server.ctl(['open', '--print']);
    expect(code).toBe(0);
    const login = /^(http:\/\/127\.0\.0\.1:\d+)\/#login=(\w+)\n$/.exec(out)!;
    const exchange = () =>
      fetch(`${login[1]}/api/v1/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code: login[2] }),
      });
    const answer = await exchange();
    expect(answer.status).toBe(200);
    expect(answer.headers.get('set-cookie')).toMatch(/HttpOnly; SameSite=Strict$/);
    expect((await exchange()).status).toBe(401);
    expect(await server.json(['open'])).toMatchObject({ one_time: true, opened: false });
  });

  test('the token that may only read reads, and changes nothing', async () => {
    const { token } = await server.json(['daemon', 'token', 'generate', '--read-only']);
    const env = { MILLRACE_TOKEN: token };
    expect((await server.ctl(['backend', 'list'], env)).code).toBe(0);
    const refused = await server.ctl(['backend', 'rescan', '--json'], env);
    expect([refused.code, refused.out]).toEqual([1, '']);
    expect(JSON.parse(refused.err).error.code).toBe('FORBIDDEN');
  });

  test('it stops cleanly and takes its address back', async () => {
    expect(await server.stop()).toMatchObject({ code: 0, signal: null });
    expect(() => statSync(join(server.data, 'daemon.url'))).toThrow();
  });
});
