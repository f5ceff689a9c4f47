import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

let daemon: TestDaemon;
let clis: FakeClis;

beforeEach(async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-backends-'));
  clis = new FakeClis(join(home, 'bin'));
  clis.addEmpty('claude', 'gemini', 'opencode');
  daemon = await startDaemon({ home, path: clis.path });
});
afterEach(() => daemon.dispose());

const known = [
  'agy',
  'aider',
  'amp',
  'auggie',
  'claude',
  'codex',
  'copilot',
  'crush',
  'cursor-agent',
  'droid',
  'gemini',
  'goose',
  'kimi',
  'kiro-cli',
  'local',
  'opencode',
  'qwen',
];

test('a first start knows every command line, installed or not', async () => {
  const { backends, settings } = await daemon.api.registry();
  expect(backends.map(({ id }) => id)).toEqual(known);
  expect(settings).toEqual({
    internal_thinking_mode: 'free_plus_local',
    allow_paid_autopilot: false,
  });
  expect(backends.find(({ id }) => id === 'claude')).toEqual({
    id: 'claude',
    installed: true,
    binary_path: clis.file('claude'),
    detected_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) as string,
    tier: 'unclassified',
    default: false,
    enabled: true,
    is_local: false,
    limited_until: null,
  });
  expect(backends.find(({ id }) => id === 'codex')).toMatchObject({
    installed: false,
    binary_path: '',
  });
  expect(backends.find(({ id }) => id === 'local')).toMatchObject({
    installed: false,
    binary_path: '',
    tier: 'local',
    is_local: true,
    limited_until: null,
  });
});

test('a rescan follows what is installed and keeps what people chose', async () => {
  const { api } = daemon;
  await api.ok('PATCH', '/api/v1/backends/claude', { tier: 'subscription', enabled: false });
  await api.ok('PUT', '/api/v1/backends/default', { id: 'gemini' });
  const before = await api.row('claude');
  clis.remove('gemini');
  clis.addEmpty('codex');
  const { backends } = await api.ok('POST', '/api/v1/backends/rescan');
  const row = (id: string) => backends.find((each: { id: string }) => each.id === id);
  expect(row('gemini')).toMatchObject({ installed: false, binary_path: '', default: true });
  expect(row('codex')).toMatchObject({ installed: true, tier: 'unclassified', enabled: true });
  expect(row('claude')).toMatchObject({ tier: 'subscription', enabled: false, installed: true });
  expect(row('claude').detected_at >= before.detected_at).toBe(true);
});

test('the default is one installed and enabled backend', async () => {
  const { api } = daemon;
  await api.ok('PUT', '/api/v1/backends/default', { id: 'claude' });
  const { backends } = await api.ok('PUT', '/api/v1/backends/default', { id: 'opencode' });
  const defaults = backends.filter((each: { default: boolean }) => each.default);
  expect(defaults.map(({ id }: { id: string }) => id)).toEqual(['opencode']);

  const put = (id: string) => ({ method: 'PUT', path: '/api/v1/backends/default', body: { id } });
  const unknown = await api.refused(put('gemni'), 404, 'BACKEND_NOT_FOUND');
  expect(unknown.detail).toContain('did you mean gemini?');
  await api.refused(put('codex'), 409, 'BACKEND_NOT_ELIGIBLE');
  await api.refused(put('local'), 409, 'BACKEND_NOT_ELIGIBLE');
  await api.ok('PATCH', '/api/v1/backends/gemini', { enabled: false });
  await api.refused(put('gemini'), 409, 'BACKEND_NOT_ELIGIBLE');
  expect((await api.row('opencode')).default).toBe(true);

  await api.ok('PATCH', '/api/v1/backends/opencode', { enabled: false });
  expect(await api.row('opencode')).toMatchObject({ default: true, enabled: false });
});

test('a patch changes what it names and nothing else', async () => {
  const { api } = daemon;
  const before = await api.row('claude');
  expect(await api.ok('PATCH', '/api/v1/backends/claude', {})).toEqual(before);
  for (const tier of ['free', 'subscription', 'pay_per_use', 'unclassified']) {
    expect(await api.ok('PATCH', '/api/v1/backends/claude', { tier })).toEqual({ ...before, tier });
  }
  expect(await api.ok('PATCH', '/api/v1/backends/local', { enabled: false })).toMatchObject({
    enabled: false,
    tier: 'local',
  });
});

test('the thinking mode is kept', async () => {
  const { api } = daemon;
  expect(await api.ok('PUT', '/api/v1/backends/thinking-mode', { mode: 'local_only' })).toEqual({
    internal_thinking_mode: 'local_only',
    allow_paid_autopilot: false,
  });
  expect((await api.registry()).settings.internal_thinking_mode).toBe('local_only');
});

test('everything is there again after a restart', async () => {
  const { api, home } = daemon;
  await api.ok('PATCH', '/api/v1/backends/claude', { tier: 'pay_per_use' });
  await api.ok('PUT', '/api/v1/backends/default', { id: 'claude' });
  await api.ok('PUT', '/api/v1/backends/thinking-mode', { mode: 'local_only' });
  await daemon.stop();
  daemon = await startDaemon({ home, path: clis.path });
  expect(await daemon.api.row('claude')).toMatchObject({ tier: 'pay_per_use', default: true });
  expect((await daemon.api.registry()).settings.internal_thinking_mode).toBe('local_only');
});

test('the config adds command lines, whose preferences outlive their absence', async () => {
  const { home } = daemon;
  clis.addEmpty('mycli');
  const flags = { 'backends-extra': '[{id: mine, binary: mycli}, {id: qwen, binary: opencode}]' };
  const restart = async (more: Record<string, string>) => {
    await daemon.stop();
    daemon = await startDaemon({ home, path: clis.path, flags: more });
  };
  await restart(flags);
  expect(await daemon.api.row('mine')).toMatchObject({ binary_path: clis.file('mycli') });
  expect(await daemon.api.row('qwen')).toMatchObject({ binary_path: clis.file('opencode') });
  await daemon.api.ok('PATCH', '/api/v1/backends/mine', { tier: 'free' });
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'mine' });

  await restart({});
  expect(await daemon.api.row('mine')).toBe(undefined);
  const patch = { method: 'PATCH', path: '/api/v1/backends/mine', body: {} };
  await daemon.api.refused(patch, 404, 'BACKEND_NOT_FOUND');
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'claude' });

  await restart(flags);
  expect(await daemon.api.row('mine')).toMatchObject({ tier: 'free', default: false });
});
