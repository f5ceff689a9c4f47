import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { DaemonServer, faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { ctl } from './run-ctl.js';

describe('whatever the daemon says', () => {
  let fake: FakeDaemon;
  beforeAll(async () => {
    fake = await FakeDaemon.start();
  });
  afterAll(() => fake.stop());

  test('is shown as tables, and passed on unchanged under --json', async () => {
    const rollup = contractExample('SpendRollup');
    fake.reply = { body: rollup };
    for (const path of [['usage'], ['cost', 'usage']]) {
      const spend = [...path, 'spend', '--url', fake.url];
      const screen = await ctl(spend, { COLUMNS: '80' });
      expect(screen).toMatchObject({ code: 0, err: '' });
      expect(screen.out).toContain(
        'All time     $14.25  2.1M in, 420k out, 3M cache read, 40k written\n',
      );
      const days = await ctl([...spend, '--by', 'day'], { COLUMNS: '140' });
      expect(days.out).toContain('2026-01-15   $3.00  #####...............  200k in  80k out\n');
      const json = await ctl([...spend, '--by', 'repo', '--json']);
      expect([json.code, json.err, JSON.parse(json.out)]).toEqual([0, '', rollup]);
    }
    const lines = fake.requests.map(({ line }) => line);
    expect([...new Set(lines)]).toEqual(['GET /api/v1/spend']);
  });

  test('the flags of the group count before the name of the command, too', async () => {
    fake.reply = { body: contractExample('SpendRollup') };
    const { code, err } = await ctl(['usage', '--url', fake.url, 'spend', '--json']);
    expect([code, err]).toEqual([0, '']);
  });

  test('a daemon that keeps no account says so, with exit code 1', async () => {
    const detail = 'The setting savings is off. Set savings to true and restart the daemon.';
    fake.reply = { status: 403, body: { code: 'SAVINGS_DISABLED', detail, status: 403 } };
    for (const name of [['usage', 'spend'], ['cost']]) {
      const { code, out, err } = await ctl([...name, '--url', fake.url]);
      expect([code, out, err]).toEqual([1, '', `ctl: ${detail}\n`]);
      const json = await ctl([...name, '--url', fake.url, '--json']);
      expect(JSON.parse(json.err).error.code).toBe('SAVINGS_DISABLED');
    }
  });

  test('insights are shown as tables, and passed on unchanged under --json', async () => {
    const insights = contractExample('Insights');
    fake.reply = { body: insights };
    fake.requests.length = 0;
    const requests = ['usage', 'insights', '--url', fake.url];
    const screen = await ctl([...requests, '--since', '30d'], { COLUMNS: '80' });
    expect(screen).toMatchObject({ code: 0, err: '' });
    expect(screen.out).toContain('busiest at 10:00');
    expect(fake.requests[0]!.line).toBe('GET /api/v1/insights?since=30d');
    const json = await ctl([...requests, '--json']);
    expect([json.code, JSON.parse(json.out)]).toEqual([0, insights]);
    fake.reply = { body: {} };
    expect(await ctl(requests)).toMatchObject({ code: 1, out: '' });
  });

  test('what is no rollup is exit code 1', async () => {
    for (const body of [{}, { total_usd: 'much' }, [], 'hello']) {
      fake.reply = { body };
      const { code, out } = await ctl(['usage', 'spend', '--url', fake.url]);
      expect([code, out]).toEqual([1, '']);
    }
  });

  test('cannot move the cursor of a terminal', async () => {
    const rollup = contractExample('SpendRollup');
    rollup.by_agent[0]!.key = 'red \u001B[31m agent';
    fake.reply = { body: rollup };
    expect((await ctl(['usage', 'spend', '--url', fake.url])).out).not.toContain('\u001B');
  });

  test('a wrong table is a usage error', async () => {
    const { code, err } = await ctl(['usage', 'spend', '--by', 'week']);
    expect([code, err]).toEqual([2, expect.stringContaining('agent, repo, day')]);
  });
});

describe('with a daemon and transcripts', () => {
  const server = new DaemonServer();
  const line = (id: string, output: number) =>
    `${JSON.stringify({
      type: 'assistant',
      sessionId: 'session-1',
      cwd: '/nowhere/mill',
      requestId: `req-${id}`,
      timestamp: new Date().toISOString(),
      message: {
        id,
        model: 'claude-opus-4-5',
        usage: { input_tokens: 1000, output_tokens: output },
      },
    })}\n`;

  beforeAll(async () => {
    server.write('.claude/projects/p/session-1.jsonl', line('m1', 1) + line('m1', 1000));
    await server.start();
  });
  afterAll(() => server.remove());

  test('what was spent is reported by every command', async () => {
    const rollup = await server.json(['usage', 'spend']);
    expect(faultsOf('SpendRollup', rollup)).toEqual([]);
    expect(rollup).toMatchObject({ total_usd: 0.03, daily_usd: 0.03, output_tokens: 1000 });
    const repos = await server.ctl(['usage', 'spend', '--by', 'repo'], { COLUMNS: '80' });
    expect(repos.out).toMatch(/^\/nowhere\/mill +\$0\.03 +1k in +1k out$/m);
    const cost = await server.json(['cost']);
    expect(faultsOf('SpendRollup', cost.spend)).toEqual([]);
    expect(faultsOf('SavingsReport', cost.savings)).toEqual([]);
    const insights = await server.json(['usage', 'insights']);
    expect(faultsOf('Insights', insights)).toEqual([]);
    expect(insights.sessions).toBe(1);
    const screen = await server.ctl(['cost'], { COLUMNS: '80' });
    expect(screen.out).toMatch(/^Spent today +\$0\.03$/m);
  });

  test('what is spent meanwhile is reported as soon as the figures are read again', async () => {
    server.write('.claude/projects/p/session-2.jsonl', line('m2', 3000));
    const total = async () => (await server.json(['usage', 'spend'])).total_usd;
    await expect.poll(total, { timeout: 60_000, interval: 200 }).toBe(0.11);
  });
});
