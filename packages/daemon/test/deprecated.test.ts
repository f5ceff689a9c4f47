import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from './support/daemon.js';

const old = {
  'autopilot-brain-backends-free': 'gemini,nobody',
  'autopilot-brain-backends-subscription': 'claude',
  'autopilot-brain-backends-pay-per-use': 'codex',
  'autopilot-brain-allow-pay-per-use': 'true',
};

let daemon: TestDaemon;
afterEach(() => daemon.dispose());

async function restart(flags: Record<string, string>): Promise<void> {
  const { home } = daemon;
  await daemon.stop();
  daemon = await startDaemon({ home, flags });
}

const newHome = () => mkdtempSync(join(tmpdir(), 'mr-deprecated-'));

test('old settings are imported at the first start and never again', async () => {
  daemon = await startDaemon({ home: newHome(), flags: old });
  const tiers = async () => {
    const { backends } = await daemon.api.registry();
    const named = ['claude', 'codex', 'gemini'];
    return backends.filter(({ id }) => named.includes(id)).map(({ tier }) => tier);
  };
  expect(await tiers()).toEqual(['subscription', 'pay_per_use', 'free']);
  expect((await daemon.api.registry()).settings.allow_paid_autopilot).toBe(true);
  expect(daemon.log.lines.map(({ message }) => message)).toContain(
    'autopilot.brain names the backend "nobody", which is not known',
  );

  await daemon.api.ok('PATCH', '/api/v1/backends/claude', { tier: 'unclassified' });
  await restart({ ...old, 'autopilot-brain-allow-pay-per-use': 'false' });
  expect(await tiers()).toEqual(['unclassified', 'pay_per_use', 'free']);
  expect((await daemon.api.registry()).settings.allow_paid_autopilot).toBe(true);
  const { warnings, entries } = await daemon.api.ok('GET', '/api/v1/config');
  expect(warnings).toHaveLength(4);
  expect(warnings[0]).toContain('is deprecated');
  const shown = entries.filter(({ key }: { key: string }) => key.startsWith('autopilot.'));
  expect(shown).toHaveLength(4);
});

test('the first start counts also when there was nothing to import', async () => {
  daemon = await startDaemon({ home: newHome() });
  await restart(old);
  expect((await daemon.api.row('gemini')).tier).toBe('unclassified');
});
