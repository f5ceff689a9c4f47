import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { expect, onTestFinished, test } from 'vitest';
import { identityFiles, persistentText } from './credentials-files.js';

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mr-kept-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test('a text is made once, for its owner alone', () => {
  const directory = newDirectory();
  const file = join(directory, 'a');
  let made = 0;
  const read = () =>
    persistentText({
      file,
      what: 'a number',
      isGood: (t) => /^\d+$/.test(t),
      make: () => `${++made}`,
    });
  expect([read(), read()]).toEqual(['1', '1']);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(['a']);
  writeFileSync(file, 'nonsense');
  expect(read).toThrow(UsageError);
  expect(read).toThrow(/a does not hold a number; delete it/);
});

test('a server keeps its id and its key over restarts', () => {
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const data = newDirectory();
  const first = identityFiles(data, world);
  expect(identityFiles(data, world)).toEqual(first);
  expect(first.cursorKey).toHaveLength(32);
  expect(identityFiles(newDirectory(), world)).not.toEqual(first);
});
