import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { DaemonServer, faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { ctlHere as ctl } from './run-ctl.js';

describe('whatever the daemon says', () => {
  let fake: FakeDaemon;
  beforeAll(async () => {
    fake = await FakeDaemon.start();
  });
  afterAll(() => fake.stop());

  const usage = (args: string[] = [], env = {}) => ctl(['usage', '--url', fake.url, ...args], env);

  test('is shown at 80 and at 140 columns, with exit code 2 for the provider that failed', async () => {
    fake.reply = { body: contractExample('UsageDocument') };
    expect(await usage([], { COLUMNS: '80' })).toMatchObject({
      code: 2,
      err: '',
      out: `
BACKEND  STATUS        WINDOW         USED     RESETS
claude   unavailable   5-hour window  unknown  unknown
         seen 20m ago  5-hour window  41%      in 2h 30m
codex    ok            5-hour window  12.5%    in 3h 30m
                       Weekly window  63%      in 3d 15h
claude: the provider answered 503.
`.slice(1),
    });
    expect(await usage([], { COLUMNS: '140' })).toMatchObject({
      code: 2,
      err: '',
      out: `
BACKEND  STATUS        WINDOW         USED                           RESETS
claude   unavailable   5-hour window  unknown                        unknown
         seen 20m ago  5-hour window  41%      #########...........  in 2h 30m
codex    ok            5-hour window  12.5%    ###.................  in 3h 30m
                       Weekly window  63%      #############.......  in 3d 15h
claude: the provider answered 503.
`.slice(1),
    });
  });

  test('is passed on unchanged under --json', async () => {
    const document = contractExample('UsageDocument');
    fake.reply = { body: document };
    const { code, out, err } = await usage(['--json']);
    expect([code, err]).toEqual([2, '']);
    expect(JSON.parse(out)).toEqual(document);
    expect(faultsOf('UsageDocument', JSON.parse(out))).toEqual([]);
  });

  test('decides the exit code: 2 for a failure on the way, 0 for every true answer', async () => {
    const codes = {
      ok: 0,
      rate_limited: 0,
      unsupported: 0,
      unauthenticated: 0,
      not_installed: 0,
      unavailable: 2,
      timeout: 2,
      error: 2,
    } as const;
    for (const [status, code] of Object.entries(codes)) {
      const document = contractExample('UsageDocument');
      const [entry, other] = document.backends;
      document.backends = [{ ...entry!, status: status as keyof typeof codes }, other!];
      fake.reply = { body: document };
      for (const args of [[], ['--json']]) {
        expect([status, (await usage(args)).code]).toEqual([status, code]);
      }
    }
    fake.reply = { body: { ...contractExample('UsageDocument'), backends: [] } };
    expect(await usage()).toMatchObject({
      code: 0,
      out: expect.stringContaining('ctl backend tier'),
    });
  });

  test('--refresh is passed on, and nothing else', async () => {
    fake.reply = { body: contractExample('UsageDocument') };
    fake.requests.length = 0;
    await usage();
    await usage(['--refresh']);
    expect(fake.requests.map(({ line }) => line)).toEqual([
      'GET /api/v1/usage',
      'GET /api/v1/usage?refresh=true',
    ]);
  });

  test('without a document the exit code is 1', async () => {
    const problem = { type: 'x', title: 'x', status: 500, detail: 'Broken.', error: 'Broken.' };
    const cases: [object, string][] = [
      [{ status: 500, body: { ...problem, code: 'INTERNAL' } }, 'Broken.'],
      [{ status: 401, body: { ...problem, code: 'UNAUTHENTICATED' } }, 'requires a token'],
      [{ body: {} }, 'no usage document of version 1'],
      [{ body: { schema_version: 2, backends: [] } }, 'no usage document of version 1'],
      [{ body: 'hello' }, 'is not a Millrace daemon.'],
    ];
    for (const [reply, text] of cases) {
      fake.reply = reply as FakeDaemon['reply'];
      for (const args of [[], ['--json']]) {
        const { code, out, err } = await usage(args);
        expect([code, out]).toEqual([1, '']);
        expect(err).toContain(text);
      }
    }
    expect(await ctl(['usage', '--url', 'http://127.0.0.1:1'])).toMatchObject({ code: 1, out: '' });
  });

  test('cannot move the cursor of a terminal', async () => {
    const document = contractExample('UsageDocument');
    document.backends[1]!.usage[0]!.label = 'red \u001B[31m window';
    document.backends[0]!.error = 'bad \u001B[2J thing';
    fake.reply = { body: document };
    const { out } = await usage();
    expect(out).not.toContain('\u001B');
    const detail = 'bad \u001B[2J thing';
    fake.reply = { status: 500, body: { code: 'INTERNAL', detail } };
    expect((await usage()).err).toBe('ctl: bad  [2J thing\n');
  });
});

describe('with a daemon and its providers', () => {
  const server = new DaemonServer();
  const secrets = ['ada@example.com', 'org-7f3a91', 'req_011CSHo', '/Users/ada/x', 'TOPSECRET'];
  const noise = { email: secrets[0], org: secrets[1], request_id: secrets[2], path: secrets[3] };
  let answer: { status: number; body: unknown } = { status: 200, body: {} };
  const provider = createServer((_, response) => {
    const headers = { 'x-request-id': secrets[2]!, 'retry-after': '0' };
    response.writeHead(answer.status, headers).end(JSON.stringify(answer.body));
  });

  beforeAll(async () => {
    provider.listen(0, '127.0.0.1');
    await once(provider, 'listening');
    const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/usage`;
    server.install('claude');
    server.write('.claude/.credentials.json', { claudeAiOauth: { accessToken: 'TOPSECRET-1' } });
    server.write('.config/cursor/auth.json', { accessToken: 'TOPSECRET-2' });
    server.write('.gemini/oauth_creds.json', { access_token: 'TOPSECRET-3' });
    await server.start('--provider-url', url, '--log-level', 'debug');
    for (const id of ['claude', 'cursor-agent', 'gemini', 'opencode']) {
      await server.json(['backend', 'tier', id, 'subscription']);
    }
  });
  afterAll(async () => {
    await server.remove();
    provider.close();
  });

  const entryOf = (document: any, id: string) =>
    document.backends.find((entry: any) => entry.id === id);

  test('the windows of each come through, and nothing else of what they say', async () => {
    answer.body = {
      ...noise,
      five_hour: { ...noise, utilization: 41.5, resets_at: '2099-01-01T00:00:00Z' },
      planUsage: { ...noise, totalPercentUsed: 100, autoPercentUsed: 1 },
      buckets: [{ ...noise, modelId: 'gemini-3-pro', remainingFraction: 0.25 }],
    };
    const document = await server.json(['usage']);
    expect(faultsOf('UsageDocument', document)).toEqual([]);
    const shown = document.backends.map(({ id, status, usage }: any) => [
      id,
      status,
      ...usage.map(({ scope, used_percent: used }: any) => `${scope} ${used}`),
    ]);
    expect(shown).toEqual([
      ['claude', 'ok', 'five_hour 41.5'],
      ['cursor-agent', 'rate_limited', 'api null', 'auto 1', 'included 100'],
      ['gemini', 'ok', 'gemini 75', 'non-gemini null'],
      ['opencode', 'unsupported'],
    ]);
    expect(entryOf(await server.json(['usage']), 'claude').cached).toBe(true);
    const screen = await server.ctl(['usage'], { COLUMNS: '80' });
    expect(screen).toMatchObject({ code: 0, err: '' });
    expect(screen.out).toMatch(/^claude +ok +5-hour window +41\.5% +in \d+d/m);
    for (const secret of secrets) {
      expect(JSON.stringify(document) + screen.out + server.logged).not.toContain(secret);
    }
  });

  test('a refresh that fails is exit code 2, with nulls and what was last seen', async () => {
    answer = { status: 429, body: { ...noise, error: secrets.join(' ') } };
    const { code, out } = await server.ctl(['usage', '--refresh', '--json']);
    expect(code).toBe(2);
    const document = JSON.parse(out);
    expect(faultsOf('UsageDocument', document)).toEqual([]);
    const claude = entryOf(document, 'claude');
    expect(claude).toMatchObject({ status: 'unavailable', usage: [{ used_percent: null }] });
    expect(claude.last_good.usage[0].used_percent).toBe(41.5);
    const screen = await server.ctl(['usage']);
    expect(screen.code).toBe(2);
    expect(screen.out).toContain('claude: the provider answered 429: too many requests.');
    for (const secret of secrets) {
      expect(out + screen.out + screen.err + server.logged).not.toContain(secret);
    }
  });

  test('reading usage leaves the registry as it is', async () => {
    const before = await server.json(['backend', 'list']);
    server.install('gemini');
    await server.ctl(['usage', '--refresh']);
    expect(await server.json(['backend', 'list'])).toEqual(before);
  });
});
