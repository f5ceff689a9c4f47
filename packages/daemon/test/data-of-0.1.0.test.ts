import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { verify } from '@millrace/engine';
import { expect, test } from 'vitest';
import { startDaemon } from './support/daemon.js';

/** Written by version 0.1.0: a backend with a tier, a finished session, a pipeline not started. */
const fixture = join(import.meta.dirname, 'fixtures/0.1.0');

test('data of 0.1.0: backends, sessions and pipelines are there and can be changed', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-daemon-'));
  const store = join(home, 'data', 'daemon');
  mkdirSync(store, { recursive: true });
  copyFileSync(join(fixture, 'CURRENT'), join(store, 'CURRENT'));
  const bytes = gunzipSync(readFileSync(join(fixture, 'store-000001.mdb.gz')));
  writeFileSync(join(store, 'store-000001.mdb'), bytes);

  const first = await startDaemon({ home });
  expect((await first.api.row('claude')).tier).toBe('subscription');
  const { sessions } = await first.api.ok('GET', '/api/v1/sessions');
  expect(sessions).toMatchObject([
    { name: 'greeter', status: 'done', prompt: 'say hello', exit_code: 0 },
  ]);
  const { pipelines } = await first.api.ok('GET', '/api/v1/pipelines');
  expect(pipelines).toMatchObject([
    { name: 'nightly', status: 'pending', jobs: [{ id: 'lint' }, { id: 'fix' }] },
  ]);
  await first.api.ok('PATCH', '/api/v1/backends/claude', { tier: 'free' });
  await first.stop();
  expect(await verify(store)).toMatchObject({ ok: true });

  const second = await startDaemon({ home });
  expect((await second.api.row('claude')).tier).toBe('free');
  expect((await second.api.ok('GET', '/api/v1/sessions')).sessions).toHaveLength(1);
  await second.dispose();
});
