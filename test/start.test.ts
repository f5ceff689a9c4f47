import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const patient = { timeout: 60_000, interval: 50 };

let folder = '';
let started: ChildProcessWithoutNullStreams[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-start-'));
  started = [];
  mkdirSync(join(folder, 'scripts'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  copyFileSync(join(root, 'scripts', 'start.mjs'), join(folder, 'scripts', 'start.mjs'));
  // What it does before is not the matter here, and would install into this clone.
  writeFileSync(
    join(folder, 'scripts', 'prepare.mjs'),
    `export const root = ${JSON.stringify(folder)}; export function prepare() {}`,
  );
});
afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** `npm start` with a `ctl` that writes down what befalls it, and ends at the second signal. */
function start(...args: string[]): ChildProcessWithoutNullStreams {
  writeFileSync(
    join(folder, 'bin', 'ctl'),
    `import { appendFileSync } from 'node:fs';
     const told = (word) => appendFileSync(${JSON.stringify(join(folder, 'diary'))}, word + '\\n');
     let signals = 0;
     for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => {
       told(name);
       if (++signals === 2) process.exit(5);
     });
     process.on('disconnect', () => { told('gone'); process.exit(0); });
     setInterval(() => {}, 1000);
     told(process.argv.slice(2).join(' '));`,
  );
  const child = spawn(process.execPath, [join(folder, 'scripts', 'start.mjs'), ...args]);
  started.push(child);
  return child;
}

function diary(): string[] {
  const file = join(folder, 'diary');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

test('flags are passed on, Ctrl-C that comes twice at once counts once, and the exit code comes back', async () => {
  const child = start('--data', 'x');
  const ended = new Promise((resolve) => child.on('exit', resolve));
  await expect.poll(diary, patient).toEqual(['up --data x']);
  // From the terminal, and from npm which heard it from the terminal too.
  child.kill('SIGINT');
  child.kill('SIGINT');
  await expect.poll(diary, patient).toEqual(['up --data x', 'SIGINT']);
  // A person who presses it again means it.
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(diary()).toEqual(['up --data x', 'SIGINT']);
  child.kill('SIGTERM');
  expect(await ended).toBe(5);
  expect(diary()).toEqual(['up --data x', 'SIGINT', 'SIGTERM']);
});

test('what it started learns when it is killed', async () => {
  const child = start();
  await expect.poll(diary, patient).toEqual(['up']);
  child.kill('SIGKILL');
  await expect.poll(diary, patient).toEqual(['up', 'gone']);
});
