import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterEach, expect, test } from 'vitest';
import { openStore } from './open-store.js';
import { StorageUnavailable } from './port/task-store.js';

const dataDirectory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
const options = { dataDirectory, clock: systemClock, random: systemRandom, log: silentLog };
afterEach(() => rmSync(dataDirectory, { recursive: true, force: true }));

test('the embedded store lies in the data directory', async () => {
  const store = await openStore('embedded', options);
  await store.probe();
  await store.close();
  expect(existsSync(join(dataDirectory, 'queue'))).toBe(true);
});

test.each(['postgres', 'postgresql'])(
  'an unreachable database under %s:// is reported in a sentence, without the password',
  async (scheme) => {
    const refusal = await openStore(`${scheme}://queue:secret@127.0.0.1:1/queue`, options).catch(
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(StorageUnavailable);
    expect(String(refusal)).toMatch(/PostgreSQL does not respond: .*ECONNREFUSED/);
    expect(String(refusal)).not.toContain('secret');
  },
);

test.each([
  ['a slash in the password', 'postgres://u:hun/secret@h/d'],
  ['a port that there is not', 'postgres://u:secret@h:99999/d'],
  ['a file that is not there', 'postgres://u:secret@h/d?sslmode=verify-full&sslrootcert=/none.pem'],
  ['a mode that there is not', 'postgres://u:secret@h/d?sslmode=maybe'],
])('%s in the URL of a database is reported at once', async (_what, url) => {
  const refusal = await openStore(url, options).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(UsageError);
  expect(String(refusal)).toContain('storage: ');
  expect(String(refusal)).not.toContain('secret');
});

test('a part of a store is not taken for one', async () => {
  mkdirSync(join(dataDirectory, 'queue.part'), { recursive: true });
  await expect(openStore('embedded', options)).rejects.toThrow(/ctl queue migrate.* again/);
  expect(existsSync(join(dataDirectory, 'queue'))).toBe(false);
});

test('another setting is refused, and its text, which may be a password, is not shown', async () => {
  const refusal = await openStore('postgers://u:secret@h/d', options).catch(
    (error: unknown) => error,
  );
  expect(refusal).toBeInstanceOf(UsageError);
  expect(String(refusal)).toContain('"embedded"');
  expect(String(refusal)).not.toContain('secret');
});
