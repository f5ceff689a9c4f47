import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { ctlHere } from '../../ctl/test/run-ctl.js';
import { startHandler } from './support/handler.js';
import { caller, listening, newHome, run, soon } from './support/process.js';
import { newDirectory } from './support/server.js';

const again = inCampaign('process');

test('a server says where it listens, serves, and ends well on SIGTERM', async () => {
  const home = newHome();
  const handler = await startHandler(() => ({ status: 200 }));
  const server = run([`--config=${join(home, 'queue.yaml')}`]);
  const urls = await listening(server);
  expect(Object.keys(urls)).toEqual(['http', 'metrics']);
  const client = caller(urls['http']!);
  expect((await client.configure(handler.url)).status).toBe(200);
  const id = await client.submit();
  await expect.poll(() => client.status(id), soon).toBe('SUCCEEDED');
  expect((await fetch(`${urls['metrics']}/metrics`)).status).toBe(200);
  server.child.kill('SIGTERM');
  expect(await server.ended).toBe(0);
  expect(server.lines).toHaveLength(2);
  // Relative paths are relative to the file.
  expect(existsSync(join(home, 'data', 'queue'))).toBe(true);
});

test('a killed server goes on where it was', async () => {
  const home = newHome();
  const config = `--config=${join(home, 'queue.yaml')}`;
  const first = run([config]);
  // Killed by its first callback, so that no time-out can end the attempt before.
  const handler = await startHandler(() =>
    first.child.kill('SIGKILL') ? { status: 200, afterMs: 1e6 } : { status: 200 },
  );
  const client = caller((await listening(first))['http']!);
  const body = { callback: { url: handler.url, timeout_ms: 5_000 }, lease: { grace_ms: 100 } };
  await client({ method: 'PUT', path: '/v1/admin/queues/mail/config', body });
  const id = await client.submit();
  await first.ended;
  expect(handler.received).toHaveLength(1);
  const second = run([config]);
  const again = caller((await listening(second))['http']!);
  await expect.poll(() => again.status(id), soon).toBe('SUCCEEDED');
  const { body: task } = await again({ path: `/v1/tasks/${id}` });
  expect(task['attempts']).toMatchObject([{ outcome: 'LEASE_EXPIRED' }, { outcome: 'SUCCEEDED' }]);
  second.child.kill('SIGINT');
  expect(await second.ended).toBe(0);
});

again('tokens are read again on SIGHUP', async () => {
  const home = newHome();
  const server = run([`--config=${join(home, 'queue.yaml')}`]);
  const client = caller((await listening(server))['http']!);
  expect((await client({ path: '/v1/admin/queues' })).status).toBe(200);
  writeFileSync(join(home, 'tokens.yaml'), 'tokens: []');
  server.child.kill('SIGHUP');
  await expect
    .poll(async () => (await client({ path: '/v1/admin/queues' })).status, soon)
    .toBe(401);
  server.child.kill('SIGTERM');
  expect(await server.ended).toBe(0);
});

const waits = 'a server that waits for its database ends well on';
test(`${waits} SIGTERM`, () => endsWaiting('SIGTERM'));
again(`${waits} SIGINT`, () => endsWaiting('SIGINT'));

async function endsWaiting(signal: 'SIGTERM' | 'SIGINT'): Promise<void> {
  const home = newHome();
  const storage = '--storage=postgres://queue:secret@127.0.0.1:1/queue';
  const server = run([`--config=${join(home, 'queue.yaml')}`, storage]);
  await expect.poll(() => server.stderr(), soon).toContain('waits for its storage');
  server.child.kill(signal);
  expect(await server.ended).toBe(0);
  expect(server.lines).toEqual([]);
  expect(server.stderr()).not.toContain('secret');
}

test('a second process on the same directory ends with one clear line and exit code 2', async () => {
  const home = newHome();
  const config = `--config=${join(home, 'queue.yaml')}`;
  const first = run([config]);
  await listening(first);
  const second = run([config]);
  expect(await second.ended).toBe(2);
  expect(second.lines).toEqual([]);
  expect(second.stderr().trim()).toContain(`is in use by process ${first.child.pid}`);
  first.child.kill('SIGTERM');
  expect(await first.ended).toBe(0);
});

test.each([
  [['--tokens-file=none.yaml'], /none\.yaml: no such file.*ctl queue token new/],
  [['--secrets-file=none.yaml'], /none\.yaml: no such file/],
  [['--config=none.yaml'], /none\.yaml: no such file/],
  [['--listen=nonsense'], /--listen must be an address/],
  [['--metrics-listen=1'], /--metrics-listen must be an address/],
  [['--storage=redis://x'], /--storage must be embedded, or a URL such as postgres/],
  [['--callback-allowlist={scheme: http}'], /--callback-allowlist.*host/],
  [['--callback-allowlist={scheme: http, host: "a/b"}'], /\/0\/host/],
  [['--access-log=some'], /--access-log must be one of/],
])('%s is refused in a few words with exit code 2', async (flags, text) => {
  const config = `--config=${join(newHome(), 'queue.yaml')}`;
  const { code, err } = await ctlHere(['queue', 'serve', config, ...flags]);
  expect(code).toBe(2);
  expect(err.trim()).toMatch(text);
  expect(err).not.toContain('secret@');
  expect(err).not.toContain('    at ');
});

again(
  'a server waits for a database that does not answer, and does not tell its password',
  async () => {
    const server = run([
      `--config=${join(newHome(), 'queue.yaml')}`,
      '--storage=postgres://u:secret@127.0.0.1:1/db',
    ]);
    await expect
      .poll(() => server.stderr().split('waits for its storage').length, soon)
      .toBeGreaterThan(3);
    expect(server.child.exitCode).toBeNull();
    expect(server.stderr()).toContain('ECONNREFUSED');
    expect(server.stderr()).not.toContain('secret');
    server.child.kill('SIGTERM');
    await server.ended;
  },
);

again('without a tokens file the server says how to get one', async () => {
  const server = run([`--data=${newDirectory()}`, '--listen=127.0.0.1:0']);
  expect(await server.ended).toBe(2);
  expect(server.stderr().trim()).toMatch(/^ctl: tokens_file is not set.*`ctl queue token new`/);
});

again('an error in the config file is reported with its line', async () => {
  const home = newHome('drain_timout_ms: 5\n');
  const server = run([`--config=${join(home, 'queue.yaml')}`]);
  expect(await server.ended).toBe(2);
  expect(server.stderr()).toMatch(/queue\.yaml:9: .*drain_timout_ms.*drain_timeout_ms/);
});

again('settings come from the file, variables and flags, in this order of weight', async () => {
  const home = newHome('principal_submit_per_second: 5\n');
  const server = run([`--config=${join(home, 'queue.yaml')}`, '--access-log=all'], {
    MILLRACE_QUEUE_PRINCIPAL_SUBMIT_PER_SECOND: '1',
    MILLRACE_QUEUE_ACCESS_LOG: 'off',
  });
  const client = caller((await listening(server))['http']!);
  await client.configure('http://127.0.0.1:9/x');
  const path = '/v1/queues/mail/tasks:batch';
  const body = [{ handler_ref: 'a' }, { handler_ref: 'a' }];
  const answer = await client({ method: 'POST', path, body });
  expect((answer.body as unknown as { status: number }[]).map(({ status }) => status)).toEqual([
    202, 429,
  ]);
  await expect.poll(server.stderr, soon).toContain('"operation":"submitBatch"');
  server.child.kill('SIGTERM');
  await server.ended;
});
