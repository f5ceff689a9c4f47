import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { expectSchema } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

let daemon: TestDaemon;
let provider: Server;
afterEach(async () => {
  await daemon.dispose();
  provider.close();
});

test('usage is that of subscription rows alone, and a look changes nothing', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-usage-'));
  const clis = new FakeClis(join(home, 'bin'));
  clis.addEmpty('claude', 'gemini');
  mkdirSync(join(home, '.claude'));
  const login = { claudeAiOauth: { accessToken: 'planted-login' } };
  writeFileSync(join(home, '.claude', '.credentials.json'), JSON.stringify(login));
  let calls = 0;
  provider = createServer((_, response) => {
    calls++;
    response.setHeader('content-type', 'application/json');
    response.end('{"five_hour":{"utilization":42,"resets_at":"2030-01-01T00:00:00Z"}}');
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  const { port } = provider.address() as AddressInfo;
  daemon = await startDaemon({
    home,
    path: clis.path,
    flags: { 'providers-claude-url': `http://127.0.0.1:${port}/usage` },
  });
  const { api } = daemon;
  expect((await api.ok('GET', '/api/v1/usage')).backends).toEqual([]);
  await api.ok('PATCH', '/api/v1/backends/claude', { tier: 'subscription', enabled: false });
  await api.ok('PATCH', '/api/v1/backends/droid', { tier: 'subscription' });
  const before = await api.registry();

  const document = await api.ok('GET', '/api/v1/usage');
  expectSchema('UsageDocument', document);
  expect(document.backends).toMatchObject([
    {
      id: 'claude',
      status: 'ok',
      enabled: false,
      cached: false,
      usage: [{ id: 'claude:five_hour', used_percent: 42 }],
    },
    { id: 'droid', installed: false },
  ]);
  expect((await api.ok('GET', '/api/v1/usage')).backends[0].cached).toBe(true);
  expect(calls).toBe(1);
  expect((await api.ok('GET', '/api/v1/usage?refresh=true')).backends[0].cached).toBe(false);
  expect(calls).toBe(2);
  expect(await api.registry()).toEqual(before);
  expect(JSON.stringify([document, daemon.log.lines])).not.toContain('planted-login');
});
