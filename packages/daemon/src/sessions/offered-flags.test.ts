import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OfferedFlags } from './offered-flags.js';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'mr-flags-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function program(help: string): string {
  const file = join(directory, 'program');
  const counts = join(directory, 'runs');
  writeFileSync(file, `#!/bin/sh\necho run >> '${counts}'\ncat <<'END'\n${help}\nEND\n`);
  chmodSync(file, 0o755);
  return file;
}

const runs = () => readFileSync(join(directory, 'runs'), 'utf8').trim().split('\n').length;

test('offered flags: each program is asked once, until it is replaced', async () => {
  const flags = new OfferedFlags(systemClock);
  const file = program('Options:\n      --no-daemon\n          Run without the server');
  const wanted = ['--no-daemon', '--no-dae', '--other'];
  const [first, second] = await Promise.all([
    flags.among(file, wanted, process.env),
    flags.among(file, wanted, process.env),
  ]);
  expect([[...first], [...second], runs()]).toEqual([['--no-daemon'], ['--no-daemon'], 1]);
  program('Options:\n  -o, --other VALUE');
  expect([...(await flags.among(file, wanted, process.env))]).toEqual(['--other']);
  expect(runs()).toBe(2);
});

test('offered flags: nothing is run when no flag is wanted', async () => {
  const flags = new OfferedFlags(systemClock);
  expect((await flags.among('/nowhere', [], process.env)).size).toBe(0);
});
