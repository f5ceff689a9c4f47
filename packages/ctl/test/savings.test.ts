import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { DaemonServer, faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { ctlHere as ctl } from './run-ctl.js';

const again = inCampaign('process');

describe('whatever the daemon says', () => {
  let fake: FakeDaemon;
  beforeAll(async () => {
    fake = await FakeDaemon.start();
  });
  afterAll(() => fake.stop());

  const savings = (args: string[] = [], env = {}) =>
    ctl(['usage', 'savings', '--url', fake.url, ...args], { TZ: 'UTC', ...env });

  test('is shown at 80 and at 140 columns', async () => {
    fake.reply = { body: contractExample('SavingsReport') };
    expect(await savings([], { COLUMNS: '80' })).toMatchObject({
      code: 0,
      err: '',
      out: `Savings since 2026-01-14 00:00
context  81k of 90k tokens saved, 9k kept             90%  $0.41
offload  1.2k tokens of work done by the local model       $0.012

FEATURE      EVENTS  WITHOUT  SAVED
check             2      90k    81k  90%
llm_offload       1     1.2k   1.2k

2026-01-14 █▁ 2026-01-15
context saved by the day, at most 81k tokens

Tokens are estimated at 4 bytes each (HEURISTIC). Run \`ctl usage savings
--calibrate\` to measure the ratio.
`,
    });
    const wide = await savings([], { COLUMNS: '140' });
    expect(wide.out).toContain('check             2      90k    81k  90%  ##################..\n');
    expect((await savings(['--benchmark'])).out).toMatch(/^CONTEXT +TOKENS +DOLLARS\nwithout /);
    expect((await savings(['--audit'])).out).toContain('  kept | 12 passed\n');
  });

  test('is passed on unchanged under --json', async () => {
    const report = contractExample('SavingsReport');
    fake.reply = { body: report };
    for (const flags of [[], ['--benchmark'], ['--audit']]) {
      const { code, out, err } = await savings([...flags, '--json']);
      expect([code, err, JSON.parse(out)]).toEqual([0, '', report]);
      expect(faultsOf('SavingsReport', JSON.parse(out))).toEqual([]);
    }
  });

  test('is requested with the window, the trend and the pairs', async () => {
    fake.reply = { body: contractExample('SavingsReport') };
    fake.requests.length = 0;
    await savings();
    await savings(['--since', '24h']);
    await savings(['--since', '2026-01-01', '--audit']);
    expect(fake.requests.map(({ line }) => decodeURIComponent(line))).toEqual([
      'GET /api/v1/savings?bucket=day',
      'GET /api/v1/savings?since=24h&bucket=hour',
      'GET /api/v1/savings?since=2026-01-01T00:00:00.000Z&bucket=day&samples=1',
    ]);
  });

  test('is reported when it is no, and mistakes are reported before it is asked', async () => {
    const detail = 'The setting savings is off.';
    fake.reply = { status: 403, body: { code: 'SAVINGS_DISABLED', detail } };
    expect(await savings()).toMatchObject({ code: 1, out: '', err: `ctl: ${detail}\n` });
    fake.reply = { body: { hello: 1 } };
    expect(await savings()).toMatchObject({ code: 1, out: '' });
    fake.requests.length = 0;
    expect((await savings(['--since', 'soon'])).code).toBe(2);
    expect((await savings(['--calibrate-max', 'many'])).code).toBe(2);
    expect((await savings(['--calibrate-max', '0'])).code).toBe(2);
    expect((await savings(['--calibrate', '--watch'])).err).toContain('leave out --watch');
    expect(fake.requests).toEqual([]);
    expect((await ctl(['usage', 'savings', '--url', 'http://127.0.0.1:1'])).code).toBe(1);
  });
});

describe('with a real daemon', () => {
  let server: DaemonServer;
  beforeAll(async () => {
    server = new DaemonServer();
    server.write('.config/millrace/config.yaml', 'savings_samples: true\n');
    await server.start();
  });
  afterAll(() => server.remove());

  test('what ctl check leaves out is what ctl usage savings shows', async () => {
    const lines = Array.from({ length: 300 }, (_, at) => `part ${at} of the work`).join('\n');
    const script = server.write('long.txt', `${lines}\n3 passed\n`);
    const run = await server.ctl(['check', '--json', '--', 'cat', script], {
      PATH: process.env['PATH']!,
    });
    const figures = JSON.parse(run.out) as { raw_tokens: number; kept_tokens: number };
    const report = await server.json(['usage', 'savings', '--audit']);
    expect(faultsOf('SavingsReport', report)).toEqual([]);
    expect(report).toMatchObject({
      events: 1,
      raw_tokens: figures.raw_tokens,
      kept_tokens: figures.kept_tokens,
      features: [{ feature: 'check', events: 1 }],
      samples: [{ feature: 'check', raw: `${lines}\n3 passed\n` }],
    });
    expect(report.samples[0].kept).toContain('3 passed\n');
    const shown = await server.ctl(['usage', 'savings', '--since', '24h']);
    expect([shown.code, shown.err]).toEqual([0, '']);
    expect(shown.out).toContain('context saved by the hour');
  });
});

describe('what the daemon that runs was sent by flags', () => {
  const server = new DaemonServer();
  afterAll(() => server.remove());
  const check = (env: Record<string, string> = {}) =>
    server.ctl(['check', '--', 'echo', 'hello'], { PATH: process.env['PATH']!, ...env });

  again('counts for ctl check too, until it stops', async () => {
    await server.start('--savings-samples', 'on');
    await check();
    await check({ MILLRACE_SAVINGS_SAMPLES: 'off' });
    const report = await server.json(['usage', 'savings', '--audit']);
    expect(report).toMatchObject({ events: 2, samples: [{ raw: 'hello\n' }] });
    await server.stop();
    await server.start('--savings', 'off');
    await check();
    await server.stop();
    await check();
    await server.start();
    expect(await server.json(['usage', 'savings'])).toMatchObject({ events: 3 });
  });
});

describe('calibrating', () => {
  let server: DaemonServer;
  let counter: Server;
  let answer: { status: number; body: string };
  let requests: { key: unknown; path: string | undefined; body: any }[];
  beforeEach(async () => {
    server = new DaemonServer();
    requests = [];
    answer = { status: 200, body: '{"input_tokens":80}' };
    counter = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        requests.push({
          key: request.headers['x-api-key'],
          path: request.url,
          body: JSON.parse(body),
        });
        response.writeHead(answer.status, { 'content-type': 'application/json' });
        response.end(answer.body);
      });
    });
    counter.listen(0, '127.0.0.1');
    await once(counter, 'listening');
  });
  afterEach(async () => {
    counter.close();
    counter.closeAllConnections();
    await server.remove();
  });

  const calibrate = (args: string[] = [], key = 'planted-key') =>
    server.ctl(['usage', 'savings', '--calibrate', ...args], {
      ...(key && { ANTHROPIC_API_KEY: key }),
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${(counter.address() as AddressInfo).port}`,
    });
  const file = () => join(server.data, 'savings', 'calibration.json');

  function keepSamples(count: number): void {
    const folder = join(server.data, 'savings', 'samples');
    mkdirSync(folder, { recursive: true });
    for (let at = 0; at < count; at++) {
      const sample = { ts: '2026-01-14T10:12:00.000Z', feature: 'check', raw: 'x'.repeat(256) };
      const name = `01K9ZQ4M7T3V8X2B6C0D5E1F${String(at).padStart(2, '0')}.json`;
      writeFileSync(join(folder, name), JSON.stringify({ ...sample, kept: 'x' }));
    }
  }

  test('counts retained samples, and the ratio is kept', async () => {
    keepSamples(60);
    const { code, out, err } = await calibrate();
    expect([code, err]).toEqual([0, '']);
    expect(out).toBe('A token has 3.2 bytes, measured on 50 samples (12.5 KiB, 4k tokens).\n');
    expect(requests).toHaveLength(50);
    expect(requests[0]).toMatchObject({
      key: 'planted-key',
      path: '/v1/messages/count_tokens',
      body: { messages: [{ role: 'user', content: 'x'.repeat(256) }] },
    });
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toMatchObject({ bytes_per_token: 3.2 });
    requests.length = 0;
    const few = await calibrate(['--calibrate-max', '3', '--json']);
    expect(JSON.parse(few.out)).toMatchObject({ bytes_per_token: 3.2, samples: 3 });
    expect(requests).toHaveLength(3);
    await server.start();
    expect(await server.json(['usage', 'savings'])).toMatchObject({
      basis: 'CALIBRATED',
      calibrated_bytes_per_token: 3.2,
    });
  });

  test('changes nothing without a key, without samples, and on any error', async () => {
    const nothing = /Nothing has changed\.\n$/;
    expect(await calibrate([], '')).toMatchObject({ code: 1, out: '' });
    expect(await calibrate()).toMatchObject({ code: 1, err: expect.stringMatching(nothing) });
    keepSamples(2);
    expect((await calibrate()).code).toBe(0);
    const before = readFileSync(file(), 'utf8');
    const answers = [
      { status: 429, body: '{"error":{"message":"slow down"}}' },
      { status: 200, body: '{}' },
      { status: 200, body: 'nonsense' },
      { status: 200, body: '{"input_tokens":0}' },
      { status: 200, body: '{"input_tokens":100000}' },
    ];
    for (answer of answers) {
      const { code, out, err } = await calibrate();
      expect([code, out, err]).toEqual([1, '', expect.stringMatching(nothing)]);
      expect(err).not.toContain('planted-key');
      expect(readFileSync(file(), 'utf8')).toBe(before);
    }
  });
});
