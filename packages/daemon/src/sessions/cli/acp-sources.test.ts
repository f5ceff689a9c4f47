import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newBackend } from '../../core/backend.js';
import { AcpSources } from './acp-sources.js';
import { HelpTexts, OfferedFlags } from '../../registry/run-program.js';

let bin: string;
beforeEach(() => void (bin = mkdtempSync(join(tmpdir(), 'mr-acp-sources-'))));
afterEach(() => rmSync(bin, { recursive: true, force: true }));

function program(name: string, help = ''): string {
  const file = join(bin, name);
  writeFileSync(file, `#!/bin/sh\nprintf '%s' '${help}'\n`, { mode: 0o755 });
  return file;
}

function sources(adapters: Record<string, string | string[]> = {}) {
  const flags = new OfferedFlags({ clock: systemClock, texts: new HelpTexts() });
  const extra = [{ id: 'mine', like: 'gemini' }];
  return new AcpSources({ flags, searchPath: bin, extra, adapters, variablesFor: () => ({}) });
}

const backend = (id: string, binaryPath: string) =>
  newBackend({ id, installed: true, binaryPath }, 1);

test('acp sources: a program speaks it where its --help says so', async () => {
  const gemini = program('gemini', '  --acp  Starts the agent in ACP mode');
  expect(await sources().find(backend('gemini', gemini))).toEqual({
    via: 'native',
    command: [gemini, '--acp'],
  });
  expect(await sources().find(backend('mine', gemini))).toMatchObject({ via: 'native' });
  const opencode = program('opencode', '  opencode acp   start ACP server');
  expect(await sources().find(backend('opencode', opencode))).toMatchObject({
    command: [opencode, 'acp'],
  });
  const old = program('qwen', '  --prompt  The prompt');
  expect(await sources().find(backend('qwen', old), { isRequested: true })).toBeUndefined();
});

test('acp sources: one that does not answer counts only when it was requested', async () => {
  const silent = backend('gemini', program('gemini'));
  expect(await sources().find(silent)).toBeUndefined();
  expect(await sources().find(silent, { isRequested: true })).toMatchObject({ via: 'native' });
});

test('acp sources: adapters are found on the search path or in the settings', async () => {
  const claude = backend('claude', program('claude', '--acp'));
  expect(await sources().find(claude)).toBeUndefined();
  const adapter = program('claude-agent-acp');
  expect(await sources().find(claude)).toEqual({ via: 'adapter', command: [adapter] });
  const own = program('own-adapter');
  const settings = { claude: [own, '--stdio'] };
  expect(await sources(settings).adapterOf('claude')).toEqual({
    via: 'adapter',
    command: [own, '--stdio'],
  });
  const missing = { claude: 'not-there' };
  expect(await sources(missing).adapterOf('claude')).toMatchObject({ command: [adapter] });
  const gone = newBackend({ id: 'claude', installed: false, binaryPath: '' }, 1);
  expect(await sources().find(gone)).toBeUndefined();
});
