import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { DaemonServer, faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { ctlHere as ctl, startCtl, type Started } from './run-ctl.js';

describe('whatever the daemon says', () => {
  let fake: FakeDaemon;
  let watching: Started | undefined;
  beforeAll(async () => {
    fake = await FakeDaemon.start();
  });
  afterEach(async () => {
    watching?.child.kill('SIGKILL');
    await watching?.ended;
    watching = undefined;
    fake.requests.length = 0;
  });
  afterAll(() => fake.stop());

  const at = (...args: string[]) => [...args, '--url', fake.url];
  const serve = (path: string, body: unknown) => fake.routes.set(`GET ${path}`, { body });
  const sessions = { sessions: [{ id: '01K9ZQ4M7T3V8X2B6C0D5E1F9G', name: 'retry-upload' }] };

  test('resources are shown with the names of the agents, or with their ids', async () => {
    serve('/api/v1/metrics', contractExample('Metrics'));
    serve('/api/v1/sessions', sessions);
    const { code, out, err } = await ctl(at('inspect', 'resources'), { COLUMNS: '80' });
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^MACHINE\nCPU +37\.5%\nMemory +38\.4% +6 GiB of 15\.6 GiB\n/);
    expect(out).toMatch(/^retry-upload +21\.5% +393 MiB +118k +01K9ZQ4M7T3V8X2B6C0D5E1F9G$/m);
    fake.routes.set('GET /api/v1/sessions', { status: 500, body: { code: 'X', detail: 'x' } });
    expect((await ctl(at('inspect', 'resources'))).out).toMatch(/^01K9ZQ4M7T3V8X2B6C0D5E1F9G +21/m);
  });

  test('under --json they are passed on unchanged, and nothing else is requested', async () => {
    serve('/api/v1/metrics', contractExample('Metrics'));
    serve('/api/v1/metrics/history', contractExample('MetricsHistory'));
    serve('/api/v1/collab/branches', contractExample('BranchStandings'));
    const cases = [
      [['inspect', 'resources'], 'Metrics', '/api/v1/metrics'],
      [
        ['inspect', 'resources', '--history'],
        'MetricsHistory',
        '/api/v1/metrics/history?since=24h',
      ],
      [['workspace', 'branches'], 'BranchStandings', '/api/v1/collab/branches'],
      [
        ['workspace', 'branches', '--refresh'],
        'BranchStandings',
        '/api/v1/collab/branches?refresh=true',
      ],
    ] as const;
    for (const [args, name, path] of cases) {
      fake.requests.length = 0;
      const { code, out, err } = await ctl(at(...args, '--json'));
      expect([code, err]).toEqual([0, '']);
      expect(JSON.parse(out)).toEqual(contractExample(name));
      expect(fake.requests.map(({ line }) => line)).toEqual([`GET ${path}`]);
    }
  });

  test('history is requested in steps that fit the terminal', async () => {
    serve('/api/v1/metrics/history', contractExample('MetricsHistory'));
    serve('/api/v1/sessions', sessions);
    const requests = async (columns: string, ...since: string[]) => {
      fake.requests.length = 0;
      const args = at('inspect', 'resources', '--history', ...since);
      expect(await ctl(args, { COLUMNS: columns })).toMatchObject({ code: 0, err: '' });
      return fake.requests.map(({ line }) => line).find((line) => line.includes('history'));
    };
    expect(await requests('80')).toBe('GET /api/v1/metrics/history?since=24h&step=2880');
    expect(await requests('140')).toBe('GET /api/v1/metrics/history?since=24h&step=1080');
    expect(await requests('80', '--since', '5m')).toContain('since=5m&step=15');
    expect(await requests('80', '--since', '2026-01-31')).toContain('since=2026-01-');
    const wrong = await ctl(at('inspect', 'resources', '--history', '--since', 'soon'));
    expect(wrong).toMatchObject({ code: 2, out: '' });
    expect(wrong.err).toContain('--since must be a span');
  });

  test('--watch looks again and again, until it is interrupted', async () => {
    serve('/api/v1/metrics', contractExample('Metrics'));
    const samples = () => fake.requests.filter(({ line }) => line === 'GET /api/v1/metrics').length;
    watching = startCtl(at('inspect', 'resources', '--watch', '--json'));
    await expect.poll(samples, { timeout: 60_000 }).toBeGreaterThanOrEqual(2);
    // It is patient with a daemon that is started again.
    fake.routes.set('GET /api/v1/metrics', { status: 503, body: 'starting' });
    await watching.says('UNAVAILABLE');
    serve('/api/v1/metrics', contractExample('Metrics'));
    const before = samples();
    await expect.poll(samples, { timeout: 60_000 }).toBeGreaterThan(before);
    watching.child.kill('SIGINT');
    const { code, out } = await watching.ended;
    expect(code).toBe(130);
    const lines = out.trimEnd().split('\n');
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect(JSON.parse(lines[0]!)).toEqual(contractExample('Metrics'));
  });

  test('branches are shown, and where none are it says why', async () => {
    serve('/api/v1/collab/branches', contractExample('BranchStandings'));
    const shown = await ctl(at('workspace', 'branches'), { COLUMNS: '80' });
    expect(shown).toMatchObject({ code: 0, err: '' });
    expect(shown.out).toMatch(/^retry-upload +retry-upload +main +3 +12 +no +failure /m);
    expect(shown.out).toContain('docs: git took longer than 10 seconds.\n');
    serve('/api/v1/collab/branches', { branches: [] });
    expect((await ctl(at('workspace', 'branches'))).out).toContain('No agent works on a branch');
  });

  test('what is no response is an error, and cannot move the cursor', async () => {
    for (const path of ['/api/v1/metrics', '/api/v1/metrics/history', '/api/v1/collab/branches']) {
      serve(path, {});
    }
    for (const args of [
      ['inspect', 'resources'],
      ['inspect', 'resources', '--history'],
      ['workspace', 'branches'],
    ]) {
      const { code, out, err } = await ctl(at(...args));
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain('It may be another version of Millrace.');
    }
    const standings = contractExample('BranchStandings');
    standings.branches[1]!.error = 'bad \u001B[2J thing';
    serve('/api/v1/collab/branches', standings);
    expect((await ctl(at('workspace', 'branches'))).out).not.toContain('\u001B');
  });

  test('without a daemon it says how to start one', async () => {
    for (const args of [
      ['inspect', 'resources'],
      ['inspect', 'resources', '--watch'],
      ['inspect', 'resources', '--history', '--json'],
      ['workspace', 'branches'],
    ]) {
      const { code, out, err } = await ctl([...args, '--url', 'http://127.0.0.1:1']);
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain('ctl daemon serve');
    }
  });
});

describe('with a daemon', () => {
  const server = new DaemonServer();
  beforeAll(() => server.start());
  afterAll(() => server.remove());

  test('there are figures at once, and history after the first sample', async () => {
    const metrics = await server.json(['inspect', 'resources']);
    expect(faultsOf('Metrics', metrics)).toEqual([]);
    expect(metrics.system.cpu_pct).toBeGreaterThanOrEqual(0);
    expect(metrics.daemon.rss).toBeGreaterThan(10_000_000);
    const samples = async () => (await server.json(['inspect', 'resources', '--history'])).samples;
    await expect.poll(async () => (await samples()).length, { timeout: 60_000 }).toBeGreaterThan(0);
    const { code, out } = await server.ctl(['inspect', 'resources', '--history']);
    expect(code).toBe(0);
    expect(out).toMatch(/^CPU +\S+ +[\d.]+%/m);
    expect(await server.json(['workspace', 'branches', '--refresh'])).toEqual({ branches: [] });
  });
});
