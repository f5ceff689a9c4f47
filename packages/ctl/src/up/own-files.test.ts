import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeDataDirectory } from './own-files.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-own-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('data directory: is created with its parents, for its owner only', () => {
  const path = join(folder, 'a', 'b');
  makeDataDirectory(path);
  makeDataDirectory(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
});

test('data directory: a file is refused with advice', () => {
  const path = join(folder, 'file');
  writeFileSync(path, '');
  expect(() => makeDataDirectory(path)).toThrow(
    /cannot store data in .*file: it is a file, not a directory\. Choose another directory with --data DIR\.$/,
  );
  expect(() => makeDataDirectory(join(path, 'below'))).toThrow('--data DIR');
});

test.skipIf(!existsSync('/proc/self'))('data directory: /proc is refused at once', () => {
  expect(() => makeDataDirectory('/proc/millrace/data')).toThrow('--data DIR');
});
