import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkDataVersion, stampDataVersion } from './data-version.js';

let dataDir = '';
beforeEach(() => (dataDir = mkdtempSync(join(tmpdir(), 'data-version-'))));
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const check = (own: string, noUpgrade = false) => checkDataVersion(dataDir, own, noUpgrade);

test('data version: an empty directory is accepted, also with --no-upgrade', () => {
  check('0.2.0', true);
});

test('data version: newer data is refused with the version that is needed', () => {
  stampDataVersion(dataDir, '0.10.0');
  expect(() => check('0.9.1')).toThrow('npm install -g millrace@0.10.0');
  expect(() => check('0.10.0')).not.toThrow();
  expect(() => check('1.0.0')).not.toThrow();
});

test('data version: older data needs an upgrade, which --no-upgrade refuses', () => {
  stampDataVersion(dataDir, '0.2.3');
  check('0.3.0');
  expect(() => check('0.3.0', true)).toThrow('written by Millrace 0.2.3');
  check('0.2.0', true);
});

test('data version: a directory of 0.1.0 has no stamp and counts as 0.1.0', () => {
  writeFileSync(join(dataDir, 'queue-tokens.yaml'), 'tokens: []\n');
  check('0.1.0', true);
  expect(() => check('0.2.0', true)).toThrow('0.1.0');
});

test('data version: a damaged stamp is refused', () => {
  writeFileSync(join(dataDir, 'VERSION'), 'x\n');
  expect(() => check('0.2.0')).toThrow('contains no version');
});
