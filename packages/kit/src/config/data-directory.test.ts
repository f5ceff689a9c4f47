import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UsageError } from '../base/errors.js';
import { dataDirectory } from './data-directory.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-data-'));
});
afterAll(() => rmSync(root, { recursive: true }));

test('a new directory is created with its parents and mode 700', () => {
  const path = join(root, 'a/b');
  expect(dataDirectory(`${root}/a/./b/`)).toBe(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(readdirSync(path)).toEqual([]);
});

test('an existing directory is not changed', () => {
  const path = mkdtempSync(join(root, 'there-'));
  chmodSync(path, 0o755);
  writeFileSync(join(path, 'kept'), '');
  dataDirectory(path);
  expect(statSync(path).mode & 0o777).toBe(0o755);
  expect(readdirSync(path)).toEqual(['kept']);
});

test('a file at the path or above it is reported', () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  expect(() => dataDirectory(file)).toThrow(
    new UsageError(`data directory ${file} is a file; name a directory`),
  );
  expect(() => dataDirectory(join(file, 'x/y'))).toThrow(
    new UsageError(`data directory ${file}/x/y cannot be created: ${file} is a file`),
  );
});

// Everything is writable for root, so root becomes somebody else for a moment.
test.skipIf(!process.seteuid)('a directory without permission is reported with the uid', () => {
  const path = mkdtempSync(join(root, 'locked-'));
  chmodSync(root, 0o755);
  chmodSync(path, 0o555);
  const isRoot = process.geteuid!() === 0;
  if (isRoot) process.seteuid!(65_534);
  const uid = process.geteuid!();
  try {
    expect(() => dataDirectory(path)).toThrow(
      new UsageError(`data directory ${path} is not writable by uid ${uid}: permission denied`),
    );
    expect(() => dataDirectory(join(path, 'x'))).toThrow(
      new UsageError(`data directory ${path}/x cannot be created by uid ${uid}: permission denied`),
    );
  } finally {
    if (isRoot) process.seteuid!(0);
  }
});

test.runIf(process.platform === 'linux')('a directory that cannot be made is reported', () => {
  const message = /^data directory \/proc\/x\/y cannot be created by uid \d+: ENOENT/;
  expect(() => dataDirectory('/proc/x/y')).toThrow(message);
});
