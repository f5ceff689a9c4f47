import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@millrace/kit/config';
import { memoryLog } from '@millrace/kit/log';
import { expect, onTestFinished, test } from 'vitest';
import { daemonConfig } from './config.js';
import { LiveSettings } from './live-settings.js';

test('a service that fails to restart is a warning until it has its settings', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'mr-settings-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const file = join(dataDir, 'config.yaml');
  const log = memoryLog();
  const loaded = loadConfig(daemonConfig, { environment: {}, defaultFile: file });
  const settings = new LiveSettings({ loaded, log, dataDir, secretFile: () => undefined });
  const applied: string[] = [];
  let isBroken = true;
  settings.onChange({
    name: 'notifications',
    group: 'notify',
    apply: async () => {
      if (isBroken) throw new Error('disk full');
      applied.push('notify');
    },
  });
  settings.onChange({
    name: 'context guard',
    group: 'tokens',
    apply: async () => void applied.push('tokens'),
  });

  const values = { 'notify.stuck_after': '1h', 'tokens.warn': '150k' };
  const warnings = [
    'The notify settings are saved, but the notifications failed to restart with them: ' +
      'disk full. Restart the daemon.',
  ];
  expect(await settings.update({ values, validate_only: false }, 'ada')).toMatchObject({
    warnings,
  });
  expect(readFileSync(file, 'utf8')).toContain('stuck_after: 1h');
  expect(applied).toEqual(['tokens']);
  expect(log.lines.map(({ message }) => message)).toContain('failed to apply settings');
  expect(settings.view().warnings).toEqual(warnings);

  isBroken = false;
  const view = await settings.update({ validate_only: false }, 'ada');
  expect(view.warnings).toEqual([]);
  expect(applied).toEqual(['tokens', 'notify']);
});
