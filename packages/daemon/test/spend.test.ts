import { appendFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { claudeLine, codexCount, codexMeta, truth } from './support/transcripts.js';
import { expectSchema } from './support/client.js';
import { startDaemon, type TestDaemon, type TestOptions } from './support/daemon.js';

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.dispose();
  daemon = undefined;
});

class Home {
  readonly path = mkdtempSync(join(tmpdir(), 'mr-spend-'));

  append(file: string, text: string): void {
    mkdirSync(dirname(join(this.path, file)), { recursive: true });
    appendFileSync(join(this.path, file), text);
  }

  async start(options: TestOptions = {}) {
    daemon = await startDaemon({ home: this.path, ...options });
    const { api } = daemon;
    return async () => {
      const rollup = await api.ok('GET', '/api/v1/spend');
      expectSchema('SpendRollup', rollup);
      return rollup;
    };
  }
}

const session = '.claude/projects/-nowhere-mill/session-1.jsonl';
const message = (id: string) =>
  claudeLine(
    truth(id, {
      at: Date.now(),
      tokens: { input: 1_000, output: 1_000, cacheRead: 10_000, cacheWrite: 0, cacheWriteLong: 0 },
    }),
  );

test('without transcripts nothing was spent', async () => {
  const spend = await new Home().start();
  expect(await spend()).toMatchObject({ total_usd: 0, by_agent: [], basis: 'HEURISTIC' });
});

test('spend: counts the transcripts of every backend, and new lines at once', async () => {
  const home = new Home();
  home.append(session, message('m1') + message('m1'));
  const rollout = codexMeta('thread-1') + codexCount([5_000, 50], Date.now());
  home.append('.codex/sessions/2026/01/15/rollout-2026-01-15T09-30-00-thread-1.jsonl', rollout);
  const spend = await home.start();
  expect(await spend()).toMatchObject({
    total_usd: 0.03,
    daily_usd: 0.03,
    weekly_usd: 0.03,
    week_usd: 0.03,
    cache_usd: 0.005,
    input_tokens: 6_000,
    output_tokens: 1_050,
    cache_read_tokens: 10_000,
    by_agent: [
      { key: 'session-1', usd: 0.03 },
      { key: 'thread-1', input_tokens: 5_000, usd: null },
    ],
    by_repo: [{ key: '/nowhere/mill' }, { key: '/nowhere/race', usd: null }],
    by_backend: [{ key: 'claude' }, { key: 'codex' }],
  });
  home.append(session, message('m2'));
  await expect.poll(async () => (await spend()).total_usd).toBe(0.06);
});

test('spend: counting resumes after a restart', async () => {
  const home = new Home();
  home.append(session, message('m1'));
  const first = await home.start();
  expect((await first()).total_usd).toBe(0.03);
  await daemon!.stop();
  home.append(session, message('m1') + message('m2'));
  const second = await home.start();
  expect((await second()).total_usd).toBe(0.06);
});

test('CODEX_HOME and CLAUDE_CONFIG_DIR are heeded', async () => {
  const home = new Home();
  home.append(`elsewhere/projects/p/s.jsonl`, message('m1'));
  home.append('codex/sessions/rollout-a.jsonl', codexMeta('a') + codexCount([7, 1], Date.now()));
  const spend = await home.start({
    environment: {
      CLAUDE_CONFIG_DIR: join(home.path, 'elsewhere'),
      CODEX_HOME: join(home.path, 'codex'),
    },
  });
  expect(await spend()).toMatchObject({ total_usd: 0.03, input_tokens: 1_007 });
});

test('figures say whether they rest on a calibration', async () => {
  const home = new Home();
  home.append('data/savings/calibration.json', '{"bytes_per_token": 3.4}');
  const spend = await home.start();
  expect((await spend()).basis).toBe('CALIBRATED');
});

test('with savings off nothing is read, and spend is refused', async () => {
  const home = new Home();
  home.append(session, message('m1'));
  await home.start({ flags: { savings: 'off' } });
  const problem = await daemon!.api.refused({ path: '/api/v1/spend' }, 403, 'SAVINGS_DISABLED');
  expect(problem.detail).toContain('Set savings to true');
});

test('spend: a corrupt transcript does not affect the others', async () => {
  const home = new Home();
  home.append(session, `${message('m1').slice(0, 300)}\n${message('m2')}{"half`);
  home.append('.claude/projects/p/binary.jsonl', '\0'.repeat(5_000));
  const spend = await home.start();
  expect((await spend()).total_usd).toBe(0.03);
  expect(daemon!.log.lines).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      message: 'skipped unreadable transcript lines',
      fields: expect.objectContaining({ path: join(home.path, session), lines: 1 }) as object,
    }),
  );
  writeFileSync(join(home.path, session), '');
  expect((await spend()).total_usd).toBe(0.03);
});

test('insights are mined from the same transcripts', async () => {
  const home = new Home();
  const at = Date.now() - 7_200_000;
  const edit = (id: string, who: string, minutes: number, file: string) => {
    const message = truth(id, { session: who, at: at + minutes * 60_000 });
    const input = { file_path: `/nowhere/mill/${file}` };
    const content = [{ type: 'tool_use', name: 'Edit', input }];
    return claudeLine(message).replace(/"content":\[.*?\],"usage"/, () => {
      return `"content":${JSON.stringify(content)},"usage"`;
    });
  };
  const failure = claudeLine(truth('x', { session: 'b', model: '<synthetic>', at: at + 900_000 }), {
    isApiErrorMessage: true,
  });
  home.append(
    '.claude/projects/p/a.jsonl',
    edit('m1', 'a', 0, 'a.ts') + edit('m2', 'a', 1, 'b.ts'),
  );
  home.append(
    '.claude/projects/p/b.jsonl',
    edit('m3', 'b', 2, 'a.ts') + edit('m4', 'b', 3, 'b.ts') + failure,
  );
  await home.start({ flags: { savings: 'off' } });
  const insights = await daemon!.api.ok('GET', '/api/v1/insights');
  expectSchema('Insights', insights);
  expect(insights).toMatchObject({
    since: null,
    sessions: 2,
    error_rates: [{ by: 'all', sessions: 2, errors: 1, rate: 0.5 }, {}, {}, {}],
    co_edited_files: [{ repo: '/nowhere/mill', files: ['a.ts', 'b.ts'], sessions: 2, share: 1 }],
  });
  const later = await daemon!.api.ok('GET', '/api/v1/insights?since=1h');
  expect(later.sessions).toBe(0);
  // What failed has cost nothing, and no model is to blame.
  await daemon!.stop();
  const spend = await home.start();
  expect((await spend()).by_model.map(({ key }: { key: string }) => key)).toEqual([
    'claude-opus-4-5',
  ]);
});

test('spend: blocks, the value of the work and hours have their own reports', async () => {
  const home = new Home();
  home.append(session, message('m1'));
  const spend = await home.start();
  const { api } = daemon!;
  const { by_hour, by_branch, by_task, exact_usd } = await spend();
  expect(exact_usd).toBeCloseTo(0.035);
  expect(by_hour).toEqual([expect.objectContaining({ exact_usd })]);
  expect([by_branch[0].key, by_task[0].key]).toEqual(['none', 'none']);
  const blocks = await api.ok('GET', '/api/v1/usage/blocks');
  expectSchema('UsageBlocks', blocks);
  expect(blocks).toMatchObject({ backend: 'claude', blocks: [{ is_active: true, exact_usd }] });
  const none = await api.ok('GET', '/api/v1/usage/blocks?backend=codex');
  expect(none).toEqual({ backend: 'codex', blocks: [] });
  const value = await api.ok('GET', '/api/v1/usage/value');
  expectSchema('UsageValue', value);
  expect(value.total).toMatchObject({ backend: 'all', sessions: 0 });
});

test('metrics: Prometheus reads them with the token, or at an address of their own', async () => {
  const home = new Home();
  home.append(session, message('m1'));
  const token = 'a-token-of-thirty-two-characters';
  await home.start({ flags: { token, 'metrics-listen': '127.0.0.1:0' } });
  const { listeners } = daemon!;
  const api = daemon!.api.withHeaders({ authorization: `Bearer ${token}` });
  await api.ok('GET', '/api/v1/spend');
  const { status, text, headers } = await api.send({ path: '/metrics' });
  expect([status, headers['content-type']]).toEqual([200, expect.stringMatching(/^text\/plain/)]);
  for (const series of [
    'millrace_daemon_tokens_total{backend="claude",kind="cache_read"} 10000',
    'millrace_daemon_exact_usd_total{backend="claude",model="claude-opus-4-5"} 0.035',
    'millrace_daemon_questions_waiting 0',
    'millrace_daemon_sessions{status="waiting_for_input"} 0',
    'millrace_daemon_spawn_seconds_count 0',
  ]) {
    expect(text).toContain(series);
  }
  expect((await api.withHeaders({ authorization: '' }).send({ path: '/metrics' })).status).toBe(
    401,
  );
  const { url } = listeners.find(({ listener }) => listener === 'metrics')!;
  const open = await fetch(`${url}/metrics`);
  expect([open.status, await open.text()]).toEqual([
    200,
    expect.stringContaining('millrace_daemon_exact_usd_total'),
  ]);
  const foreign = await fetch(`${url}/metrics`, { headers: { origin: 'http://evil.example' } });
  expect(foreign.status).toBe(403);
});
