import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  endFamily,
  isSameProcess,
  listProcesses,
  startMarkOf,
  quoted,
  readExit,
  writeRunScript,
} from './headless.js';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'mr-it’s-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Runs a program under the script, and answers what it left. */
async function run(file: string, ...args: string[]) {
  const script = writeRunScript({ directory, file, args });
  const child = spawn('/bin/sh', [script, 'token'], { detached: true, stdio: 'ignore' });
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
  return { pid: child.pid!, ended };
}

test('a process is known by its start, and one that is gone is not', async () => {
  const mark = await startMarkOf(process.pid);
  expect(mark).toBeDefined();
  expect(await isSameProcess(process.pid, mark!)).toBe(true);
  expect(await isSameProcess(process.pid, `${mark}0`)).toBe(false);
  const { pid, ended } = await run('/bin/sh', '-c', 'exit 0');
  await ended;
  expect(await startMarkOf(pid)).toBeUndefined();
  const own = (await listProcesses()).find((row) => row.pid === process.pid);
  expect(own?.parent).toBe(process.ppid);
});

test('how a program ended is written down, whatever its arguments are', async () => {
  const file = join(directory, 'out');
  const odd = `it's "odd" $(touch x) \`y\` \\ ; &`;
  const { ended } = await run('/bin/sh', '-c', 'printf %s "$1" > "$2"; exit 42', 'sh', odd, file);
  expect(await ended).toBe(42);
  expect(readExit(directory)).toEqual({ code: 42, signal: null });
  expect(readFileSync(file, 'utf8')).toBe(odd);
  expect(quoted("a'b")).toBe(`'a'\\''b'`);
});

test('exit: a signal and an exit code are distinguished', async () => {
  const { ended } = await run('/bin/sh', '-c', 'kill -TERM $$');
  await ended;
  expect(readExit(directory)).toEqual({ code: null, signal: 'SIGTERM' });
});

test('an exit that is not written whole is none yet', () => {
  expect(readExit(directory)).toBeUndefined();
  writeFileSync(join(directory, 'exit'), '');
  expect(readExit(directory)).toBeUndefined();
  writeFileSync(join(directory, 'exit'), '3');
  expect(readExit(directory)).toBeUndefined();
});

test('a family is ended whole: who asks for time has it, who does not listen is made to', async () => {
  const ready = join(directory, 'ready');
  const stubborn = `trap '' TERM; echo > '${ready.replaceAll("'", `'\\''`)}'; while :; do sleep 1; done`;
  const program = join(directory, 'program');
  // A child in a session of its own, as programs start their helpers.
  const helper = `require('child_process').spawn('sleep', ['600'], {detached: true});`;
  writeFileSync(program, `${helper} setInterval(() => {}, 1000);`);
  const script = `'${process.execPath}' ${quoted(program)} & ${stubborn}`;
  const { pid, ended } = await run('/bin/sh', '-c', script);
  await expect.poll(() => readFileSync(ready, { encoding: 'utf8', flag: 'a+' })).not.toBe('');
  const familyNow = async () => {
    const rows = await listProcesses();
    const members = new Set([pid]);
    for (let round = 0; round < 5; round++) {
      for (const row of rows) if (members.has(row.parent)) members.add(row.pid);
    }
    return members;
  };
  await expect.poll(async () => (await familyNow()).size).toBeGreaterThan(3);
  const members = await familyNow();
  await endFamily(pid, systemClock);
  await ended;
  for (const member of members) expect(await startMarkOf(member)).toBeUndefined();
});
