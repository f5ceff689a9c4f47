import { existsSync, readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Lifecycle } from '../src/base/lifecycle.js';
import { faultsOf, QueueServer, runCtl, tokens } from './queue-server.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.makeQueue('mail');
});
afterAll(() => server.remove());

describe('config', () => {
  test('set makes a queue of YAML or JSON, get shows what set takes back', async () => {
    const yaml = `# ours\ndescription: Letters\ncallback:\n  url: ${server.handlerUrl}\n`;
    const file = server.write('letters.yaml', yaml);
    expect(await server.ok(['config', 'set', 'letters', file, '--validate-only'])).toBe(
      `${file} is a valid config of letters; nothing was written.\n`,
    );
    expect((await server.ctl(['config', 'get', 'letters'])).code).toBe(1);
    expect(await server.ok(['config', 'set', 'letters', file])).toBe(
      'Created the queue letters.\n',
    );
    const shown = await server.ok(['config', 'get', 'letters']);
    expect(faultsOf('QueueConfig', JSON.parse(shown))).toEqual([]);
    const again = await server.ctl(['config', 'set', 'letters', '-'], { input: shown });
    expect(again).toMatchObject({ code: 0, out: 'letters is now at version 2.\n' });
    const stale = await server.ctl(['config', 'set', 'letters', '-'], { input: shown });
    expect([stale.code, stale.err.includes('/version')]).toEqual([1, true]);
    const bare = await server.ok(['config', 'get', 'letters', '--bare']);
    expect(Object.keys(JSON.parse(bare))).not.toContain('version');
    const copied = await server.json(['config', 'set', 'copies', '-'], { input: bare });
    expect(copied).toMatchObject({ name: 'copies', version: 1, description: 'Letters' });
    const late = (version: string) => ['config', 'set', 'letters', file, '--if-version', version];
    const lost = await server.ctl([...late('1'), '--json']);
    expect([lost.code, JSON.parse(lost.err).error.code]).toEqual([1, 'PRECONDITION_FAILED']);
    expect((await server.ctl(late('0'))).code).toBe(2);
    expect(await server.ok(late('2'))).toBe('letters is now at version 3.\n');
  });

  test('every mistake is reported with its line and pointer', async () => {
    const file = server.write(
      'wrong.yaml',
      `callback:\n  url: ${server.handlerUrl}\n  timeout_ms: 1\nretry:\n  max_atempts: 5\n`,
    );
    const plain = await server.ctl(['config', 'set', 'wrong', file]);
    expect([plain.code, plain.out]).toEqual([1, '']);
    expect(plain.err).toMatch(/^\S+wrong\.yaml:5 +\/retry\/max_atempts +.*max_attempts/m);
    expect(plain.err).toMatch(/^\S+wrong\.yaml:3 +\/callback\/timeout_ms +/m);
    expect(plain.err).toContain(`ctl: 2 errors in ${file}; nothing was written.\n`);
    const json = await server.ctl(['config', 'set', 'wrong', file, '--json']);
    const { code, message } = JSON.parse(json.err).error;
    expect(code).toBe('INVALID_CONFIG');
    expect(message).toContain('wrong.yaml:5: /retry/max_atempts');
    expect(message).toContain('wrong.yaml:3: /callback/timeout_ms');
    const input = 'callback: {url: http://169.254.169.254/}';
    const blocked = await server.ctl(['config', 'set', 'wrong', '-'], { input });
    expect(blocked.code).toBe(1);
    expect(blocked.err).toMatch(/^stdin:1 +\/callback\/url /);
    expect(blocked.err).toContain('; nothing was written.\n');
    const named = await server.ctl(['config', 'set', 'NO', file]);
    expect([named.code, named.err]).toEqual([
      1,
      expect.stringMatching(/^ctl: "NO" is not a queue name: it must match /),
    ]);
  });

  test('a file that is no YAML is reported with its line, with exit code 2', async () => {
    const cases = [
      ['callback:\n  url: "x\n', ':3: '],
      ['callback:\n  url: a\n  url: b\n', ':3: '],
      ['', ' is empty. It needs at least callback'],
      ['- 1\n', ' is not a map of settings'],
    ] as const;
    for (const [text, message] of cases) {
      const file = server.write('bad.yaml', text);
      const { code, err } = await server.ctl(['config', 'set', 'bad', file]);
      expect([code, err.startsWith(`ctl: ${file}${message}`)], err).toEqual([2, true]);
    }
  });
});

describe('queues', () => {
  test('list, stats, pause, resume, test and delete', async () => {
    await server.makeQueue('idle');
    const listed = await server.json(['list']);
    expect(faultsOf('QueueList', listed)).toEqual([]);
    expect(await server.ok(['ls'])).toMatch(
      /^QUEUE +STATE +PENDING +DELAYED +IN FLIGHT +DLQ +OLDEST/,
    );
    expect(faultsOf('Stats', await server.json(['stats', 'idle']))).toEqual([]);
    expect(await server.ok(['stats', 'idle'])).toBe(
      'queue      idle\nstate      running\npending    0\ndelayed    0\nin flight  0\ndlq        0\noldest     -\n' +
        'rate/s     0\nsucceeded  0\nfailed     0\ndied       0\n',
    );
    expect(await server.ok(['pause', 'idle'])).toBe(
      'Paused idle: new tasks are stored and not delivered.\n',
    );
    expect(await server.json(['pause', 'idle'])).toEqual({ queue: 'idle', paused: true });
    expect(await server.ok(['list'])).toMatch(/^idle +paused/m);
    const { id } = await server.json(['submit', 'idle', 'greet']);
    expect(await server.ok(['get', id])).toMatch(
      /^status +PENDING: the queue is paused, or its callback URL has left the allowlist$/m,
    );
    const full = await server.ctl(['delete', 'idle', '--json']);
    expect([full.code, JSON.parse(full.err).error.code]).toEqual([1, 'QUEUE_NOT_EMPTY']);
    expect(await server.ok(['resume', 'idle'])).toBe('Resumed idle.\n');
    expect(await server.ok(['submit', 'idle', 'greet', '--id', id, '--wait'])).toContain(
      'SUCCEEDED',
    );
    const probe = await server.json(['test', 'idle']);
    expect(faultsOf('CallbackTestResult', probe)).toEqual([]);
    expect(probe.delivered).toBe(true);
    expect(await server.ok(['test', 'idle'])).toMatch(/^delivered +yes\nstatus +200\ntook +\S+\n$/);
    await server.makeQueue('astray', { callback: { url: 'http://127.0.0.1:1/' } });
    const astray = await server.ctl(['test', 'astray']);
    expect(astray.code).toBe(1);
    expect(astray.out).toMatch(
      /^delivered +no\nstatus +no response\n(.*\n)*error +CONNECTION_REFUSED/,
    );
    expect(await server.json(['delete', 'idle'])).toEqual({ deleted: 'idle' });
    expect(await server.ok(['delete', 'astray'])).toBe('Deleted astray.\n');
  });

  test('get shows the attempts, and the payload alone on demand', async () => {
    const bytes = Buffer.from([1, 2, 254]);
    const { id } = await server.json(['submit', 'mail', 'flaky', '-', '--wait'], { input: bytes });
    const sheet = await server.ok(['get', id]);
    expect(sheet).toMatch(
      /^status +SUCCEEDED\nattempts +2 of 2\npayload +3 B of application\/octet-stream$/m,
    );
    expect(sheet).toMatch(/^1 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +\S+ +FAILED +UNAVAILABLE 503: .+$/m);
    expect(sheet).toMatch(/^2 +.* SUCCEEDED +200$/m);
    expect((await server.ctl(['get', id, '--payload'])).bytes).toEqual(bytes);
    expect(faultsOf('Task', await server.json(['get', id, '--payload']))).toEqual([]);
  });
});

describe('watch', () => {
  test('not on a terminal is one table, and with --json a line for every look', async () => {
    expect(await server.ok(['watch', 'mail'])).toMatch(
      /^QUEUE +STATE +PENDING +IN FLIGHT +DLQ +OLDEST +Δ PENDING\/S +BACKLOG\nmail +running +0 +0 +\d+ +- +- +▁\n$/,
    );
    const args = ['watch', '--json', '--count', '3', '--interval', '100ms'];
    const lines = (await server.ok(args))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toHaveLength(3);
    expect(lines[0].queues[0].backlog_growth_per_second).toBeNull();
    const mail = lines[2].queues.find(({ name }: { name: string }) => name === 'mail');
    expect(mail).toMatchObject({ paused: false, pending: 0, callbacks_per_second: null });
    expect(mail.backlog_growth_per_second).toBe(0);
  });

  test('on a terminal draws over what it drew, until Ctrl-C', async () => {
    const abort = new AbortController();
    let frames = 0;
    const watching = server.ctl(['watch', 'mail', '--interval', '100ms'], {
      isScreen: true,
      signal: abort.signal,
      onOut: () => {
        if (++frames === 3) abort.abort();
      },
    });
    const { out } = await watching;
    const pieces = out.split('\u001B[2A\u001B[J');
    expect(pieces).toHaveLength(3);
    for (const piece of pieces) expect(piece).toMatch(/^QUEUE.*\nmail.*\n$/);
  });

  test('counts callbacks where the metrics are reported, and says so where they are not', async () => {
    const metrics = ['--metrics-url', server.url('metrics')];
    const args = ['watch', 'mail', '--json', '--count', '4', '--interval', '300ms', ...metrics];
    let submitted: Promise<string> | undefined;
    const onOut = () => void (submitted ??= server.ok(['submit', 'mail', 'greet', '--wait']));
    const lines = (await server.ok(args, { onOut })).trim().split('\n');
    await submitted;
    const rates = lines.map((line) => JSON.parse(line).queues[0].callbacks_per_second);
    expect(rates[0]).toBeNull();
    expect(Math.max(...rates.slice(1))).toBeGreaterThan(0);
    expect(await server.ok(['watch', 'mail', ...metrics])).toContain('CALLS/S');
    const none = await server.ctl(['watch', '--metrics-url', 'http://127.0.0.1:1']);
    expect([none.code, none.err.includes('no metrics at http://127.0.0.1:1/metrics')]).toEqual([
      1,
      true,
    ]);
  });

  test('goes on while the server is away, but does not begin without it', async () => {
    let samples = 0;
    let stopping: Promise<void> | undefined;
    const watching = await server.ctl(['watch', '--json', '--count', '4', '--interval', '200ms'], {
      onOut: () => {
        samples++;
        stopping ??= server.stop();
      },
    });
    await stopping;
    const errors = watching.err
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).error.code);
    expect([watching.code, samples + errors.length]).toEqual([0, 4]);
    expect(errors.at(-1)).toBe('UNAVAILABLE');
    expect((await server.ctl(['watch', '--url', 'http://127.0.0.1:1'])).code).toBe(1);
    await server.restart();
  });

  test('needs no more than submitter on queues that are named', async () => {
    const env = { MILLRACE_QUEUE_TOKEN: tokens.submitter };
    expect(await server.ok(['watch', 'mail'], { env })).toMatch(/^mail +0 /m);
    expect((await server.ctl(['watch'], { env })).code).toBe(1);
  });
});

describe('audit', () => {
  test('list shows who did what, verify finds it whole', async () => {
    await server.ok(['pause', 'mail']);
    await server.ok(['resume', 'mail']);
    await server.ok(['purge', 'mail', '--error-type', 'NONE', '--yes']);
    const { records } = await server.json(['audit', 'list', '--queue', 'mail', '--limit', '3']);
    expect(records.map(({ action }: { action: string }) => action)).toEqual([
      'purge',
      'resume',
      'pause',
    ]);
    for (const record of records) expect(faultsOf('AuditRecord', record)).toEqual([]);
    expect(await server.ok(['audit', 'list', '--from', '1h'])).toMatch(
      /^SEQ +TIME +PRINCIPAL +ACTION +QUEUE/,
    );
    expect(await server.ok(['audit', 'list', '--to', '1h'])).toBe('No audit records.\n');
    const verdict = await server.json(['audit', 'verify']);
    expect(verdict).toMatchObject({ ok: true, fault: null, last_hash: records[0].hash });
    expect(verdict.records).toBe(verdict.last_seq);
    expect(await server.ok(['audit', 'verify'])).toBe(
      `The audit log is intact: ${verdict.records} records, the last with the hash\n${verdict.last_hash}\n`,
    );
  });

  test('verify looks into a data directory, but not while a server has it open', async () => {
    const held = await server.ctl(['audit', 'verify', '--data', server.data]);
    expect([held.code === 0, held.out]).toEqual([false, '']);
    expect(held.err).toContain('in use');
    const requests = await server.json(['audit', 'verify']);
    await server.stop();
    try {
      expect(await server.json(['audit', 'verify', '--data', server.data])).toEqual(requests);
    } finally {
      await server.restart();
    }
  });

  test('verify tells someone who may not see everything why there are gaps', async () => {
    const file = server.write('part.token', 'token-of-part');
    const text = readFileSync(join(server.folder, 'tokens.yaml'), 'utf8');
    const all = JSON.parse(text) as { tokens: unknown[] };
    all.tokens.push({
      id: 'part',
      principal: 'part',
      token: 'token-of-part',
      grants: [{ queue: 'mail', role: 'admin' }],
    });
    server.write('tokens.yaml', all);
    await server.restart();
    await server.makeQueue('hidden');
    await server.ok(['pause', 'mail']);
    await server.ok(['resume', 'mail']);
    const { code, out } = await server.ctl(['audit', 'verify', '--token-file', file]);
    expect(code).toBe(1);
    expect(out).toMatch(
      /^The audit log is broken\. Record \d+ stands where \d+ should be\. A token/,
    );
  });
});

describe('token', () => {
  test('new shows a token once, with its entry or in the file', async () => {
    const grants = ['--grant', 'payments.*:operator', 'mail:admin', '--expires', '90d'];
    const made = await server.ok(['token', 'new', '--principal', 'ops', ...grants]);
    const token = /^ {2}(mr_\S+)$/m.exec(made)?.[1] ?? '';
    expect(made).toContain('stands for ops: operator of payments.*, admin of mail until ');
    expect(made).toMatch(/^ {2}- id: \S+\n {4}principal: ops\n {4}token_sha256: [0-9a-f]{64}\n/m);
    expect(made.split(token)).toHaveLength(2);
    const file = join(server.folder, 'new-tokens.yaml');
    const args = ['token', 'new', '--principal', 'ci', '--grant', '*:admin', '--tokens-file', file];
    const added = await server.json([...args, '--id', 'ci']);
    expect(added).toMatchObject({ id: 'ci', principal: 'ci', expires_at: null, file });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).not.toContain(added.token);
    const twice = await server.ctl([...args, '--id', 'ci', '--json']);
    expect([twice.code, JSON.parse(twice.err).error.code]).toEqual([1, 'DUPLICATE_ID']);
    await server.ok([...args.with(3, 'other'), '--id', 'other']);
    const listed = await server.json(['token', 'list', '--tokens-file', file]);
    expect(listed.tokens.map(({ id }: { id: string }) => id)).toEqual(['ci', 'other']);
    expect(await server.ok(['token', 'list', '--tokens-file', file])).toMatch(
      /^ID +PRINCIPAL +GRANTS +EXPIRES\nci +ci +admin of \* +never$/m,
    );
    expect(await server.json(['token', 'revoke', 'ci', '--tokens-file', file])).toEqual({
      revoked: 'ci',
      file,
    });
    const gone = await server.ctl(['token', 'revoke', 'ci', '--tokens-file', file]);
    expect([gone.code, gone.err]).toEqual([1, `ctl: ${file} has no token "ci".\n`]);
    const whole = await server.ctl(['token', 'revoke', added.token, '--tokens-file', file]);
    expect([whole.code, whole.err.includes(added.token)]).toEqual([2, false]);
  });

  test('new alone shows an entry for this user, which may do nothing yet', async () => {
    const made = await server.ok(['token', 'new']);
    expect(made).toContain(`stands for ${userInfo().username}: no grants yet`);
    expect(made).toMatch(/^ {4}token_sha256: [0-9a-f]{64}\n {4}grants: \[\]$/m);
    const file = join(server.folder, 'no-grants.yaml');
    const refused = await server.ctl(['token', 'new', '--tokens-file', file]);
    expect([refused.code, refused.err.includes('--grant')]).toEqual([2, true]);
    expect(existsSync(file)).toBe(false);
  });

  test('a server that runs takes the new token', async () => {
    const file = join(server.folder, 'tokens.yaml');
    const args = ['token', 'new', '--principal', 'late', '--grant', 'mail:submitter'];
    const { token } = await server.json([...args, '--config', join(server.folder, 'queue.yaml')]);
    expect(readFileSync(file, 'utf8')).toContain('late');
    const env = { MILLRACE_QUEUE_TOKEN: token };
    await expect
      .poll(async () => (await server.ctl(['stats', 'mail'], { env })).code, {
        timeout: 60_000,
      })
      .toBe(0);
  });

  test('a file that is wrong is reported with its line and not touched', async () => {
    const file = server.write('wrong-tokens.yaml', 'tokens:\n  - id: a\n    secret: hunter2\n');
    const args = ['token', 'new', '--principal', 'x', '--grant', '*:admin', '--tokens-file', file];
    const { code, err } = await server.ctl(args);
    expect([code, err.includes(`${file}:`), err.includes('hunter2')]).toEqual([2, true, false]);
    expect(readFileSync(file, 'utf8')).toContain('hunter2');
  });
});

describe('serve', () => {
  test('runs a server from a config file until it is stopped', async () => {
    const config = server.write('second.yaml', {
      listen: '127.0.0.1:0',
      metrics_listen: '127.0.0.1:0',
      data: './second',
      tokens_file: 'tokens.yaml',
    });
    let stop: () => void = () => undefined;
    const stopped = new Promise<void>((resolve) => (stop = resolve));
    const lifecycle: Lifecycle = {
      interrupted: new AbortController().signal,
      serve: (work) => work(stopped),
      onInterrupt: () => () => undefined,
      handOver: (work) => work(),
    };
    let out = '';
    const received = new Promise<void>((resolve) => {
      const onOut = (text: string) => {
        out += text;
        if (out.includes('"metrics"')) resolve();
      };
      const env = { HOME: server.folder, MILLRACE_LOG: 'error' };
      serving = runCtl(['queue', 'serve', '--config', config], { env, lifecycle, onOut });
    });
    await received;
    const [http, metrics] = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(http).toMatchObject({ event: 'listening', component: 'queue', listener: 'http' });
    expect(metrics).toMatchObject({ event: 'listening', listener: 'metrics' });
    expect(await server.json(['list', '--url', http.url])).toEqual([]);
    expect(await server.ok(['list', '--url', http.url])).toContain('No queues yet.');
    expect(await server.ok(['watch', '--url', http.url])).toContain('No queues yet.');
    expect(await server.ok(['audit', 'verify', '--url', http.url])).toBe(
      'The audit log is empty.\n',
    );
    stop();
    expect(await serving).toMatchObject({ code: 0, err: '' });
  });
  let serving: Promise<unknown>;

  test('says what is missing, with exit code 2', async () => {
    const none = await runCtl(['queue', 'serve'], { env: { HOME: server.folder } });
    expect([none.code, none.err.includes('`ctl queue token new`')]).toEqual([2, true]);
    const typo = await runCtl(['queue', 'serve', '--lisen', 'x'], { env: { HOME: server.folder } });
    expect([typo.code, typo.err.includes('Did you mean --listen?')]).toEqual([2, true]);
  });
});
