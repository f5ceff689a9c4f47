import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@millrace/kit/config';
import { expect, onTestFinished, test } from 'vitest';
import { databaseConfig } from './config.js';

test.each(['own', 'node'])('config: grpc_transport "%s" of an old file is ignored', (kind) => {
  const cwd = mkdtempSync(join(tmpdir(), 'millrace-config-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  writeFileSync(join(cwd, 'db.yaml'), `grpc_transport: ${kind}\n`);
  const { warnings } = loadConfig(databaseConfig, {
    environment: {},
    cwd,
    flags: { config: 'db.yaml' },
  });
  expect(warnings).toEqual([expect.stringContaining('grpc_transport is deprecated')]);
});
