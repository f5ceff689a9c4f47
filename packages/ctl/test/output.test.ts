import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { FakeDaemon } from './fake-daemon.js';
import { CTL, ctl, startCtl } from './run-ctl.js';
import { hasTmux, TmuxTerminal } from './tmux-terminal.js';

const again = inCampaign('process');

const patient = { timeout: 60_000, interval: 100 };
const env = { MILLRACE_QUEUE_TOKEN: 'mr_a_b' };

let server: FakeDaemon;
const queue = (name: string) => ({
  name,
  summary: {
    paused: false,
    pending: 7,
    in_flight: 1,
    dlq_depth: 3,
    oldest_pending_age_ms: 5_000,
    callback_url: null,
    version: 1,
    updated_at: '2026-01-15T09:30:00.000Z',
  },
});
beforeAll(async () => {
  server = await FakeDaemon.start();
});
beforeEach(() => {
  server.routes.clear();
  server.routes.set('GET /v1/admin/queues', { body: [queue('mail'), queue('images')] });
});
afterAll(() => server.stop());

const list = (...args: string[]) => ctl(['queue', 'list', '--url', server.url, ...args], env);

test('the errors of a file are one line, each after the other', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ctl-output-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'queue.yaml');
  writeFileSync(file, 'listen: 5\nodd: 1\n');
  const { code, err } = await ctl(['queue', 'serve', '--config', file, '--data', folder]);
  expect(code).toBe(2);
  expect(err.replaceAll(file, 'FILE')).toMatch(
    /^ctl: FILE:2: unknown key "odd"; FILE:1: listen must be an address such as .*, not 5\n$/,
  );
});

describe('-o', () => {
  test('json is what --json prints', async () => {
    const json = await list('--json');
    expect(JSON.parse(json.out)).toHaveLength(2);
    expect(await list('-o', 'json')).toEqual(json);
  });

  test('yaml', async () => {
    const { code, out, err } = await list('-o', 'yaml');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^- name: mail\n {2}summary:\n {4}paused: false\n/);
  });

  test('name, also before the command', async () => {
    expect((await list('-o', 'name')).out).toBe('mail\nimages\n');
    const first = await ctl(['-o', 'name', 'queue', 'list', '--url', server.url], env);
    expect(first).toMatchObject({ code: 0, out: 'mail\nimages\n' });
  });

  test('table is the default', async () => {
    expect((await list('-o', 'table')).out).toBe((await list()).out);
  });

  test('an unknown format is a usage error', async () => {
    const { code, out, err } = await list('-o', 'xml');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('table, json, yaml, csv, name');
  });

  test('csv has a line for each thing', async () => {
    const { code, out } = await list('-o', 'csv');
    const [head, ...lines] = out.trim().split('\n');
    expect([code, head!.startsWith('name,'), lines.length]).toEqual([0, true, 2]);
  });

  test('errors of -o yaml are text', async () => {
    const ended = await ctl(['queue', 'list', '--url', 'http://127.0.0.1:1', '-o', 'yaml']);
    expect(ended).toMatchObject({ code: 1, out: '' });
    expect(ended.err).toMatch(/^ctl: no queue server answers/);
  });
});

describe('--watch', () => {
  test('prints one line of JSON for each sample, and goes on when the server is away', async () => {
    const args = ['queue', 'list', '--url', server.url, '--watch', '--interval', '100ms', '--json'];
    const { child, says, ended } = startCtl(args, env);
    await says('"name":"mail"');
    const away = { status: 503, body: { code: 'STORAGE_UNAVAILABLE', detail: 'Later.' } };
    server.routes.set('GET /v1/admin/queues', away);
    await says('STORAGE_UNAVAILABLE');
    server.routes.set('GET /v1/admin/queues', { body: [queue('again')] });
    await says('"name":"again"');
    child.kill('SIGINT');
    const { code, out } = await ended;
    expect(code).toBe(130);
    for (const line of out.trim().split('\n')) expect(JSON.parse(line)).toBeInstanceOf(Array);
  });

  test('fails when the first sample does', async () => {
    const ended = await ctl(['queue', 'list', '--url', 'http://127.0.0.1:1', '--watch'], env);
    expect(ended).toMatchObject({ code: 1, out: '' });
  });

  test('--interval alone is a usage error', async () => {
    expect((await list('--interval', '1s')).err).toContain('--interval needs --watch.');
  });
});

describe.skipIf(!hasTmux)('on a terminal (needs tmux)', () => {
  let terminal: TmuxTerminal;
  afterEach(() => terminal.close());
  const open = (more: Record<string, string> = {}) => {
    terminal = new TmuxTerminal({ columns: 80, rows: 24 }, { ...env, ...more });
  };
  const run = (args: string) =>
    terminal.run(`'${process.execPath}' '${CTL}' ${args} --url ${server.url}; echo "code $?"`);
  const shows = (text: string | RegExp) =>
    expect.poll(() => terminal.screen(), patient).toMatch(text);
  const serveMany = () => {
    const many = Array.from({ length: 60 }, (_, at) => queue(`queue-${at}`));
    server.routes.set('GET /v1/admin/queues', { body: many });
  };

  test('output longer than the screen goes to the pager', async () => {
    serveMany();
    open({ PAGER: 'sed -n 2p; echo paged' });
    run('queue list');
    await shows(/queue-0 .*\npaged\ncode 0/);
  });

  again('short output, --no-pager, PAGER=cat and a missing pager are not paged', async () => {
    open({ PAGER: 'echo paged' });
    run('queue list');
    await shows(/images .*\ncode 0/);
    serveMany();
    terminal.run('clear');
    run('queue list --no-pager');
    await shows(/queue-59 .*\ncode 0/);
    terminal.run('clear; export PAGER=cat');
    run('queue list');
    await shows(/queue-59 .*\ncode 0/);
    terminal.run('clear; export PAGER=/nonexistent/pager');
    run('queue list');
    await shows(/queue-59 .*\ncode 0/);
    expect(terminal.screen()).not.toContain('paged');
  });

  again('--watch redraws in place, and Ctrl-C leaves a clean prompt', async () => {
    open();
    run('queue list --watch --interval 100ms');
    await shows('mail ');
    server.routes.set('GET /v1/admin/queues', { body: [queue('later')] });
    await shows('later ');
    expect(terminal.screen()).not.toContain('images');
    terminal.press('C-c');
    await shows(/^code 130$/m);
  });
});
