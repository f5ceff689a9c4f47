import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inCampaign } from './support/campaign.js';
import { startCtl } from '../packages/ctl/test/run-ctl.js';
import { anyPorts, areAlive, patient, processes, Up } from './support/up.js';

const again = inCampaign('process');

let data = '';
let running: Up[] = [];
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'millrace-up-'));
  running = [];
});
afterEach(async () => {
  for (const up of running) {
    up.kill('SIGKILL');
    await up.ended;
  }
  // The parts of one that was killed end by themselves, and write until then.
  await expect
    .poll(() => processes().filter(({ line }) => line.includes(data)), patient)
    .toEqual([]);
  rmSync(data, { recursive: true, force: true });
});

function up(flags: readonly string[] = [], isReported = false): Up {
  const started = new Up(data, [...anyPorts, ...flags], isReported);
  running.push(started);
  return started;
}

test('the parts are processes that know one another, from the first run on', async () => {
  const first = await up().ready();
  expect([...first.parts().keys()].toSorted()).toEqual(['daemon', 'db', 'queue']);
  const made = ['queue.token', 'queue-daemon.token', 'queue-tokens.yaml', 'queue-secrets.yaml'];
  for (const name of made) expect(statSync(join(data, name)).mode & 0o777, name).toBe(0o600);
  expect(first.url('queue', 'grpc')).toMatch(/^grpc:\/\/127\.0\.0\.1:\d+$/);
  const texts = made.map((name) => readFileSync(join(data, name), 'utf8'));

  expect(await first.agentsConfig()).toMatchObject({
    callback: {
      url: `${first.url('daemon')}/api/v1/queue/callback`,
      signing: { scheme: 'standard_webhooks', secret_refs: ['agents-callback'] },
      auth: { type: 'bearer', secret_ref: 'daemon-token' },
    },
    ordering: { mode: 'group' },
  });
  const config = (await (await first.daemon('/api/v1/config')).json()) as {
    entries: { key: string; value: unknown; source: string }[];
  };
  const settings = new Map(config.entries.map((entry) => [entry.key, entry]));
  expect(settings.get('queue.url')?.value).toBe(first.url('queue'));
  expect(settings.get('database.url')?.value).toBe(first.url('db'));
  for (const key of ['queue.token', 'queue.callback_secret']) {
    expect(settings.get(key)).toMatchObject({ value: '********', source: 'environment' });
  }

  const status = await startCtl(['status', '--json', '--data', data]).ended;
  expect(status.code).toBe(0);
  expect(JSON.parse(status.out).queue.grpc_address).toBe(first.url('queue', 'grpc'));
  expect(JSON.parse(status.out)).toMatchObject({
    ok: true,
    db: { up: true, version: expect.any(String), collections: 0, followers: 0 },
    queue: {
      up: true,
      address: first.url('queue'),
      queues: 1,
      totals: { pending: 0 },
    },
    daemon: { up: true, address: first.url('daemon'), agents: {} },
  });
  const again = await up().ended;
  expect(again.code).toBe(1);
  expect(JSON.parse(again.err.trim().split('\n').at(-1)!).error.message).toMatch(
    /^Millrace is already running on .*, as process \d+\. Check it with `ctl status`\.$/,
  );

  // What its owner changes in the queue stays, while the address of the daemon is kept up to date.
  const {
    name: _n,
    paused: _p,
    version: _v,
    created_at: _c,
    updated_at: _u,
    ...own
  } = await first.agentsConfig();
  const changed = { ...own, retry: { ...own.retry, max_attempts: 9 } };
  expect((await first.queue('/v1/admin/queues/agents/config', 'PUT', changed)).status).toBe(200);
  expect(await first.stop()).toMatchObject({ code: 0, err: '' });

  const second = await up().ready();
  expect(made.map((name) => readFileSync(join(data, name), 'utf8'))).toEqual(texts);
  expect(await second.agentsConfig()).toMatchObject({
    callback: { url: `${second.url('daemon')}/api/v1/queue/callback` },
    retry: { max_attempts: 9 },
    version: 3,
  });
  expect(await second.stop()).toMatchObject({ code: 0 });
  expect(readdirSync(data)).not.toContain('queue.url');
  const nothing = await startCtl(['status', '--json', '--data', data]).ended;
  expect(nothing).toMatchObject({ code: 1, err: '' });
  expect(JSON.parse(nothing.out)).toMatchObject({
    ok: false,
    db: { up: false },
    queue: { up: false },
    daemon: { up: false },
  });
});

again(
  'a part that dies is started again at its address, and the others do not notice',
  async () => {
    const running = await up().ready();
    const before = running.parts();
    const urls = ['queue', 'daemon', 'db'].map((name) => running.url(name));
    for (const name of ['queue', 'daemon', 'db']) {
      const output = running.events.length;
      process.kill(before.get(name)!, 'SIGKILL');
      await expect
        .poll(() => running.events.slice(output).map(({ event }) => event), patient)
        .toContain('listening');
      expect(running.events.slice(output)[0]).toMatchObject({ event: 'died', component: name });
    }
    await expect.poll(() => running.parts().size, patient).toBe(3);
    expect(['queue', 'daemon', 'db'].map((name) => running.url(name))).toEqual(urls);
    for (const [name, pid] of running.parts()) expect(pid).not.toBe(before.get(name));
    expect((await running.queue('/v1/queues/agents/stats')).status).toBe(200);
    expect((await fetch(`${running.url('daemon')}/healthz`)).status).toBe(200);
    expect((await running.stop()).code).toBe(0);
  },
);

test('when it is killed itself, no part outlives it for long, and the next start is a clean one', async () => {
  const killed = await up().ready();
  const pids = [...killed.parts().values()];
  expect(areAlive(pids)).toHaveLength(3);
  killed.kill('SIGKILL');
  expect(await killed.ended).toMatchObject({ signal: 'SIGKILL' });
  await expect.poll(() => areAlive(pids), patient).toEqual([]);
  const next = await up().ready();
  expect((await next.queue('/v1/queues/agents/stats')).status).toBe(200);
  expect((await next.stop()).code).toBe(0);
});

again('one Ctrl-C waits for work under way, and a second one ends everything at once', async () => {
  const handler = createServer(() => undefined);
  handler.listen(0, '127.0.0.1');
  await once(handler, 'listening');
  const { port } = handler.address() as AddressInfo;
  const entry = { scheme: 'http', host: '127.0.0.1', port, networks: ['127.0.0.0/8'] };
  writeFileSync(join(data, 'queue.yaml'), JSON.stringify({ callback_allowlist: [entry] }));
  try {
    const running = await up([], true).ready();
    const config = { callback: { url: `http://127.0.0.1:${port}/never`, timeout_ms: 600_000 } };
    expect((await running.queue('/v1/admin/queues/slow/config', 'PUT', config)).status).toBe(200);
    const called = once(handler, 'request');
    const task = { handler_ref: 'wait' };
    expect((await running.queue('/v1/queues/slow/tasks', 'POST', task)).status).toBe(202);
    await called;
    const pids = [...running.parts().values()];
    running.kill('SIGINT');
    await running.says('"msg":"draining"');
    expect(areAlive(pids)).toHaveLength(3);
    const startedAt = performance.now();
    running.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130 });
    await expect.poll(() => areAlive(pids), patient).toEqual([]);
    // The drain of the queue alone would have taken 30 seconds.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  } finally {
    handler.closeAllConnections();
    handler.close();
  }
});

again('a daemon that requires a token is shown it by the queue', async () => {
  writeFileSync(join(data, 'daemon.token'), 'mr_token_of_the_daemon\n', { mode: 0o600 });
  const running = await up().ready();
  expect((await fetch(`${running.url('daemon')}/api/v1/sessions`)).status).toBe(401);
  expect((await running.agentsConfig()).callback.auth).toEqual({
    type: 'bearer',
    secret_ref: 'daemon-token',
  });
  const env = { HOME: data, MILLRACE_DATA_DIR: data };
  const args = ['agent', 'submit', 'Say hello', '--backend', 'no-such', '--wait', '--json'];
  const { code, out } = await startCtl(args, env).ended;
  // It got past the door and its signature: what is wrong is the backend.
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({
    status: 'DEAD',
    dead_reason: 'PERMANENT',
    last_error: { http_status: 404 },
  });
  expect((await startCtl(['status', '--data', data], env).ended).code).toBe(0);
  expect((await running.stop()).code).toBe(0);
});

again('a port that is taken is reported as the reason, and nothing is left running', async () => {
  const holder = createServer();
  holder.listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = `127.0.0.1:${(holder.address() as AddressInfo).port}`;
  try {
    const { code, err } = await up(['--queue-listen', address]).ended;
    expect(code).toBe(1);
    const last = JSON.parse(err.trim().split('\n').at(-1)!);
    expect(last.error.code).toBe('PART_FAILED');
    expect(last.error.message).toMatch(
      new RegExp(`^the queue did not start: .*${address} is already in use[^;]*$`),
    );
  } finally {
    holder.close();
  }
});
