import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HelpTexts, OfferedFlags } from './run-program.js';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'mr-flags-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Prints the file `help` beside it, so that the program itself need not change. */
function program(help: string, name = 'program'): string {
  const file = join(directory, name);
  writeFileSync(join(directory, 'help'), help);
  const counts = join(directory, 'runs');
  writeFileSync(file, `#!/bin/sh\necho run >> '${counts}'\n# ${help}\ncat '${directory}/help'\n`);
  chmodSync(file, 0o755);
  return file;
}

/** Never answers, and says so in `runs`. */
function silentProgram(): string {
  const file = join(directory, 'program');
  writeFileSync(file, `#!/bin/sh\necho run >> '${join(directory, 'runs')}'\nkill -9 $$\n`);
  chmodSync(file, 0o755);
  return file;
}

const runs = () => readFileSync(join(directory, 'runs'), 'utf8').trim().split('\n').length;
const stored = () => new HelpTexts({ file: join(directory, 'help.json'), log: silentLog });
const flagsOf = (texts = new HelpTexts()) => new OfferedFlags({ clock: systemClock, texts });
const wanted = ['--no-daemon', '--no-dae', '--other'];
const env = process.env;

test('offered flags: each program is asked once, until it is replaced', async () => {
  const flags = flagsOf();
  const file = program('Options: --no-daemon Run without the server');
  const [first, second] = await Promise.all([
    flags.among(file, wanted, env),
    flags.among(file, wanted, env),
  ]);
  expect([[...first], [...second], runs()]).toEqual([['--no-daemon'], ['--no-daemon'], 1]);
  program('Options: -o, --other VALUE');
  expect([...(await flags.among(file, wanted, env))]).toEqual(['--other']);
  expect(runs()).toBe(2);
});

test('offered flags: nothing is run when no flag is wanted', async () => {
  expect((await flagsOf().among('/nowhere', [], env)).size).toBe(0);
});

test('offered flags: the next daemon has the answer at once and reads it again later', async () => {
  const file = program('Options: --no-daemon');
  await flagsOf(stored()).among(file, wanted, env);
  // The program behind a wrapper script changes without the script.
  writeFileSync(join(directory, 'help'), 'Options: --other');
  const texts = stored();
  const flags = flagsOf(texts);
  expect([...(await flags.among(file, wanted, env))]).toEqual(['--no-daemon']);
  await flags.settled();
  expect([...(await flags.among(file, wanted, env))]).toEqual(['--other']);
  expect(runs()).toBe(2);
  expect(stored().latest(file)).toContain('--other');
});

test('offered flags: a replaced program that does not answer has the flags of the last', async () => {
  const flags = flagsOf(stored());
  const file = program('Options: --no-daemon');
  await flags.among(file, wanted, env);
  silentProgram();
  expect([...(await flags.among(file, wanted, env))]).toEqual(['--no-daemon']);
  expect(runs()).toBe(2);
});

test('offered flags: only the first use waits for a program that does not answer', async () => {
  const flags = flagsOf();
  const file = silentProgram();
  expect(await flags.answers(file, env)).toBe(false);
  expect(runs()).toBe(1);
  expect(await flags.answers(file, env)).toBe(false);
  await flags.settled();
  expect(runs()).toBe(2);
});

test('offered flags: a damaged file of answers is ignored', async () => {
  const file = program('Options: --other');
  for (const text of ['{', 'null', '[]', JSON.stringify({ [file]: { size: 1 } })]) {
    writeFileSync(join(directory, 'help.json'), text);
    expect([...(await flagsOf(stored()).among(file, wanted, env))]).toEqual(['--other']);
  }
});
