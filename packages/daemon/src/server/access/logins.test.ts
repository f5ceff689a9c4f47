import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { codeLifetimeMs, loginLifetimeMs, Logins } from './logins.js';

let folder: string;
let now: number;
let file: string;
const log = memoryLog();
const clock = {
  now: () => now,
  monotonic: () => now,
  after: () => ({ cancel: () => undefined }),
  sleep: () => Promise.resolve(),
};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mr-logins-'));
  file = join(folder, 'logins.json');
  now = 1_000_000;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = () => new Logins({ file, clock, random: systemRandom, log, tokenHash: () => 'hash' });

test('login code: expires after its lifetime', () => {
  const logins = open();
  const [early, late] = [logins.newCode(), logins.newCode()];
  now += codeLifetimeMs - 1;
  expect(logins.redeem(early.code)).toBeDefined();
  now += 1;
  expect(logins.redeem(late.code)).toBeUndefined();
});

test('login code: the oldest code is dropped beyond the limit', () => {
  const logins = open();
  const codes = Array.from({ length: 21 }, () => logins.newCode().code);
  expect(logins.redeem(codes[0]!)).toBeUndefined();
  expect(logins.redeem(codes[1]!)).toBeDefined();
});

test('login: ends after 30 days', () => {
  const logins = open();
  const { secret } = logins.redeem(logins.newCode().code)!;
  now += loginLifetimeMs - 1;
  expect(open().has(secret)).toBe(true);
  now += 1;
  expect(open().has(secret)).toBe(false);
});

test('login: a damaged file means that browsers log in again', () => {
  writeFileSync(file, '{"logins": 1}');
  const logins = open();
  expect(log.lines.at(-1)).toMatchObject({ level: 'warn' });
  expect(logins.redeem(logins.newCode().code)).toBeDefined();
});
