import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { DbServer } from './db-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { CTL, ctl, startCtl } from './run-ctl.js';
import { isInstalled, shells } from './shells.js';

const again = inCampaign('process');

/** A queue server and a daemon in one. */
let server: FakeDaemon;
const env = { MILLRACE_TOKEN: 'mr_a_b', MILLRACE_QUEUE_TOKEN: 'mr_a_b' };
/** A busy machine may need longer than a person would wait. */
const patientEnv = { ...env, MILLRACE_COMPLETION_TIMEOUT_MS: '30000' };
beforeAll(async () => {
  server = await FakeDaemon.start();
  const { routes } = server;
  const named = (...names: string[]) => ({ body: names.map((name) => ({ name })) });
  routes.set('GET /v1/admin/queues', named('mail', 'images', '$(touch pwned)'));
  routes.set('GET /v1/queues/mail/tasks', { body: { tasks: [{ id: 'T1' }, { id: 'T2' }] } });
  routes.set('GET /v1/queues/images/tasks', { body: { tasks: [{ id: 'T3' }] } });
  routes.set('GET /v1/queues/mail/dlq', { body: { tasks: [{ id: 'D1' }] } });
  routes.set('GET /v1/queues/mail/schedules', { body: { schedules: [{ name: 'nightly' }] } });
  routes.set('GET /v1/queues/mail/jobs', { body: { jobs: [{ id: 'J1' }] } });
  routes.set('GET /v1/queues/images/jobs', { body: { jobs: [] } });
  const session = contractExample('Session');
  const sessions = [
    { ...session, name: 'docs' },
    { ...session, id: 'S2', name: 'has a blank' },
  ];
  routes.set('GET /api/v1/sessions', { body: { sessions } });
  routes.set('GET /api/v1/backends', { body: { backends: [{ id: 'claude' }, { id: 'codex' }] } });
  routes.set('GET /api/v1/inbox', { body: { notes: [{ id: 'N1' }] } });
  routes.set('GET /api/v1/pipelines', { body: { pipelines: [{ id: 'P1' }] } });
});
afterAll(() => server.stop());

async function values(kind: string, line: string): Promise<string[]> {
  const { code, out, err } = await ctl(['__complete', kind, line], patientEnv);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out.split('\n').slice(0, -1);
}

describe('ctl __complete', () => {
  test.each([
    ['queues', 'ctl queue stats --url URL ', ['mail', 'images']],
    ['tasks', 'ctl queue get --url URL ', ['T1', 'T2', 'T3']],
    ['tasks', 'ctl queue cancel --queue images --url=URL ', ['T3']],
    ['dead-tasks', 'ctl queue redrive mail --url URL D', ['D1']],
    ['schedules', 'ctl queue schedule pause mail --url "URL" ', ['nightly']],
    ['jobs', 'ctl queue job get --url URL ', ['J1']],
    ['agents', 'ctl agent show --url URL ', ['docs', 'S2']],
    ['backends', 'ctl backend enable --url URL ', ['claude', 'codex']],
    ['notes', 'ctl inbox read --url URL ', ['N1']],
    ['pipelines', 'ctl pipeline show --url URL ', ['P1']],
  ])('prints %s for: %s', async (kind, line, offered) => {
    expect(await values(kind, line.replace('URL', server.url))).toEqual(offered);
  });

  test.each(['queues', 'agents', 'collections', 'schedules', 'nonsense'])(
    'prints nothing for %s when no server is there',
    async (kind) => {
      const ended = await ctl(['__complete', kind, 'ctl x --url http://127.0.0.1:1 ']);
      expect(ended).toMatchObject({ code: 0, out: '', err: '' });
    },
  );

  again('prints the collections of a database', async () => {
    const database = new DbServer();
    await database.start();
    try {
      await database.ctl(['put', 'people', 'ada', '{"age": 36}']);
      expect(await values('collections', `ctl db find --data ${database.data} `)).toEqual([
        'people',
      ]);
    } finally {
      await database.remove();
    }
  });

  test('gives up on a server that does not answer', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    const line = `ctl queue stats --url http://127.0.0.1:${port} `;
    // The limit is 300 ms; without one it would wait for 30 seconds.
    const { ended, child } = startCtl(['__complete', 'queues', line], env);
    const killed = AbortSignal.timeout(15_000);
    killed.addEventListener('abort', () => child.kill());
    expect(await ended).toMatchObject({ code: 0, signal: null, out: '', err: '' });
    silent.close();
  });
});

describe('the scripts', () => {
  let folder = '';
  let path = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ctl-live-'));
    const exports = Object.entries(patientEnv).map(([name, value]) => `${name}=${value}`);
    const program = `exec env ${exports.join(' ')} '${process.execPath}' '${CTL}' "$@"`;
    writeFileSync(join(folder, 'ctl'), `#!/bin/sh\n${program}\n`, { mode: 0o755 });
    symlinkSync(join(folder, 'ctl'), join(folder, 'millrace'));
    path = process.env['PATH'] ?? '';
    process.env['PATH'] = `${folder}:${path}`;
  });
  afterAll(() => {
    process.env['PATH'] = path;
    rmSync(folder, { recursive: true, force: true });
  });

  test.for(Object.keys(shells))('%s offers the queues of the server', async (shell, { skip }) => {
    skip(!isInstalled(shell), `${shell} is not installed`);
    const script = execFileSync(process.execPath, [CTL, 'completion', shell], { encoding: 'utf8' });
    const complete = await shells[shell]!(script, folder);
    const line = `ctl queue stats --url ${server.url} `;
    expect(await complete(line)).toEqual(['images', 'mail']);
    expect(await complete(`${line}m`)).toEqual(['mail']);
  });
});
